package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// write is a change to the only node or user of a fixture.
type write struct {
	method, path string
	body         any
}

// nodeWrites are all operations that change one node. Each makes a new change; the last
// deletes the node.
var nodeWrites = []write{
	{"POST", "/rename/web", nil},
	{"POST", "/rename", nil},
	{"POST", "/expire", object{"expiry": "2090-01-01T00:00:00Z"}},
	{"POST", "/expire?disableExpiry=true", nil},
	{"POST", "/expire", nil},
	{"PUT", "/addresses", object{"ipv4": "100.64.7.1"}},
	{"PUT", "/note", object{"text": "rack 7"}},
	{"PUT", "/approval", object{"approved": false}},
	{"POST", "/approve_routes", object{"routes": []string{"10.1.0.0/16"}}},
	{"POST", "/user?user=bob", nil},
	{"POST", "/tags", object{"tags": []string{"tag:web"}}},
	{"DELETE", "", nil},
}

var userWrites = []write{{"POST", "/rename/ada", nil}, {"DELETE", "", nil}}

func TestEveryWriteOnANodeOrUserTakesIfMatch(t *testing.T) {
	s := sqlite(t)
	f := populated(t, s)
	f.newUser("bob")
	f.ifMatch("node", "/api/v1/node/"+f.node, nodeWrites)
	f.ifMatch("user", "/api/v1/user/"+f.user, userWrites)
}

// An operation that does not enforce If-Match must reject it.
func TestIfMatchIsTakenWhereTheDocumentSaysSo(t *testing.T) {
	s, doc := sqlite(t), readDocument(t)
	placeholder := regexp.MustCompile(`\{\w+\}`)
	for name, op := range doc.operations() {
		method, path, _ := strings.Cut(placeholder.ReplaceAllString(name, "1"), " ")
		if method == "GET" {
			continue
		}
		params, _ := op["parameters"].([]any)
		want, values := "this operation does not support If-Match: nothing was changed; send the request without it", []string{`"x"`, "*"}
		if slices.ContainsFunc(params, func(p any) bool { return doc.follow(p)["name"] == "If-Match" }) {
			want, values = "If-Match must be a single ETag in quotes, or *", []string{" ", "x", `"x`, `"x", "y"`}
		}
		for _, v := range values {
			if a := s.call(method, path, nil, "If-Match: "+v); a.status != http.StatusBadRequest || a.decoded()["detail"] != want {
				t.Errorf("%s with If-Match: %s: %d %s", name, v, a.status, a.body)
			}
		}
	}
	s.call("POST", "/api/v1/nowhere", nil, "If-Match: *").fails(404, "Not Found", "unknown path /api/v1/nowhere; all operations are listed at /api/v1/docs", "")
}

func TestAChangeOfARouteIsBoundToItsNode(t *testing.T) {
	f := populated(t, sqlite(t))
	route := "/api/v1/routes/" + f.route("10.1.0.0/16")
	etag := f.call("GET", "/api/v1/node/"+f.node, nil).header.Get("ETag")
	for _, w := range []write{{"POST", "/disable", nil}, {"PATCH", "", object{"preference": 7}}, {"POST", "/enable", nil}, {"DELETE", "", nil}} {
		stale := f.call(w.method, route+w.path, w.body, `If-Match: "x"`)
		if stale.status != http.StatusPreconditionFailed || stale.header.Get("ETag") != etag || stale.decoded()["current"].(object)["id"] != f.node {
			t.Errorf("%v from something else: %d %s", w, stale.status, stale.body)
		}
		a := f.call(w.method, route+w.path, w.body, "If-Match: "+etag)
		a.ok()
		if w.method == "DELETE" {
			continue
		}
		after := f.call("GET", "/api/v1/node/"+f.node, nil).header.Get("ETag")
		if after == etag || a.header.Get("ETag") != after {
			t.Errorf("%v: was %s, answered %s, is %s", w, etag, a.header.Get("ETag"), after)
		}
		etag = after
	}
}

