package api_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// hook creates a webhook and returns its path.
func (f fixture) hook(url string) string {
	f.t.Helper()
	made := f.call("POST", "/api/v1/webhooks", object{"url": url, "events": []string{"node.*"}, "description": "chat"}).ok()
	return "/api/v1/webhooks/" + made["webhook"].(object)["id"].(string)
}

// letter creates a dead letter for a webhook: the event of creating the first user.
func (f fixture) letter(path string) {
	f.t.Helper()
	rows := f.call("GET", "/api/v1/audit?kind=user&verb=created", nil).ok()["entries"].([]any)
	at, err := history.ParsePosition(rows[len(rows)-1].(object)["id"].(string))
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = f.ledger.Commit(f.t.Context(), mesh.Actor{Kind: mesh.ActorReplica}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		l := &mesh.DeadLetter{ID: w.Counters.DeadLetter + 1, Webhook: w.Counters.Webhook, Rev: at.Rev, Index: at.Index, Event: "user.created", Attempts: 7, Answer: "503", At: now}
		return []mesh.Event{mesh.DeadLetterPut{Letter: l}}, nil
	})
	if err != nil {
		f.t.Fatal(path, err)
	}
}

const nobody = "http://127.0.0.1:1/"

func TestWebhookOfThisMachineIsRefusedUnlessAllowed(t *testing.T) {
	s := sqlite(t, config{control: func(c *control.Config) { c.LocalWebhooks = false }})
	for _, host := range []string{"127.0.0.1", "LocalHost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0:80", "169.254.169.254", "[fe80::1]", "[fe80::1%25eth0]"} {
		if a := s.call("POST", "/api/v1/webhooks", object{"url": "http://" + host + "/"}); a.status != 400 || !strings.Contains(string(a.body), "webhooks.allow_local") {
			t.Errorf("%s: %d %s", host, a.status, a.body)
		}
	}
	id := s.call("POST", "/api/v1/webhooks", object{"url": "https://10.0.0.7/"}).ok()["webhook"].(object)["id"].(string)
	s.call("PATCH", "/api/v1/webhooks/"+id, object{"url": nobody}).
		fails(400, "Bad Request", "127.0.0.1 is a local address or an address of the mesh; use another address, or set webhooks.allow_local to allow it", "url")
	s.call("PATCH", "/api/v1/webhooks/"+id, object{"description": "x"}).ok()
}

func webhookExamples() map[string]func(f fixture) *answer {
	on := func(method, rest string, body any) func(fixture) *answer {
		return func(f fixture) *answer { return f.call(method, f.hook(nobody)+rest, body) }
	}
	return map[string]func(f fixture) *answer{
		"GET /api/v1/webhooks": func(f fixture) *answer {
			f.hook(nobody)
			return f.call("GET", "/api/v1/webhooks", nil)
		},
		"POST /api/v1/webhooks": func(f fixture) *answer {
			return f.call("POST", "/api/v1/webhooks", object{"url": nobody, "enabled": false})
		},
		"GET /api/v1/webhooks/{webhookId}":         on("GET", "", nil),
		"PATCH /api/v1/webhooks/{webhookId}":       on("PATCH", "", object{"events": []string{}, "enabled": false}),
		"DELETE /api/v1/webhooks/{webhookId}":      on("DELETE", "", nil),
		"POST /api/v1/webhooks/{webhookId}/rotate": on("POST", "/rotate", nil),
		"POST /api/v1/webhooks/{webhookId}/test":   on("POST", "/test", nil),
		"GET /api/v1/webhooks/{webhookId}/failed": func(f fixture) *answer {
			path := f.hook(nobody)
			f.letter(path)
			return f.call("GET", path+"/failed", nil)
		},
		"POST /api/v1/webhooks/{webhookId}/failed/{failedId}/redeliver": func(f fixture) *answer {
			path := f.hook(nobody)
			f.letter(path)
			id := f.call("GET", path+"/failed", nil).ok()["events"].([]any)[0].(object)["id"].(string)
			return f.call("POST", path+"/failed/"+id+"/redeliver", nil)
		},
	}
}

func TestWebhooksAreMadeChangedAndDeleted(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		f := populated(t, s)
		made := f.call("POST", "/api/v1/webhooks", object{"url": "https://receiver.example.com/secret?token=x", "events": []string{"node.created", "node.created", "policyUpdate"}}).ok()
		hook, secret := made["webhook"].(object), made["secret"].(string)
		if !strings.HasPrefix(secret, "flw_") || hook["enabled"] != true || !cmp.Equal(hook["events"], []any{"node.created", "policyUpdate"}) {
			t.Errorf("made %v", made)
		}
		path := "/api/v1/webhooks/" + hook["id"].(string)
		if got := f.call("GET", path, nil).ok()["webhook"]; !cmp.Equal(got, hook) {
			t.Errorf("shown %v, made %v", got, hook)
		}
		if got := f.call("GET", path, nil, s.limited(mesh.RoleRead)).ok()["webhook"].(object)["url"]; got != "https://receiver.example.com" {
			t.Errorf("a reader is shown %v", got)
		}
		changed := f.call("PATCH", path, object{"description": "chat", "enabled": false}).ok()["webhook"].(object)
		if changed["url"] != hook["url"] || changed["description"] != "chat" || changed["enabled"] != false || !cmp.Equal(changed["events"], hook["events"]) {
			t.Errorf("changed %v", changed)
		}
		if events := f.call("PATCH", path, object{"events": []string{}}).ok()["webhook"].(object)["events"]; !cmp.Equal(events, []any{}) {
			t.Errorf("all are asked for and shown is %v", events)
		}
		if other := f.call("POST", path+"/rotate", nil).ok()["secret"]; other == secret {
			t.Error("the secret is the same as before")
		}
		f.call("DELETE", path, nil).ok()
		if left := f.call("GET", "/api/v1/webhooks", nil).ok()["webhooks"]; !cmp.Equal(left, []any{}) {
			t.Errorf("left is %v", left)
		}
		rows := f.call("GET", "/api/v1/audit?kind=webhook", nil).ok()["entries"].([]any)
		if len(rows) != 5 {
			t.Errorf("%d changes are in the audit", len(rows))
		}
		for _, row := range rows {
			for _, when := range []string{"before", "after"} {
				if shape, ok := row.(object)[when].(object); ok && shape["url"] != "https://receiver.example.com" {
					t.Errorf("the audit shows the address %v", shape["url"])
				}
			}
		}
	})
}

