package apitest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
)

const promised = `
openapi: 3.0.3
info: {title: pets, version: v1}
security: [{key: []}]
paths:
  /pet:
    parameters:
      - {name: region, in: header, schema: {type: string}}
    get:
      operationId: listPets
      x-role: read
      x-scope: pets
      x-console: true
      parameters:
        - {name: kind, in: query, schema: {type: string, enum: [cat, dog]}}
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
      responses:
        "200":
          description: the pets
          headers: {Revision: {schema: {type: string}}}
          content:
            application/json: {schema: {type: object, required: [pets], properties: {pets: {type: array, items: {$ref: "#/components/schemas/Pet"}}}}}
        "404": {description: no pets}
        default: {description: failure}
    post:
      operationId: makePet
      security: []
      requestBody:
        content:
          application/json: {schema: {$ref: "#/components/schemas/NewPet"}}
          application/yaml: {schema: {$ref: "#/components/schemas/NewPet"}}
      responses:
        "200":
          description: the pet
          content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}
components:
  securitySchemes: {key: {type: http, scheme: bearer}}
  schemas:
    Pet:
      type: object
      required: [id, name, owner]
      properties:
        id: {type: string}
        name: {type: string}
        mood: {type: string, enum: [calm, wild]}
        owner: {nullable: true, allOf: [{$ref: "#/components/schemas/Owner"}]}
        friend: {$ref: "#/components/schemas/Pet"}
        notes: {type: object, additionalProperties: {type: string}}
    Owner: {type: object, required: [name], properties: {name: {type: string}}}
    NewPet:
      type: object
      required: [name]
      properties:
        name: {type: string, maxLength: 20}
        size: {type: integer}
        born: {type: string, format: date-time, nullable: true}
        tags: {type: array, items: {type: string}}
`

