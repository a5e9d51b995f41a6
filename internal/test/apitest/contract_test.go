package apitest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
)

func load(t *testing.T) *apitest.Contract {
	t.Helper()
	c, err := apitest.Load(apispec.Document)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExamplesInTheDocumentKeepToIt(t *testing.T) {
	check := func(document []byte) error {
		c, err := apitest.Load(document)
		if err != nil {
			t.Fatal(err)
		}
		return c.Document.Validate(t.Context(), openapi3.EnableExamplesValidation())
	}
	if err := check(apispec.Document); err != nil {
		t.Error(err)
	}
	// Prove that the check can fail.
	if err := check(bytes.Replace(apispec.Document, []byte("status: 404"), []byte("status: lost"), 1)); err == nil {
		t.Error("a wrong example is not found")
	}
}

const user = `{"id":"1","name":"a","createdAt":null,"displayName":"","email":"","providerId":"","provider":"","profilePicUrl":"","nodeCount":0}`

func TestMismatchesAreFound(t *testing.T) {
	c := load(t)
	for _, test := range []struct{ schema, value, old, new, want string }{
		{"User", user, "", "", ""},
		{"User", user, `"id":"1",`, ``, `id: property "id" is missing`},
		{"User", user, `"id":"1"`, `"id":1`, "id: value must be a string"},
		{"User", user, `"id":"1"`, `"id":null`, "id: Value is not nullable"},
		{"User", user, `"id":"1"`, `"id":"1","hash":"x"`, `: property "hash" is unsupported`},
		{"User", user, `"createdAt":null`, `"createdAt":"2026-01-01T00:00:00+01:00"`, `createdAt: string doesn't match the format "date-time" (not in UTC)`},
		{"User", user, `"nodeCount":0`, `"nodeCount":0.5`, "nodeCount: value must be an integer"},
		{"UserList", `{"users":[` + user + `]}`, `"id":"1"`, `"id":7`, "users.0.id: value must be a string"},
		{"Nobody", `{}`, "", "", "the document has no schema Nobody"},
	} {
		var v any
		if err := json.Unmarshal([]byte(strings.Replace(test.value, test.old, test.new, 1)), &v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, strings.Join(c.Mismatches(test.schema, v), "\n")); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", test.schema, test.new, diff)
		}
	}
}

func TestBrokenAnswersAreFound(t *testing.T) {
	c := load(t)
	const lost = `{"type":"about:blank","title":"Not Found","status":404,"detail":"x","code":5,"message":"x","details":[]}`
	for _, test := range []struct {
		name, method, path string
		status             int
		contentType, body  string
		want               string
	}{
		{"whole", "GET", "/api/v1/user", 200, "application/json", `{"users":[]}`, ""},
		{"other media type", "GET", "/api/v1/user", 200, "text/plain", `{"users":[]}`, `the content type "text/plain" is not promised`},
		{"no JSON", "GET", "/api/v1/user", 200, "application/json", `{`, "unexpected end of JSON input"},
		{"other shape", "GET", "/api/v1/user", 200, "application/json", `{}`, `users: property "users" is missing`},
		{"failure", "GET", "/api/v1/user", 503, "application/problem+json", lost, ""},
		{"success that is not promised", "POST", "/api/v1/user", 201, "application/json", `{}`, `the content type "application/json" is not promised`},
		{"no such operation", "GET", "/api/v1/nothing", 404, "application/problem+json", lost, ""},
		{"operation that is not in the document", "GET", "/api/v1/nothing", 200, "application/json", `{}`, "status 200, and the document has no such operation"},
		{"path that is not clean", "GET", "/api/v1//user", 200, "application/json", `{"users":[]}`, "status 200, and the document has no such operation"},
		{"beside the API", "GET", "/key", 200, "text/plain", `x`, ""},
		{"head", "HEAD", "/api/v1/user", 200, "application/json", ``, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil)
			header := http.Header{"Content-Type": {test.contentType}, "Mesh-Revision": {"7"}}
			if diff := cmp.Diff(test.want, strings.Join(c.Answer(r, test.status, header, []byte(test.body)), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for accept, want := range map[string]string{
		"application/json":                           "",
		"application/json, application/problem+json": `the content type "application/json" is not promised`,
		"": `the content type "application/json" is not promised`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/nothing", nil)
		r.Header.Set("Accept", accept)
		header := http.Header{"Content-Type": {"application/json"}, "Mesh-Revision": {"7"}}
		if diff := cmp.Diff(want, strings.Join(c.Answer(r, 404, header, []byte(lost)), "\n")); diff != "" {
			t.Errorf("Accept %q (-want +got):\n%s", accept, diff)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/user", nil)
	found := c.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, []byte(`{"users":[]}`))
	if diff := cmp.Diff([]string{"the header Mesh-Revision is missing"}, found); diff != "" {
		t.Errorf("without revision (-want +got):\n%s", diff)
	}
}

// failures is a test that only records that it failed.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Errorf(string, ...any) { f.count++ }

func TestTransportFailsTheTestOfABrokenAnswer(t *testing.T) {
	for body, want := range map[string]int{`{"users":[]}`: 0, `{"users":null}`: 1} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mesh-Revision", "7")
			_, _ = w.Write([]byte(body))
		}))
		f := &failures{TB: t}
		client := &http.Client{Transport: load(t).Transport(f, server.Client().Transport)}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/user", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		server.Close()
		if f.count != want {
			t.Errorf("%s: failed %d times, want %d", body, f.count, want)
		}
	}
}
