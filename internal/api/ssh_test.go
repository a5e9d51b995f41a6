package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// session starts an SSH session from node 901 to 902 as a user, which waits for
// approval, and returns its code.
func (s *service) session(user string) string {
	s.t.Helper()
	const rules = `{"tagOwners": {"tag:web": [], "tag:a": []}, "ssh": [{"action": "check", "src": ["user900@"], "dst": ["user900@"], "users": ["autogroup:nonroot"], "checkPeriod": "1h"}]}`
	_, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return []mesh.Event{
			mesh.UserPut{User: meshgen.User(900)},
			mesh.NodePut{Node: meshgen.Node(901, 900)},
			mesh.NodePut{Node: meshgen.Node(902, 900)},
			mesh.PolicyPut{Policy: &mesh.Policy{Version: w.Counters.Policy + 1, Source: "api", Text: rules, SavedAt: now}},
		}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ask := control.SSHAsk{SSHSession: control.SSHSession{Src: 901, Dst: 902, User: user}, MachineKey: meshgen.MachineKey(902)}
	if answer, err := s.control.SSH.Check(s.t.Context(), mesh.Actor{}, ask); err != nil || answer.Verdict != control.SSHAskAgain {
		s.t.Fatalf("%+v, %v", answer, err)
	}
	return ask.Code()
}

func TestWaitingSessionsAreListedAndApproved(t *testing.T) {
	s := sqlite(t)
	code := s.session("ana")
	session := object{"sourceId": "901", "sourceName": "host-901", "sourceUser": "user900", "targetId": "902", "targetName": "host-902", "sshUser": "ana"}
	pending := s.call("GET", "/api/v1/ssh/pending", nil).ok()["sessions"].([]any)
	if len(pending) != 1 {
		t.Fatalf("pending: %v", pending)
	}
	delete(pending[0].(object), "since")
	if diff := cmp.Diff(object{"code": code, "session": session}, pending[0]); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	grant := s.call("POST", "/api/v1/ssh/approve", object{"code": strings.ToLower(code)}).ok()["grant"].(object)
	if grant["rejected"] != false || !strings.HasPrefix(grant["by"].(string), "key:") || !cmp.Equal(grant["session"], any(session)) {
		t.Errorf("grant %v", grant)
	}
	if a := s.call("GET", "/api/v1/ssh/pending", nil); string(a.body) != `{"sessions":[]}` {
		t.Errorf("still pending: %s", a.body)
	}
	s.call("POST", "/api/v1/ssh/reject", object{"code": code, "reason": "a mistake"}).ok()
	rows := s.audit()
	for i, want := range []struct{ verb, reason, after string }{{"created", "", `"rejected":false`}, {"changed", "a mistake", `"rejected":true`}} {
		row := rows[len(rows)-2+i]
		if row.Kind != "sshgrant" || row.Verb != want.verb || row.Actor.Reason != want.reason || !strings.Contains(string(row.After), want.after) {
			t.Errorf("audit: %+v", row)
		}
	}
}

func TestSessionsThatCannotBeAnswered(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	code := s.session("ana")
	const unknown = "no SSH session is waiting with the code ABCD-EFGH; see fairlead ssh list, or fairlead auth list for devices waiting to join"
	s.call("POST", "/api/v1/ssh/approve", object{"code": "abcdefgh"}).fails(404, "Not Found", unknown, "")
	s.call("POST", "/api/v1/ssh/reject", object{"code": "abcdefgh"}).fails(404, "Not Found", unknown, "")
	s.call("POST", "/api/v1/ssh/approve", object{"code": "hello"}).
		fails(400, "Bad Request", `invalid code "hello": use a code such as ABCD-EFGH, from the waiting terminal or from: fairlead ssh list`, "code")
	s.call("POST", "/api/v1/ssh/approve", object{}).fails(400, "Bad Request", "code is required", "code")
	s.call("POST", "/api/v1/ssh/reject", object{"code": code, "reason": "two\nlines"}).
		fails(400, "Bad Request", "reason contains the unprintable character U+000A", "reason")
	s.call("POST", "/api/v1/auth/approve", object{"user": "alice", "authId": code}).
		fails(404, "Not Found", code+" is the code of an SSH session, not of a device; approve it with: fairlead ssh approve "+code, "")
}
