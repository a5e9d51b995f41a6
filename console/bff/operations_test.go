package bff

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	apispec "github.com/fairlead-mesh/fairlead/api"
)

// unused are the operations of the API that no page needs.
func unused() map[string]string {
	const automation = "set up once, by the command line or a script"
	return map[string]string{
		"enrolMachine": "devices enrol themselves", "registerNode": "the older form of registerLogin", "backfillNodeIPs": "for tools of Headscale's API; does nothing",
		"openapiDocument": "documents of the service", "docsPage": "documents of the service",
		"debugDigest": "for developers of the service", "debugProfile": "for developers of the service",
		"health": "for probes", "ready": "for probes", "version": "the console asks itself", "streamEvents": "has a handler of its own",
		"listWebhooks": automation, "createWebhook": automation, "getWebhook": automation, "changeWebhook": automation, "deleteWebhook": automation,
		"rotateWebhookSecret": automation, "testWebhook": automation, "listFailedEvents": automation, "redeliverEvent": automation,
	}
}

type documentParameter struct {
	Ref      string `yaml:"$ref"`
	Name, In string
}

// documented reads the operations from the API's document, in the form of the
// table but for the limit, of which it tells whether there is a body at all.
func documented(t *testing.T) map[string]operation {
	t.Helper()
	var document struct {
		Paths      map[string]map[string]yaml.Node
		Components struct{ Parameters map[string]documentParameter }
	}
	if err := yaml.Unmarshal(apispec.Document, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]operation{}
	for address, item := range document.Paths {
		var shared []documentParameter
		if common, ok := item["parameters"]; ok {
			if err := common.Decode(&shared); err != nil {
				t.Fatal(err)
			}
		}
		for method, node := range item {
			if method == "parameters" {
				continue
			}
			var o struct {
				ID         string `yaml:"operationId"`
				Parameters []documentParameter
				Body       map[string]any `yaml:"requestBody"`
			}
			if err := node.Decode(&o); err != nil {
				t.Fatal(err)
			}
			op := operation{id: o.ID, method: strings.ToUpper(method), path: strings.TrimPrefix(address, "/api/v1/")}
			var query []string
			for _, p := range append(slices.Clone(shared), o.Parameters...) {
				if p.Ref != "" {
					p = document.Components.Parameters[path.Base(p.Ref)]
				}
				if p.In == "query" {
					query = append(query, p.Name)
				}
			}
			slices.Sort(query)
			op.query = strings.Join(query, " ")
			if o.Body != nil {
				op.limit = 1
			}
			found[op.id] = op
		}
	}
	return found
}

func TestEachOperationOfTheAPIPassesAsDocumentedOrIsNamedAsUnused(t *testing.T) {
	left := documented(t)
	for _, op := range operations() {
		op.limit = min(op.limit, 1)
		query := strings.Fields(op.query)
		slices.Sort(query)
		op.query = strings.Join(query, " ")
		if diff := cmp.Diff(left[op.id], op, cmp.AllowUnexported(operation{})); diff != "" {
			t.Errorf("%s (-document +table):\n%s", op.id, diff)
		}
		delete(left, op.id)
	}
	for id := range unused() {
		if _, ok := left[id]; !ok {
			t.Errorf("%s is named as unused, and is used or not there", id)
		}
		delete(left, id)
	}
	for id := range left {
		t.Errorf("the API has %s: add it to the table, or name it as unused", id)
	}
}

