package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(readFile(t, "openapi.yaml"), readFile(t, modelsFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if string(readFile(t, name)) != string(want) {
			t.Errorf("%s is not what openapi.yaml says: run make gen", name)
		}
	}
}

func TestServerHasTheModelsOfTheClient(t *testing.T) {
	const models = "package apiclient\n\nconst (\n\tCat Kind = \"cat\"\n)\n\ntype Kind string\n\nfunc (k Kind) Valid() bool { return true }\n"
	code, err := modelAliases([]byte(models))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(code, "apiclient\"\n")
	want := "\n// The models of the client.\ntype (\nKind = apiclient.Kind\n)\n\n// Their values.\nconst (\nCat = apiclient.Cat\n)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := modelAliases([]byte("package")); err == nil {
		t.Error("models that cannot be read are taken")
	}
}

const pets = `
paths:
  /api/v1/pet:
    get:
      operationId: listPets
      x-role: read
      x-scope: nodes
      x-member: own
      x-console: true
      tags: [pets]
      summary: List pets
      parameters:
        - { name: kind, in: query }
    put:
      operationId: changePet
      x-role: operator
      x-scope: nodes
      x-replay: Pet
      x-console: true
      parameters:
        - { $ref: "#/components/parameters/IdempotencyKey" }
        - { name: If-Match, in: header }
      requestBody:
        content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } }
    parameters:
      - { $ref: "#/components/parameters/Limit" }
  /api/v1/pet/check:
    post:
      operationId: checkPet
      x-role: read
      x-scope: policy
      x-console: true
      requestBody:
        content: { application/json: { schema: { properties: { policy: { type: string } } } } }
  /health:
    get:
      operationId: health
      x-role: public
      x-console: false
      security: []
components:
  parameters:
    IdempotencyKey: { name: Idempotency-Key, in: header }
    Limit: { name: limit, in: query }
  schemas:
    Pet: { properties: { name: { type: string } } }
`

func TestTablesHaveARowForEachOperation(t *testing.T) {
	files, err := generate([]byte(pets), []byte("package apiclient"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"../internal/api/operations.gen.go": {
			`"GET /api/v1/pet":        {role: "read", scope: "nodes", member: true},`,
			`"PUT /api/v1/pet":        {role: "operator", scope: "nodes", conditional: true, replay: s.replayPet},`,
			`"POST /api/v1/pet/check": {role: "read", scope: "policy"},`,
			`"GET /health":            {anyone: true},`,
		},
		"../console/bff/operations.gen.go": {
			`{id: "listPets", method: "GET", path: "pet", query: []string{"kind", "limit"}, repeatable: true, member: true},`,
			`{id: "changePet", method: "PUT", path: "pet", query: []string{"limit"}, limit: bodyLimit},`,
			`{id: "checkPet", method: "POST", path: "pet/check", limit: policyLimit, repeatable: true},`,
		},
	} {
		var rows []string
		for line := range strings.Lines(string(files[name])) {
			if line = strings.TrimSpace(line); strings.HasSuffix(line, "},") {
				rows = append(rows, line)
			}
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRolesOfEachOperationAreDocumented(t *testing.T) {
	files, err := generate([]byte(pets), []byte("package apiclient"))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(files[rolesFile]), "\n## ")
	want := "Operations on pets\n\n| operation | request | member | read | operator | admin |\n|---|---|---|---|---|---|\n" +
		"| List pets | `GET /api/v1/pet` | own | yes | yes | yes |\n" +
		"|  | `PUT /api/v1/pet` | – | – | yes | yes |\n" +
		"|  | `POST /api/v1/pet/check` | – | yes | yes | yes |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPublicOperationsAreListed(t *testing.T) {
	files, err := generate([]byte(pets), []byte("package apiclient"))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(files["../internal/api/operations.gen.go"]), "path {\n")
	want := "\tcase \"GET /health\":\n\t\treturn true\n\t}\n\treturn false\n}\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No code is generated from a document that does not say who may call an operation.
func TestAttributesAreCompleteAndRight(t *testing.T) {
	const key = `        - { $ref: "#/components/parameters/IdempotencyKey" }` + "\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"role missing", "      x-role: operator\n", "", `PUT /api/v1/pet: x-role is "": use one of [read operator admin], any or public`},
		{"role misspelt", "x-role: operator", "x-role: operater", `x-role is "operater"`},
		{"attribute misspelt", "x-role: operator", "x-rol: operator", "PUT /api/v1/pet: unknown attribute x-rol"},
		{"role public with a key", "x-role: operator\n      x-scope: nodes", "x-role: public", "x-role: public and security: [] go together"},
		{"no key with a role", "x-role: public", "x-role: any", "GET /health: x-role: public and security: [] go together"},
		{"no key with a parameter", "  /health:", "  /health/{part}:", "GET /health/{part}: x-role: public is for paths without parameters"},
		{"scope missing", "      x-scope: policy\n", "", `POST /api/v1/pet/check: x-scope is "": use one of [users `},
		{"scope misspelt", "x-scope: policy", "x-scope: policies", `x-scope is "policies"`},
		{"scope for everyone", "x-role: public", "x-role: public\n      x-scope: nodes", "x-scope does not go with x-role: public"},
		{"member misspelt", "x-member: own", "x-member: any", `GET /api/v1/pet: x-member is "any": use own, or omit it`},
		{"member of everyone", "x-role: public", "x-role: public\n      x-member: own", "x-member does not go with x-role: public"},
		{"replay missing", "      x-replay: Pet\n", "", `PUT /api/v1/pet: x-replay is "": name a method replay…, or none`},
		{"replay malformed", "x-replay: Pet", "x-replay: pet(1)", `x-replay is "pet(1)"`},
		{"replay of a question", "x-scope: policy", "x-scope: policy\n      x-replay: none", "x-replay is for operations that change something"},
		{"replay without a key", key, "", "x-replay and the parameter Idempotency-Key go together"},
		{"key without a replay", "x-replay: Pet", "x-replay: none", "x-replay and the parameter Idempotency-Key go together"},
		{"condition of a question", "{ name: kind, in: query }", "{ name: If-Match, in: header }", "If-Match is for operations that"},
		{"console missing", "      x-console: false\n", "", "GET /health: x-console is missing: use true or false"},
		{"console of other paths", "x-console: false", "x-console: true", "GET /health: x-console is for paths below /api/v1/"},
		{"id missing", "      operationId: checkPet\n", "", "POST /api/v1/pet/check: operationId is missing"},
		{"not a document", "paths:\n", "paths: [\n", "did not find expected"},
	} {
		changed := strings.Replace(pets, c.old, c.new, 1)
		if changed == pets {
			t.Fatalf("%s: nothing changed", c.name)
		}
		files, err := generate([]byte(changed), []byte("package apiclient"))
		if err == nil || files != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
