package api_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// arrive makes the n-th device ask to join without a key, and wait for approval. It
// returns the link that the device shows.
func (s *service) arrive(n uint64) (link string) {
	s.t.Helper()
	device := mesh.Actor{Kind: mesh.ActorNode, Addr: "192.0.2.7"}
	ask := control.Joining{
		Proven:     true,
		MachineKey: meshgen.MachineKey(n), NodeKey: meshgen.NodeKey(n), Host: control.Host{Hostname: fmt.Sprintf("phone-%d", n), OS: "iOS"},
	}
	first, err := s.control.Joins.Join(s.t.Context(), device, ask)
	if err != nil {
		s.t.Fatal(err)
	}
	ask.Followup = first.Link
	run(s.t, func(ctx context.Context) error {
		_, _ = s.control.Joins.Join(ctx, device, ask) // returns when the test ends at the latest
		return nil
	})
	waits := func() bool {
		for _, l := range s.control.Logins.Waiting() {
			if l.NodeKey == ask.NodeKey {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(10 * time.Second); !waits(); runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatal("the device does not wait")
		}
	}
	return first.Link
}

func TestWaitingDevicesAreListedAndApproved(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	link := s.arrive(1)
	code := identity.LoginCode(link)
	pending := s.call("GET", "/api/v1/auth/pending", nil).ok()["logins"].([]any)
	want := object{
		"code": code, "machineKey": machineKey(1), "nodeKey": nodeKey(1), "hostname": "phone-1", "os": "iOS", "address": "192.0.2.7", "tags": []any{},
	}
	if len(pending) != 1 {
		t.Fatalf("pending: %v", pending)
	}
	delete(pending[0].(object), "since")
	if diff := cmp.Diff(want, pending[0]); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	got := s.call("POST", "/api/v1/auth/approve", object{"user": "alice", "authId": strings.ToLower(code)}).ok()
	node, login := got["node"].(object), got["login"].(object)
	if node["givenName"] != "phone-1" || node["registerMethod"] != "REGISTER_METHOD_CLI" || node["user"].(object)["name"] != "alice" || node["preAuthKey"] != nil {
		t.Errorf("node %v", node)
	}
	if login["user"].(object)["name"] != "alice" || login["rejected"] != "" || login["nodeKey"] != nodeKey(1) {
		t.Errorf("login %v", login)
	}
	if a := s.call("GET", "/api/v1/auth/pending", nil); string(a.body) != `{"logins":[]}` {
		t.Errorf("still pending: %s", a.body)
	}
	if lines := s.log.lines(t, "device approved"); len(lines) != 1 || lines[0]["user"] != "alice" || lines[0]["hostname"] != "phone-1" {
		t.Errorf("log: %v", lines)
	}
	rows := s.audit()
	if row := rows[len(rows)-2]; row.Kind != "login" || row.Verb != "created" || row.Actor.Kind != mesh.ActorKey || !strings.Contains(string(row.After), `"name":"alice"`) {
		t.Errorf("audit: %+v", row)
	}
	if row := rows[len(rows)-1]; row.Kind != "node" || row.Verb != "created" || row.Actor.Kind != mesh.ActorNode {
		t.Errorf("audit: %+v", row)
	}
}

func TestOlderToolsRegisterByQueryOrBody(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	for n, send := range []func(token string) *answer{
		func(token string) *answer { return s.call("POST", "/api/v1/node/register?user=alice&key="+token, nil) },
		func(token string) *answer {
			return s.call("POST", "/api/v1/node/register", object{"user": "1", "key": token})
		},
		func(token string) *answer {
			return s.call("POST", "/api/v1/node/register?user=alice&key="+token, object{"user": "alice", "key": token})
		},
		func(token string) *answer {
			return s.call("POST", "/api/v1/auth/register", object{"user": 1, "auth_id": token})
		},
	} {
		token := identity.LoginToken(s.arrive(uint64(n)))
		if node := send(token).ok()["node"].(object); node["nodeKey"] != nodeKey(uint64(n)) {
			t.Errorf("%d: %v", n, node)
		}
	}
}

func TestLoginsThatCannotBeAnswered(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	link := s.arrive(1)
	const (
		unknown   = "no device is waiting with the code ABCD-EFGH: it has already joined, or has stopped waiting. Check fairlead nodes list and fairlead auth list, or use the full login link"
		malformed = "invalid code or login link; copy the code, such as ABCD-EFGH, or the link from the login page of the device"
	)
	s.call("POST", "/api/v1/auth/approve", object{"user": "alice", "authId": "abcdefgh"}).fails(404, "Not Found", unknown, "")
	s.call("POST", "/api/v1/auth/reject", object{"authId": "ABCD-EFGH"}).fails(404, "Not Found", unknown, "")
	s.call("POST", "/api/v1/auth/approve", object{"user": "alice", "authId": "hskey-authreq-1"}).fails(400, "Bad Request", malformed, "authId")
	s.call("POST", "/api/v1/auth/approve", object{"user": "alice"}).fails(400, "Bad Request", "authId is required", "authId")
	s.call("POST", "/api/v1/auth/approve", object{"authId": link}).fails(400, "Bad Request", "user is required", "user")
	s.call("POST", "/api/v1/node/register?key="+link, nil).fails(400, "Bad Request", "specify the user who will own the node", "user")
	s.call("POST", "/api/v1/auth/approve", object{"user": "bob", "authId": link}).
		fails(404, "Not Found", `unknown user "bob"; list users with: fairlead users list`, "")
	s.call("POST", "/api/v1/auth/reject", object{"authId": link, "reason": "two\nlines"}).
		fails(400, "Bad Request", "reason contains the unprintable character U+000A", "reason")
	s.call("POST", "/api/v1/auth/reject", object{"authId": link, "reason": "not yet"}).ok()
	if n := s.ledger.World().Nodes.Len(); n != 0 {
		t.Errorf("%d nodes", n)
	}
}
