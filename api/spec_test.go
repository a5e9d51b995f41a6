package apispec

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

//go:embed types.d.ts
var types string

type document struct {
	Paths      map[string]map[string]yaml.Node
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Required   []string
	Properties map[string]yaml.Node
}

type operation struct {
	OperationID string `yaml:"operationId"`
	Security    *[]any
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `yaml:"$ref"`
			}
		}
	} `yaml:"requestBody"`
}

func parse(t *testing.T) document {
	t.Helper()
	var doc document
	if err := yaml.Unmarshal(Document, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations returns all operations by method and path.
func operations(t *testing.T, doc document) map[string]operation {
	t.Helper()
	ops := map[string]operation{}
	for path, item := range doc.Paths {
		for method, node := range item {
			if method == "parameters" {
				continue
			}
			var op operation
			if err := node.Decode(&op); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			ops[strings.ToUpper(method)+" "+path] = op
		}
	}
	return ops
}

func TestFewAPIOperationsNeedNoKey(t *testing.T) {
	var open []string
	for name, op := range operations(t, parse(t)) {
		if op.Security != nil && strings.Contains(name, " /api/") {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	want := []string{"GET /api/v1/docs", "GET /api/v1/openapi.yaml", "GET /api/v1/signin", "POST /api/v1/machine", "POST /api/v1/session", "POST /api/v1/session/device", "POST /api/v1/session/device/token"}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("operations without a key (-want +got):\n%s", diff)
	}
}

// Clients rely on unset values being sent rather than omitted, so every field of a response is required.
func TestAnswersLeaveNoMemberOut(t *testing.T) {
	page := []string{"next"} // for clients that ask for pages
	optional := map[string][]string{
		"Health": {"checks"}, "PolicyDiff": {"effect"}, "Problem": {"errors", "problems", "current"}, "User": {"assignedRole", "groups", "needsApproval", "role", "roleGroup", "suspendedAt", "suspendedBy", "suspensionHeldAt", "suspensionHeldBy"}, "Node": {"host", "note"},
		"ApiKey": {"user"}, "Caller": {"user"}, "BulkResults": {"taggedNodes"}, "Policy": {"warnings"}, "PolicyVerdict": {"warnings"}, // Headscale's tools expect {} from a check without problems
		"UserList": page, "NodeList": page, "PreAuthKeyList": page, "ApiKeyList": page, "SessionList": page, "PasskeyList": page, "ReservationList": page, "RouteList": page,
	}
	doc := parse(t)
	requests := map[string]bool{}
	for _, op := range operations(t, doc) {
		for _, content := range op.RequestBody.Content {
			requests[strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")] = true
		}
	}
	for name, s := range doc.Components.Schemas {
		if requests[name] {
			continue
		}
		promised := slices.Sorted(slices.Values(append(s.Required, optional[name]...)))
		members := slices.Sorted(maps.Keys(s.Properties))
		if !slices.Equal(promised, members) {
			t.Errorf("%s: required or known as optional %v, members %v", name, promised, members)
		}
	}
}

func TestTypeScriptTypesKnowTheDocument(t *testing.T) {
	doc := parse(t)
	var names []string
	for _, op := range operations(t, doc) {
		names = append(names, op.OperationID)
	}
	for name, s := range doc.Components.Schemas {
		names = append(names, name)
		names = slices.AppendSeq(names, maps.Keys(s.Properties))
	}
	for _, name := range names {
		if !strings.Contains(types, " "+name+":") && !strings.Contains(types, " "+name+"?:") {
			t.Errorf("types.d.ts does not know %s; run npm --prefix api run generate", name)
		}
	}
}
