package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// A member learns whether their device reaches a device that it sees, and by which of their own properties, and
// nothing about rules, other devices and other people.
func TestMembersAskWhatTheirOwnDevicesReach(t *testing.T) {
	f := populated(t, sqlite(t))
	m := f.member()
	foreign, _ := f.ledger.World().Nodes.Get(1)
	save := func(policy string) {
		t.Helper()
		f.call("PUT", "/api/v1/policy", object{"policy": policy}).ok()
	}
	const sees = `// because of the merger
		{"action": "accept", "src": ["group:secret", "group:mine"], "dst": ["group:other:22"]},
		{"action": "accept", "src": ["group:other"], "dst": ["group:secret:80"]}`
	const groups = `"groups": {"group:mine": ["person1@"], "group:secret": ["person1@"], "group:other": ["alice@"]}`
	ask := func(from, to, more string) *answer {
		return m.call("GET", "/api/v1/policy/why?from="+from+"&to="+to+more, nil, m.token)
	}

	save(`{` + groups + `, "acls": [` + sees + `]}`)
	for port, want := range map[string]bool{"22": true, "80": false} {
		a := ask(m.node, foreign.Name, "&port="+port).ok()
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if a["allowed"] != want || len(a["nearest"].([]any)) > 0 || len(a["at"].([]any)) > 0 {
			t.Errorf("port %s: %s", port, text)
		}
		for _, hidden := range []string{"group:other", "merger", "alice"} {
			if strings.Contains(string(text), hidden) {
				t.Errorf("port %s: the answer contains %s: %s", port, hidden, text)
			}
		}
		if rules := a["rules"].([]any); want && (len(rules) != 1 || !strings.Contains(string(text), "group:secret") || rules[0].(object)["line"] != 0.) {
			t.Errorf("port %s: %s", port, text)
		}
	}
	ask(m.node, m.node, "&port=22").ok()

	save(`{` + groups + `, "acls": [{"action": "accept", "src": ["group:other"], "dst": ["group:other:22"]}]}`)
	for _, ref := range []string{f.node, foreign.Name, foreign.IPv4.String()} {
		missing := ask(m.node, "4711", "")
		got := ask(m.node, ref, "")
		if got.status != http.StatusNotFound || strings.ReplaceAll(string(got.body), ref, "4711") != string(missing.body) {
			t.Errorf("a device that the member's device does not see: %d %s, want %s", got.status, got.body, missing.body)
		}
		if got := ask(ref, m.node, ""); got.status != http.StatusNotFound {
			t.Errorf("another source: %d %s", got.status, got.body)
		}
	}
	for _, to := range []string{"alice", "group:other", "tag:web", "10.0.0.1"} {
		if got := ask(m.node, to, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", to, got.status, got.body)
		}
	}
	m.call("POST", "/api/v1/policy/why", object{"from": m.node, "to": m.node, "policy": "{}"}, m.token).fails(403, "Forbidden",
		"Forbidden: this operation requires the role read; user person1 has member", "")
}