func TestWrongWebhooksAreRefused(t *testing.T) {
	f := populated(t, sqlite(t))
	path := f.hook(nobody)
	for _, c := range []struct {
		method, path string
		body         object
		status       int
		text         string
	}{
		{"POST", "/api/v1/webhooks", object{}, 400, "url is required"},
		{"POST", "/api/v1/webhooks", object{"url": "receiver.example.com"}, 400, "must be a URL"},
		{"POST", "/api/v1/webhooks", object{"url": "ftp://receiver.example.com"}, 400, "must be a URL"},
		{"POST", "/api/v1/webhooks", object{"url": "file:///etc/passwd"}, 400, "must be a URL"},
		{"POST", "/api/v1/webhooks", object{"url": "https://me:pass@example.com"}, 400, "must not contain a user name"},
		{"POST", "/api/v1/webhooks", object{"url": "https://example.com/#x"}, 400, "must not have a fragment (#)"},
		{"POST", "/api/v1/webhooks", object{"url": nobody, "events": []string{"node.*", "node.exploded"}}, 400, "node.exploded"},
		{"POST", "/api/v1/webhooks", object{"url": nobody, "events": []string{"nod.*"}}, 400, "nod.*"},
		{"POST", "/api/v1/webhooks", object{"url": nobody, "events": strings.Split(strings.Repeat("node.*,", 51), ",")}, 400, "more than 50"},
		{"POST", "/api/v1/webhooks", object{"url": nobody, "description": strings.Repeat("x", 201)}, 400, "longer than 200"},
		{"PATCH", path, object{"url": ""}, 400, "must be a URL"},
		{"PATCH", "/api/v1/webhooks/99", object{}, 404, "unknown webhook 99"},
		{"GET", "/api/v1/webhooks/first", nil, 404, "unknown webhook"},
		{"DELETE", "/api/v1/webhooks/99", nil, 404, "unknown webhook 99"},
		{"POST", "/api/v1/webhooks/99/test", nil, 404, "unknown webhook 99"},
		{"GET", "/api/v1/webhooks/99/failed", nil, 404, "unknown webhook 99"},
		{"GET", path + "/failed?limit=0", nil, 400, "limit must be"},
		{"GET", path + "/failed?limit=1001", nil, 400, "limit must be"},
		{"GET", path + "/failed?cursor=x", nil, 400, "cursor"},
		{"POST", path + "/failed/7/redeliver", nil, 404, "has no failed event 7"},
	} {
		a := f.call(c.method, c.path, c.body)
		if detail, _ := a.decoded()["detail"].(string); a.status != c.status || !strings.Contains(detail, c.text) {
			t.Errorf("%s %s %v: %d %q, want %d and %q", c.method, c.path, c.body, a.status, detail, c.status, c.text)
		}
	}
	for range 49 {
		f.hook(nobody)
	}
	if a := f.call("POST", "/api/v1/webhooks", object{"url": nobody}); a.status != http.StatusConflict {
		t.Errorf("one more than 50 is answered %d", a.status)
	}
}

func TestReceiverIsTestedAndAskedAgain(t *testing.T) {
	var bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		_, _ = io.WriteString(w, "thank you\n")
	}))
	defer receiver.Close()
	f := populated(t, sqlite(t))
	path := f.hook(receiver.URL)
	f.letter(path)
	f.letter(path)
	if a := f.call("POST", path+"/test", nil).ok(); a["delivered"] != true || a["status"] != 200.0 || a["reply"] != "thank you" || a["problem"] != "" {
		t.Errorf("the test came to %v", a)
	}
	page := f.call("GET", path+"/failed?limit=1", nil).ok()
	newest := page["events"].([]any)[0].(object)
	if page["next"] != "2" || newest["id"] != "2" || newest["event"] != "user.created" || newest["attempts"] != 7.0 {
		t.Errorf("the first page is %v", page)
	}
	page = f.call("GET", path+"/failed?cursor=2", nil).ok()
	if page["next"] != "" || len(page["events"].([]any)) != 1 {
		t.Errorf("the last page is %v", page)
	}
	f.call("POST", path+"/failed/2/redeliver", nil).ok()
	if left := f.call("GET", path+"/failed", nil).ok()["events"].([]any); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if len(bodies) != 2 || !strings.Contains(bodies[0], `"event":"webhook.test"`) || !strings.Contains(bodies[1], `"event":"user.created","type":"userCreated"`) {
		t.Errorf("the receiver got %q", bodies)
	}
}

// Every kind that is added to the audit log must also be available to webhooks.
func TestEveryChangeCanBeAskedFor(t *testing.T) {
	s, r := mesh.Empty(), rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		e := meshgen.Event(r, s)
		s, _ = mesh.Apply(s, s.Rev+1, e)
		if kind, _, _ := api.Describe(s, 0, e); kind != "" && !control.KnownEvent(kind+".changed") {
			t.Fatalf("nobody can ask for events of %s", kind)
		}
	}
}
