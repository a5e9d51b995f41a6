package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	allowAll  = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}`
	allowNone = `{"acls": []}`
)

func (s *service) setPolicy(text string, headers ...string) *answer {
	s.t.Helper()
	return s.call("PUT", "/api/v1/policy", object{"policy": text}, headers...)
}

func TestPolicyIsReadAsItWasSaved(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		text := "// who reaches whom\n" + allowAll + " // \"é\" <&>\n"
		saved := s.call("PUT", "/api/v1/policy", object{"policy": text, "reason": "begin"}).ok()
		read := s.call("GET", "/api/v1/policy", nil)
		if diff := cmp.Diff(saved, read.ok()); diff != "" {
			t.Errorf("saved and read (-saved +read):\n%s", diff)
		}
		want := object{
			"policy": text, "version": "1", "updatedAt": saved["savedAt"], "savedAt": saved["savedAt"], "author": "key:" + prefixOf(s.key), "reason": "begin",
			"source": "api", "confirmBy": nil, "revertTo": "",
		}
		if diff := cmp.Diff(want, saved); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if etag := read.header.Get("ETag"); etag != `"1"` {
			t.Errorf("ETag %s", etag)
		}
	})
}

// Tools written for Headscale look for the text "acl policy not found".
func TestToolsAreToldInTheirWordsThatThereIsNoPolicy(t *testing.T) {
	s := sqlite(t)
	a := s.call("GET", "/api/v1/policy", nil)
	if message, _ := a.decoded()["message"].(string); a.status != http.StatusNotFound || !strings.Contains(message, "acl policy not found") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if etag := a.header.Get("ETag"); etag != `"0"` {
		t.Errorf("ETag %s", etag)
	}
	s.setPolicy(allowNone, `If-Match: "0"`).ok()
}

// Terraform's own tests save a rule without sources and destinations.
func TestRuleWithoutSourcesOrDestinationsAllowsNothing(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	for n := range uint64(2) {
		s.register(machine(n+1, s.preAuthKey(object{"user": "alice"}))).ok()
	}
	for text, allowed := range map[string]bool{
		`{"acls": [{"action": "accept"}]}`:                                     false,
		`{"acls": [{"action": "accept", "src": ["*"]}]}`:                       false,
		`{"acls": [{"action": "accept", "dst": ["*:*"]}]}`:                     false,
		`{"acls": [{"action": "accept", "src": [], "dst": ["*:*"]}]}`:          false,
		`{"acls": [{"action": "accept", "src": ["alice@"], "dst": ["*:22"]}]}`: true, // shows that the check can fail
	} {
		s.setPolicy(text).ok()
		if why := s.call("GET", "/api/v1/policy/why?from=1&to=2&port=22", nil).ok(); why["allowed"] != allowed {
			t.Errorf("%s: %v", text, why)
		}
	}
	if a := s.setPolicy(`{"acls": [{"action": "accept", "sources": ["*"], "dst": ["*:*"]}]}`); a.status != http.StatusBadRequest {
		t.Errorf("a misspelt member: %d %s", a.status, a.body)
	}
}

// Terraform removes a policy by saving an empty one.
func TestEmptyPolicyMeansNoPolicyAndIsAVersion(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		if none := s.call("PUT", "/api/v1/policy", object{}).ok(); none["version"] != "0" || none["policy"] != "" {
			t.Errorf("without a policy nothing is to be removed: %v", none)
		}
		s.setPolicy(allowNone).ok()
		removed := s.call("PUT", "/api/v1/policy", object{"reason": "destroyed"}).ok()
		if removed["version"] != "2" || removed["policy"] != "" || removed["reason"] != "destroyed" || removed["source"] != "api" {
			t.Errorf("%v", removed)
		}
		if w := s.ledger.World(); w.Doc != nil {
			t.Errorf("a policy is in force: %v", w.Doc)
		}
		if a := s.call("GET", "/api/v1/policy", nil); a.status != http.StatusNotFound {
			t.Errorf("%d %s", a.status, a.body)
		}
		if lines := s.log.lines(t, "policy removed: all nodes can reach each other"); len(lines) != 1 || lines[0]["level"] != "WARN" {
			t.Errorf("%v", lines)
		}
		if row := s.call("GET", "/api/v1/audit?kind=policy&limit=1", nil).ok()["entries"].([]any)[0].(object); row["object"] != "2" || row["actor"].(object)["reason"] != "destroyed" {
			t.Errorf("%v", row)
		}
		s.call("POST", "/api/v1/policy/rollback", object{"version": "1"}).ok()
		s.call("PUT", "/api/v1/policy", object{"policy": nil}).ok()
	})
}

// A body that was not meant to remove the policy must not open the network to everyone.
func TestMistakenBodyDoesNotRemoveThePolicy(t *testing.T) {
	s := sqlite(t)
	s.setPolicy(allowNone).ok()
	for _, body := range []string{"", " ", "null", `{"polcy": "{}"}`, `{"acls": []}`, `{"policy": 7}`, `{"policy": {}}`, `{"policy": " "}`, `{"policy": "// nothing"}`} {
		if a := s.call("PUT", "/api/v1/policy", body); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if got := s.call("GET", "/api/v1/policy", nil).ok(); got["version"] != "1" {
		t.Errorf("%v", got)
	}
}

func TestPolicyOfAFileCannotBeSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.hujson")
	if err := os.WriteFile(file, []byte(allowNone), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sqlite(t, config{control: func(c *control.Config) { c.PolicyFile = file }})
	if err := s.control.PolicyFile.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.call("GET", "/api/v1/policy", nil).ok(); got["updatedAt"] != nil || got["source"] != "file" || got["policy"] != allowNone {
		t.Errorf("%v", got)
	}
	a := s.setPolicy(allowAll)
	if message, _ := a.decoded()["message"].(string); a.status != http.StatusBadRequest || !strings.Contains(message, "update is disabled for modes other than 'database'") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestProblemsOfAPolicyHaveTheirPlace(t *testing.T) {
	s := sqlite(t)
	text := "{\n  \"acls\": [\n    {\"action\": \"accept\", \"src\": [\"group:ops\"], \"dst\": [\"*:*\"]},\n  ],\n}"
	for _, path := range []string{"PUT /api/v1/policy", "POST /api/v1/policy/check", "POST /api/v1/policy/preview", "POST /api/v1/policy/test", "POST /api/v1/policy/access"} {
		method, path, _ := strings.Cut(path, " ")
		a := s.call(method, path, object{"policy": text})
		problems, _ := a.decoded()["problems"].([]any)
		if a.status != http.StatusBadRequest || len(problems) != 1 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		p := problems[0].(object)
		if p["line"] != 3.0 || p["column"] != 34.0 || !strings.Contains(a.decoded()["detail"].(string), "line 3, column 34: ") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	failing := `{"acls": [],` + "\n" + `"tests": [{"src": "alice", "accept": ["100.64.0.1:22"]}]}`
	a := s.setPolicy(failing)
	if problems, _ := a.decoded()["problems"].([]any); a.status != http.StatusBadRequest || len(problems) != 1 || problems[0].(object)["line"] != 2.0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	got := s.call("POST", "/api/v1/policy/test", object{"policy": failing}).ok()
	if got["tests"] != 1.0 || len(got["failures"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
	if a := s.call("POST", "/api/v1/policy/check", object{"policy": allowNone}); string(a.body) != "{}" {
		t.Errorf("a policy without problems: %s", a.body)
	}
	if a := s.call("GET", "/api/v1/policy", nil); a.status != http.StatusNotFound {
		t.Errorf("something was saved: %s", a.body)
	}
}

func TestStalePolicyIsAnsweredWithTheCurrentOne(t *testing.T) {
	s := sqlite(t)
	etag := s.setPolicy(allowNone).header.Get("ETag")
	current := s.setPolicy(allowAll, "If-Match: "+etag).ok()
	for _, path := range []string{"PUT /api/v1/policy", "POST /api/v1/policy/rollback"} {
		method, path, _ := strings.Cut(path, " ")
		a := s.call(method, path, object{"policy": allowNone, "version": 1}, "If-Match: "+etag)
		if a.status != http.StatusPreconditionFailed {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		if diff := cmp.Diff(current, a.decoded()["current"].(object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	s.setPolicy(allowNone, "If-Match: *").ok()
	for _, header := range []string{"latest", `"-1"`, `"1", "2"`} {
		if a := s.setPolicy(allowAll, "If-Match: "+header); a.status != http.StatusBadRequest {
			t.Errorf("If-Match: %s: %d", header, a.status)
		}
	}
}

func TestOfTwoSavesFromOneVersionOneWins(t *testing.T) {
	s := sqlite(t)
	etag := s.listen().setPolicy(allowNone).header.Get("ETag")
	oneWins(t, func(i int) int { return s.setPolicy(allowAll+strings.Repeat("\n", i), "If-Match: "+etag).status })
}

// oneWins makes concurrent changes that all start from the same version, and checks that exactly
// one succeeds.
func oneWins(t *testing.T, change func(i int) (status int)) {
	t.Helper()
	var wins, stale atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			switch change(i) {
			case http.StatusOK:
				wins.Add(1)
			case http.StatusPreconditionFailed:
				stale.Add(1)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 || stale.Load() != 7 {
		t.Errorf("%d saved, %d stale", wins.Load(), stale.Load())
	}
}

func TestPendingPolicyKeepsOthersFromSaving(t *testing.T) {
	s := sqlite(t)
	s.setPolicy(allowAll).ok()
	for _, within := range []string{"1s", "25h", "soon", "-5m"} {
		if a := s.call("PUT", "/api/v1/policy", object{"policy": allowNone, "confirmWithin": within}); a.status != http.StatusBadRequest {
			t.Errorf("confirmWithin %s: %d", within, a.status)
		}
	}
	saved := s.call("PUT", "/api/v1/policy", object{"policy": allowNone, "confirmWithin": "5m"}).ok()
	if saved["confirmBy"] == nil || saved["revertTo"] != "1" {
		t.Errorf("%v", saved)
	}
	if a := s.setPolicy(allowAll); a.status != http.StatusConflict || !strings.Contains(string(a.body), "fairlead policy confirm") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if reverted := s.call("POST", "/api/v1/policy/revert", nil).ok(); reverted["policy"] != allowAll || reverted["version"] != "3" {
		t.Errorf("%v", reverted)
	}
	if a := s.call("POST", "/api/v1/policy/confirm", nil); a.status != http.StatusConflict {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestVersionsOfThePolicyArePaged(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		for i := range 5 {
			s.setPolicy(allowNone + strings.Repeat("\n", i)).ok()
		}
		versions := func(query string) (got []string) {
			for _, v := range s.call("GET", "/api/v1/policy/versions"+query, nil).ok()["versions"].([]any) {
				got = append(got, v.(object)["version"].(string))
			}
			return got
		}
		for query, want := range map[string][]string{
			"": {"5", "4", "3", "2", "1"}, "?limit=2": {"5", "4"}, "?before=4&limit=2": {"3", "2"}, "?before=1": nil,
		} {
			if diff := cmp.Diff(want, versions(query)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
		for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?before=-1", "?before=x"} {
			if a := s.call("GET", "/api/v1/policy/versions"+query, nil); a.status != http.StatusBadRequest {
				t.Errorf("%s: %d", query, a.status)
			}
		}
		if got := s.call("GET", "/api/v1/policy/versions/2", nil).ok(); got["policy"] != allowNone+"\n" {
			t.Errorf("%v", got)
		}
		for path, status := range map[string]int{"versions/6": 404, "versions/0": 404, "versions/x": 400, "diff?from=1&to=9": 404} {
			if a := s.call("GET", "/api/v1/policy/"+path, nil); a.status != status {
				t.Errorf("%s: %d, want %d", path, a.status, status)
			}
		}
		want := object{"from": "1", "to": "2", "diff": "--- version 1\n+++ version 2\n@@ -1 +1 @@\n-{\"acls\": []}\n\\ No newline at end of file\n+{\"acls\": []}\n"}
		if diff := cmp.Diff(want, s.call("GET", "/api/v1/policy/diff?from=1&to=2", nil).ok()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDiffOfPoliciesTellsTheirEffectOnTheNodesThereAre(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	for n := range uint64(2) {
		s.register(machine(n, key)).ok()
	}
	for _, text := range []string{allowAll, allowNone, "{}"} {
		s.setPolicy(text).ok()
	}
	for query, want := range map[string][2]float64{"from=0&to=1": {0, 0}, "from=1&to=2": {2, 0}, "from=2&to=3": {0, 2}, "from=1&to=3": {0, 0}} {
		effect, _ := s.call("GET", "/api/v1/policy/diff?effect=true&"+query, nil).ok()["effect"].(object)
		if effect == nil || effect["lost"] != want[0] || effect["gained"] != want[1] {
			t.Errorf("%s: %v, want %v pairs lost and gained", query, effect, want)
		}
	}
}

// TestAllThatLooksAtADraftTakesATurn calls each operation that evaluates a draft, with a key that
// has no turns left.
func TestAllThatLooksAtADraftTakesATurn(t *testing.T) {
	s := sqlite(t)
	s.setPolicy(allowAll).ok()
	keys, _ := s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)
	id, _ := keys[0].(object)["id"].(string)
	s.server.WithoutTurn(mesh.ActorKey, id)
	for call, body := range map[string]any{
		"POST /api/v1/policy/check":           object{"policy": allowAll},
		"POST /api/v1/policy/preview":         object{"policy": allowAll},
		"POST /api/v1/policy/test":            object{"policy": allowAll},
		"POST /api/v1/policy/why":             object{"policy": allowAll, "from": "a", "to": "b"},
		"POST /api/v1/policy/access":          object{"policy": allowAll},
		"GET /api/v1/policy/diff?effect=true": nil,
	} {
		method, path, _ := strings.Cut(call, " ")
		if a := s.call(method, path, body); a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "16 policy evaluations") {
			t.Errorf("%s: %d %s", call, a.status, a.body)
		}
	}
	s.call("GET", "/api/v1/policy/diff", nil).ok() // comparing only the texts is cheap, so it needs no turn
}

func TestPolicyMayBeAMebibyteHoweverItIsEscaped(t *testing.T) {
	s := sqlite(t)
	text := allowNone + " //" + strings.Repeat("<", 1<<20-len(allowNone)-4) + "\n"
	s.call("PUT", "/api/v1/policy", object{"policy": text}).ok() // each < is escaped as six characters
	if a := s.setPolicy(text + " "); a.status != http.StatusBadRequest {
		t.Errorf("a byte more: %d", a.status)
	}
	if a := s.setPolicy(strings.Repeat(" ", 9<<20)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("9 MiB: %d", a.status)
	}
}

func TestPolicyWhyNamesTheRule(t *testing.T) {
	f := populated(t, sqlite(t))
	f.setPolicy("{\"acls\": [\n{\"action\": \"accept\", \"src\": [\"alice\"], \"dst\": [\"*:22\"]}]}").ok()
	why := func(query string) object { return f.call("GET", "/api/v1/policy/why?"+query, nil).ok() }
	yes := why("from=alice&to=host-1&port=22")
	if rules := yes["rules"].([]any); yes["allowed"] != true || len(rules) != 1 || rules[0].(object)["line"] != 2.0 {
		t.Errorf("%v", yes)
	}
	no := why("from=alice&to=host-1&port=443")
	if nearest := no["nearest"].([]any); no["allowed"] != false || len(nearest) != 1 || nearest[0].(object)["line"] != 2.0 {
		t.Errorf("%v", no)
	}
	for query, status := range map[string]int{
		"from=alice&to=nowhere": 404, "from=alice": 400, "from=alice&to=host-1&port=0": 400, "from=alice&to=host-1&port=70000": 400, "from=alice&to=host-1&proto=tpc": 400,
	} {
		if a := f.call("GET", "/api/v1/policy/why?"+query, nil); a.status != status {
			t.Errorf("%s: %d, want %d: %s", query, a.status, status, a.body)
		}
	}
}

func TestPolicyWhyAnswersByADraft(t *testing.T) {
	f := populated(t, sqlite(t))
	f.setPolicy(allowNone).ok()
	draft := "{\"acls\": [\n{\"action\": \"accept\", \"src\": [\"alice\"], \"dst\": [\"*:22\"]}]}"
	yes := f.call("POST", "/api/v1/policy/why", object{"policy": draft, "from": "alice", "to": "host-1", "port": "22"}).ok()
	if rules := yes["rules"].([]any); yes["allowed"] != true || len(rules) != 1 || rules[0].(object)["line"] != 2.0 {
		t.Errorf("%v", yes)
	}
	if in := f.call("GET", "/api/v1/policy/why?from=alice&to=host-1&port=22", nil).ok(); in["allowed"] != false {
		t.Errorf("in force: %v", in)
	}
}

func TestAccessMapSaysWhatADraftTakesAway(t *testing.T) {
	f := populated(t, sqlite(t))
	key := f.call("POST", "/api/v1/preauthkey", object{"user": "alice"}).ok()["preAuthKey"].(object)["key"].(string)
	f.call("POST", "/api/v1/machine", machine(2, key), noKey).ok()
	f.setPolicy("{\"acls\": [\n{\"action\": \"accept\", \"src\": [\"alice\"], \"dst\": [\"*:22\"]}]}").ok()
	got := f.call("POST", "/api/v1/policy/access", object{"policy": allowNone}).ok()
	want := object{
		"from": 0.0, "to": 0.0, "ports": []any{}, "pairs": 0.0, "of": 2.0, "own": false, "lost": []any{"port 22"}, "gained": []any{},
		"lostPairs": 2.0, "gainedPairs": 0.0, "changedPairs": 0.0, "rules": []any{object{"rule": 0.0, "before": 2.0, "after": 0.0}},
	}
	if diff := cmp.Diff([]any{want}, got["cells"]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if rule := got["rules"].([]any)[0].(object); rule["line"] != 2.0 || rule["draftLine"] != 0.0 || rule["change"] != "removed" {
		t.Errorf("%v", rule)
	}
	for _, refused := range []struct {
		body   object
		status int
	}{
		{object{"from": []string{"nowhere"}}, 404},
		{object{"by": "colour"}, 400},
		{object{"to": slices.Repeat([]string{"alice"}, 101)}, 400},
	} {
		if a := f.call("POST", "/api/v1/policy/access", refused.body); a.status != refused.status {
			t.Errorf("%v: %d, want %d: %s", refused.body, a.status, refused.status, a.body)
		}
	}
}

func TestPreviewSaysWhatTagsWouldChange(t *testing.T) {
	f := populated(t, sqlite(t))
	key := f.call("POST", "/api/v1/preauthkey", object{"user": "alice", "reusable": true}).ok()["preAuthKey"].(object)["key"].(string)
	f.call("POST", "/api/v1/machine", machine(2, key), noKey).ok()
	id := f.call("POST", "/api/v1/machine", machine(3, key), noKey).ok()["node"].(object)["id"].(string)
	f.setPolicy(`{"tagOwners": {"tag:web": ["alice@"]}, "acls": [{"action": "accept", "src": ["alice@"], "dst": ["tag:web:443"]}]}`).ok()

	retag := func(nodes ...string) object {
		return object{"retag": object{"nodes": nodes, "tags": []string{"tag:web"}}}
	}
	got := f.call("POST", "/api/v1/policy/preview", retag(id)).ok()
	if got["gained"].(float64) == 0 || got["lost"].(float64) != 0 {
		t.Errorf("gained %v, lost %v", got["gained"], got["lost"])
	}
	if tags := f.call("GET", "/api/v1/node/"+id, nil).ok()["node"].(object)["tags"].([]any); len(tags) > 0 {
		t.Errorf("a preview gave it %v", tags)
	}
	if status := f.call("POST", "/api/v1/policy/preview", retag("99999")).status; status != 404 {
		t.Errorf("a node that is not there: %d", status)
	}
	for name, body := range map[string]object{
		"nothing":     {},
		"no tags":     {"retag": object{"nodes": []string{id}, "tags": []string{}}},
		"unknown tag": {"retag": object{"nodes": []string{id}, "tags": []string{"tag:db"}}},
		"too many":    {"retag": object{"nodes": slices.Repeat([]string{id}, 1001), "tags": []string{"tag:web"}}},
	} {
		if status := f.call("POST", "/api/v1/policy/preview", body).status; status != 400 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

func TestPreviewNamesNoLineWhereThereIsNoPolicy(t *testing.T) {
	f := populated(t, sqlite(t))
	key := f.call("POST", "/api/v1/preauthkey", object{"user": "alice"}).ok()["preAuthKey"].(object)["key"].(string)
	f.call("POST", "/api/v1/machine", machine(2, key), noKey).ok()
	shifts := f.call("POST", "/api/v1/policy/preview", object{"policy": allowNone}).ok()["shifts"].([]any)
	if len(shifts) == 0 {
		t.Error("nobody loses anything")
	}
	for _, shift := range shifts {
		if diff := cmp.Diff([]any{}, shift.(object)["lostLines"]); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	}
}

func TestChangesOfThePolicyAreAudited(t *testing.T) {
	s := sqlite(t)
	u := &auditor{service: s, seen: len(s.audit())}
	by := func(reason string) mesh.Actor {
		return mesh.Actor{Kind: mesh.ActorKey, ID: "1", Name: prefixOf(s.key), Addr: "127.0.0.1", RequestID: "r1", Reason: reason}
	}
	call := func(method, path string, body any) *answer { return s.call(method, path, body, "X-Request-Id: r1") }
	put := call("PUT", "/api/v1/policy", object{"policy": allowNone, "reason": "begin", "confirmWithin": "1m"})
	row := u.wrote(by("begin"), put, "created policy 1")[0]
	if after := row["after"].(object); after["author"] != put.ok()["author"] || strings.Contains(fmt.Sprint(after), "acls") {
		t.Errorf("%v", row)
	}
	row = u.wrote(by(""), call("POST", "/api/v1/policy/confirm", nil), "changed policy 1")[0]
	if row["before"].(object)["confirmBy"] == nil || row["after"].(object)["confirmBy"] != nil {
		t.Errorf("%v", row)
	}
}

func TestUsersWhoDoNotExistAreWarnedOf(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	const typo = `{"groups": {"group:a": ["alice", "nobdy"]}, "tagOwners": {"tag:web": ["bob@"]}, "acls": [{"action": "accept", "src": ["group:a"], "dst": ["carol@example.com:22"]}]}`
	warnings := []any{}
	for _, name := range []string{"bob", "carol@example.com", "nobdy"} {
		warnings = append(warnings, object{"line": 0.0, "column": 0.0, "text": "unknown user " + name})
	}
	draft := object{"policy": typo}
	for range 2 { // the second save is a replay
		for call, got := range map[string]object{
			"check": s.call("POST", "/api/v1/policy/check", draft).ok(),
			"save":  s.call("PUT", "/api/v1/policy", draft, "Idempotency-Key: typo").ok(),
		} {
			if diff := cmp.Diff(warnings, got["warnings"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", call, diff)
			}
		}
	}
	draft["policy"] = `{"groups": {"group:a": ["alice"]}, "acls": [{"action": "accept", "src": ["group:a"], "dst": ["*:*"]}]}`
	if got := s.call("POST", "/api/v1/policy/check", draft).ok(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := s.call("PUT", "/api/v1/policy", draft).ok(); got["warnings"] != nil {
		t.Errorf("%v", got)
	}
}