// ifMatch tries each write with stale versions and with the current one, and checks that
// the response contains the next version.
func (f fixture) ifMatch(kind, path string, writes []write) {
	f.t.Helper()
	for _, w := range writes {
		before := f.call("GET", path, nil)
		current, etag := before.ok()[kind], before.header.Get("ETag")
		for _, stale := range []string{`"0000000000000000"`, `"x"`, `""`} {
			a := f.call(w.method, path+w.path, w.body, "If-Match: "+stale)
			if a.status != http.StatusPreconditionFailed {
				f.t.Fatalf("%v from %s: %d %s", w, stale, a.status, a.body)
			}
			if diff := cmp.Diff(current, a.decoded()["current"]); diff != "" || a.header.Get("ETag") != etag {
				f.t.Errorf("%v: current of %s (-want +got):\n%s", w, a.header.Get("ETag"), diff)
			}
		}
		a := f.call(w.method, path+w.path, w.body, "If-Match: "+etag)
		a.ok()
		if w.method == "DELETE" {
			continue
		}
		if after := f.call("GET", path, nil).header.Get("ETag"); after == etag || a.header.Get("ETag") != after {
			f.t.Errorf("%v: was %s, answered %s, is %s", w, etag, a.header.Get("ETag"), after)
		}
		f.call(w.method, path+w.path, w.body, "If-Match: *").ok()
	}
}

func TestWhatADeviceDoesLeavesItsETag(t *testing.T) {
	f := populated(t, sqlite(t))
	path := "/api/v1/node/" + f.node
	f.route("10.1.0.0/16")
	etag := f.call("GET", path, nil).header.Get("ETag")
	for name, change := range map[string]func(n mesh.Node) mesh.Event{
		"endpoints": func(n mesh.Node) mesh.Event { return mesh.NodeNet{ID: n.ID, Net: meshgen.Net(7)} },
		"online":    func(n mesh.Node) mesh.Event { return mesh.Online{ID: n.ID, Replica: "r", Conn: 1, At: 7} },
		"offline":   func(n mesh.Node) mesh.Event { return mesh.Offline{ID: n.ID, At: 8} },
		"describes itself": func(n mesh.Node) mesh.Event {
			n.Hostname, n.Name, n.OS, n.ClientVersion, n.Host, n.UpdatedAt = "other", "other", "plan9", "2", "{}", n.UpdatedAt+1
			return mesh.NodePut{Node: &n}
		},
		"does not answer":  func(n mesh.Node) mesh.Event { n.Unhealthy = true; return mesh.NodePut{Node: &n} },
		"its time is over": func(n mesh.Node) mesh.Event { n.KeyExpired = true; return mesh.NodePut{Node: &n} },
	} {
		_, err := f.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
			n, _ := w.Nodes.Get(1)
			return []mesh.Event{change(*n)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.call("GET", path, nil).header.Get("ETag"); got != etag {
			t.Errorf("%s: %s, was %s", name, got, etag)
		}
	}
	user := f.call("GET", "/api/v1/user/alice", nil).header.Get("ETag")
	f.register(machine(2, f.preAuthKey(object{"user": "alice"}))).ok()
	if got := f.call("GET", "/api/v1/user/1", nil); got.header.Get("ETag") != user || got.ok()["user"].(object)["nodeCount"] != 2.0 {
		t.Errorf("a user with another node: %s, was %s", got.header.Get("ETag"), user)
	}
}

func TestOfTwoChangesFromOneNodeOneWins(t *testing.T) {
	s := sqlite(t)
	f := populated(t, s)
	etag := f.call("GET", "/api/v1/node/"+f.node, nil).header.Get("ETag")
	oneWins(t, func(i int) int {
		return f.call("POST", fmt.Sprintf("/api/v1/node/%s/rename/web-%d", f.node, i), nil, "If-Match: "+etag).status
	})
}

func TestOneUserIsShownByNameOrID(t *testing.T) {
	f := populated(t, sqlite(t))
	want := f.call("GET", "/api/v1/user", nil).ok()["users"].([]any)[0]
	for _, ref := range []string{"1", "alice", "ALICE"} {
		if diff := cmp.Diff(want, f.call("GET", "/api/v1/user/"+ref, nil).ok()["user"]); diff != "" {
			t.Errorf("%s (-listed +shown):\n%s", ref, diff)
		}
	}
	f.call("GET", "/api/v1/user/bob", nil).fails(404, "Not Found", `unknown user "bob"; list users with: fairlead users list`, "")
}