func TestAPathIsWrittenAnewFromItsParts(t *testing.T) {
	for given, want := range map[string]string{
		"GET node":                                 "listNodes node",
		"GET node/7":                               "showNode node/7",
		"POST node/7/rename/web-1":                 "renameNode node/7/rename/web-1",
		"POST node/7/rename/caf%C3%A9":             "renameNode node/7/rename/caf%C3%A9",
		"POST node/7/rename/a%20b":                 "renameNode node/7/rename/a%20b",
		"POST user/7/rename/ana@example.net":       "renameUser user/7/rename/ana@example.net",
		"POST user/bulk":                           "changeUsers user/bulk",
		"GET routes/history":                       "showNetworkHistory routes/history",
		"DELETE apikey/7Qd0XhVb2mTa":               "deleteApiKey apikey/7Qd0XhVb2mTa",
		"DELETE apikey/flk_7Qd0XhVb2mTa_%2A%2A%2A": "deleteApiKey apikey/flk_7Qd0XhVb2mTa_%2A%2A%2A",

		"GET ":                          "",
		"GET node/":                     "",
		"GET /node":                     "",
		"GET node/web-1":                "",
		"GET node/..":                   "",
		"GET node/%2e%2e":               "",
		"GET node/7%2F..%2Fuser":        "",
		"GET node/7/../8":               "",
		"GET node/7%00":                 "",
		"GET node/-7":                   "",
		"GET node/٧":                    "",
		"GET node/12345678901234567890": "",
		"GET n%6fde":                    "",
		"GET debug/profile":             "",
		"POST node/7/rename/..":         "",
		"POST node/7/rename/%2e%2e":     "",
		"POST node/7/rename/a%2fb":      "",
		"POST node/7/rename/a%5cb":      "",
		"POST node/7/rename/a%3fb":      "",
		"POST node/7/rename/a%23b":      "",
		"POST node/7/rename/a%252fb":    "",
		"POST node/7/rename/a%0d%0ab":   "",
		"POST node/7/rename/%ff":        "",
		"POST node/7/rename/%zz":        "",
		"POST machine":                  "",
		"DELETE apikey/flk_7Qd0XhVb2mTa_m3vYk9c0TzR1qJ5uWx8LbN2sD6hGfPaE": "",
		"PUT node/7": "",
	} {
		method, escaped, _ := strings.Cut(given, " ")
		op, sent, _ := match(operations(), method, escaped)
		if got := strings.TrimSpace(op.id + " " + sent); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

func TestAQueryPassesByItsNames(t *testing.T) {
	op := operation{query: "user limit"}
	for raw, want := range map[string]string{
		"": "", "limit=5&user=ana": "limit=5&user=ana", "user=a%26limit%3D9": "user=a%26limit%3D9",
		"x=1": "refused x", "user=a%00": "refused user", "user=%ff": "refused user", "user=a;b": "refused (unreadable)", "user=" + strings.Repeat("a", 2000): "refused user",
	} {
		query, refused := op.filter(raw)
		if refused != "" {
			query = "refused " + refused
		}
		if query != want {
			t.Errorf("%q: %q, want %q", raw, query, want)
		}
	}
}

// FuzzPath: whatever is asked, what is sent is the path of one operation, with
// parameters that each stay within their part.
func FuzzPath(f *testing.F) {
	for _, escaped := range []string{"node/7", "node/7/rename/web", "node/%2e%2e/user", "apikey/flk_7Qd0XhVb2mTa_***", "policy/versions/1", "user/1/rename/%E2%80%AE"} {
		f.Add(http.MethodGet, escaped)
		f.Add(http.MethodPost, escaped)
	}
	all := operations()
	f.Fuzz(func(t *testing.T, method, escaped string) {
		op, sent, _ := match(all, method, escaped)
		if op.id == "" {
			return
		}
		u, err := url.Parse("http://service/api/v1/" + sent)
		if err != nil || u.Host != "service" || u.RawQuery != "" || u.Fragment != "" || u.EscapedPath() != "/api/v1/"+sent {
			t.Fatalf("%q is sent as %q: %v", escaped, sent, err)
		}
		if path.Clean(u.Path) != u.Path || strings.Count(u.Path, "/") != strings.Count("/api/v1/"+op.path, "/") {
			t.Fatalf("%q is sent as %q, another path", escaped, sent)
		}
	})
}