func TestBreaksAreFound(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"operation removed", "    get:\n      operationId: listPets", "    put:\n      operationId: listPets", "GET /pet: the operation is gone"},
		{"path renamed", "  /pet:", "  /pets:", "GET /pet: the operation is gone\nPOST /pet: the operation is gone"},
		{"operation renamed", "operationId: makePet", "operationId: createPet", "POST /pet: its id was makePet and is createPet"},
		{"key needed", "      security: []\n", "", "POST /pet: it needs a key"},
		{"higher role needed", "x-role: read", "x-role: operator", "GET /pet: it needs the role operator"},
		{"another scope needed", "x-scope: pets", "x-scope: animals", "GET /pet: it needs the scope animals"},
		{"body needed", "      requestBody:\n", "      requestBody:\n        required: true\n", "POST /pet: it needs a body"},
		{"media type of a request removed", "          application/yaml: {schema: {$ref: \"#/components/schemas/NewPet\"}}\n", "", "POST /pet: the media type application/yaml of the request is gone"},
		{"media type of an answer changed", "          content: {application/json:", "          content: {text/json:", "POST /pet: the media type application/json of the answer is gone"},
		{"status of success changed", "\"200\":\n          description: the pet\n", "\"201\":\n          description: the pet\n", "POST /pet: the status 200 is gone"},
		{"default removed", "        default: {description: failure}\n", "", "GET /pet: the status default is gone"},
		{"header of an answer removed", "          headers: {Revision: {schema: {type: string}}}\n", "", "GET /pet: the header Revision of answer 200 is gone"},
		{"parameter removed", "        - {name: kind, in: query, schema: {type: string, enum: [cat, dog]}}\n", "", "GET /pet: the query parameter kind is gone"},
		{"parameter of the path removed", "    parameters:\n      - {name: region, in: header, schema: {type: string}}\n", "", "GET /pet: the header parameter region is gone\nPOST /pet: the header parameter region is gone"},
		{"parameter required", "{name: kind, in: query,", "{name: kind, in: query, required: true,", "GET /pet: the query parameter kind is required"},
		{"new parameter required", "        - {name: limit,", "        - {name: size, in: query, required: true, schema: {type: string}}\n        - {name: limit,", "GET /pet: the query parameter size is required"},
		{"value of a parameter removed", "enum: [cat, dog]", "enum: [cat]", "GET /pet: the query parameter kind may not be dog"},
		{"bound of a parameter narrowed", "maximum: 100", "maximum: 50", "GET /pet: the query parameter limit has other bounds"},
		{"lower bound added", "maximum: 100", "maximum: 100, minimum: 1", "GET /pet: the query parameter limit has other bounds"},
		{"type of a parameter changed", "{type: integer, maximum: 100}", "{type: string}", "GET /pet: the query parameter limit was integer and is string"},
		{"member of a request removed", "        size: {type: integer}\n", "", "NewPet: request.size is gone"},
		{"member of a request required", "required: [name]\n", "required: [name, size]\n", "NewPet: request.size is required"},
		{"type in a request narrowed", "size: {type: integer}", "size: {type: boolean}", "NewPet: request.size was integer and is boolean"},
		{"format in a request changed", "format: date-time", "format: date", "NewPet: request.born was string date-time and is string date"},
		{"null in a request refused", "format: date-time, nullable: true", "format: date-time", "NewPet: request.born may not be null"},
		{"length in a request narrowed", "maxLength: 20", "maxLength: 10", "NewPet: request.name has another length"},
		{"length in a request bounded", "{type: array, items: {type: string}}", "{type: array, maxItems: 3, items: {type: string}}", "NewPet: request.tags has another length"},
		{"pattern in a request added", "maxLength: 20", "maxLength: 20, pattern: '^a'", "NewPet: request.name has the pattern ^a"},
		{"values of a request enumerated", "size: {type: integer}", "size: {type: integer, enum: [1, 2]}", "NewPet: request.size is one of a few values only"},
		{"items of a request changed", "items: {type: string}}", "items: {type: integer}}", "NewPet: request.tags[] was string and is integer"},
		{"member of an answer removed", "        mood: {type: string, enum: [calm, wild]}\n", "", "Pet: answer.mood is gone"},
		{"member of an answer optional", "required: [id, name, owner]", "required: [id, owner]", "Pet: answer.name may be missing"},
		{"member of an answer nullable", "id: {type: string}", "id: {type: string, nullable: true}", "Pet: answer.id may be null"},
		{"type in an answer changed", "id: {type: string}", "id: {type: integer}", "Pet: answer.id was string and is integer"},
		{"inner object of an answer changed", "properties: {name: {type: string}}", "properties: {title: {type: string}}", "Owner: answer.name is gone"},
		{"map of an answer closed", ", additionalProperties: {type: string}", "", "Pet: answer.notes has no further members"},
		{"map of an answer changed", "additionalProperties: {type: string}", "additionalProperties: {type: integer}", "Pet: answer.notes.* was string and is integer"},

		{"nothing", "", "", ""},
		{"no role needed", "x-role: read\n      x-scope: pets\n", "x-role: any\n", ""},
		{"no key needed", "x-role: read\n      x-scope: pets\n", "x-role: public\n      security: []\n", ""},
		{"other attribute changed", "x-console: true", "x-console: false", ""},
		{"operation added", "    post:\n", "    delete: {operationId: freePets, responses: {default: {description: done}}}\n    post:\n", ""},
		{"parameter added", "        - {name: limit,", "        - {name: size, in: query, schema: {type: string}}\n        - {name: limit,", ""},
		{"value of a parameter added", "enum: [cat, dog]", "enum: [cat, dog, owl]", ""},
		{"bound of a parameter widened", "maximum: 100", "maximum: 1000", ""},
		{"member of a request added", "        size: {type: integer}\n", "        size: {type: integer}\n        fur: {type: string}\n", ""},
		{"member of a request optional", "required: [name]\n", "required: []\n", ""},
		{"member of an answer added", "        mood: {", "        fur: {type: string}\n        mood: {", ""},
		{"member of an answer promised", "required: [id, name, owner]", "required: [id, name, owner, mood]", ""},
		{"value in an answer added", "enum: [calm, wild]", "enum: [calm, wild, asleep]", ""},
		{"status of a failure left to the default", "        \"404\": {description: no pets}\n", "", ""},
		{"words changed", "description: the pets", "description: all pets", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(promised, c.old) {
				t.Fatalf("the document has no %q", c.old)
			}
			found, err := apitest.Breaking([]byte(promised), []byte(strings.Replace(promised, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, b := range found {
				texts = append(texts, b.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(texts, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBreakIsAnnouncedByTheChangelogAlone(t *testing.T) {
	breaks := []apitest.Break{{Where: "GET /pet", Text: "the operation is gone"}, {Where: "Pet", Text: "answer.id is gone"}}
	const entry = "\n\n- **CHANGE** API: `GET /pet`, `Pet`.\n"
	for _, c := range []struct {
		name, changelog, since string
		want                   []apitest.Break
	}{
		{"both", "# Changelog\n\n## Unreleased\n\n- **CHANGE** API: `GET /pet` is gone, and\n  `Pet` has no id.\n", "", nil},
		{"one", "\n## Unreleased\n\n- **FIX** x\n- **CHANGE** API: `GET /pet` is gone.\n- **FEATURE** `Pet`\n", "", breaks[1:]},
		{"another operation", "\n## Unreleased\n\n- **CHANGE** API: `GET /pet/{id}` and `Pets`.\n", "", breaks},
		{"after the last release", "\n## Unreleased" + entry + "\n## 1.0 (2026-01-01)\n", "1.0", nil},
		{"in the last release", "\n## Unreleased\n\n## 1.0 (2026-01-01)" + entry, "1.0", breaks},
		{"in a release that has no snapshot yet", "\n## 1.1 (2026-02-02)" + entry + "\n## 1.0 (2026-01-01)\n", "1.0", nil},
		{"in the first release", "\n## 1.0 (2026-01-01)" + entry, "", nil},
		{"nothing", "", "", breaks},
	} {
		t.Run(c.name, func(t *testing.T) {
			left, err := apitest.Unannounced(breaks, c.changelog, c.since)
			if diff := cmp.Diff(c.want, left, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestSnapshotIsThatOfTheLastRelease(t *testing.T) {
	for _, c := range []struct{ changelog, since, want string }{
		{"\n## Unreleased\n\n## 1.0 (2026-01-01)\n", "", "the changelog has a release 1.0, of which there is no snapshot: make release writes it at the tag"},
		{"\n## Unreleased\n\n## 1.1\n\n## 1.0\n", "1.0", "the changelog has a release 1.1, of which there is no snapshot: make release writes it at the tag"},
		{"\n## Unreleased\n", "1.0", "the changelog has no section about the release 1.0"},
	} {
		if _, err := apitest.Unannounced(nil, c.changelog, c.since); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.changelog, err, c.want)
		}
	}
}
