package bff

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestAPathIsWrittenAnewFromItsParts(t *testing.T) {
	for given, want := range map[string]string{
		"GET node":                                 "listNodes node",
		"GET node/7":                               "showNode node/7",
		"POST node/7/rename/web-1":                 "renameNode node/7/rename/web-1",
		"POST node/7/rename/caf%C3%A9":             "renameNode node/7/rename/caf%C3%A9",
		"POST node/7/rename/a%20b":                 "renameNode node/7/rename/a%20b",
		"POST user/7/rename/ana@example.net":       "renameUser user/7/rename/ana@example.net",
		"POST user/bulk":                           "changeUsers user/bulk",
		"PATCH webhooks/7":                         "changeWebhook webhooks/7",
		"POST webhooks/7/failed/8/redeliver":       "redeliverEvent webhooks/7/failed/8/redeliver",
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
	op := operation{query: []string{"user", "limit"}}
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

// FuzzPath: whatever path is requested, the one sent upstream is that of exactly one
// operation, and each parameter stays within its own segment.
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
