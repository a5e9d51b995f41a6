package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOlderToolsExpireByQueryOrBody(t *testing.T) {
	f := populated(t, sqlite(t))
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	for _, c := range []struct {
		name, query string
		body        any
		expiry      string // "" means never, "past" a time in the past
	}{
		{"a time in the query", "?expiry=" + at, nil, at},
		{"nothing", "", nil, "past"},
		{"never, in the query", "?disableExpiry=true", nil, ""},
		{"a time in the body", "", object{"expiry": at}, at},
		{"null", "", object{"expiry": nil}, "past"},
		{"never, in the body", "", object{"disableExpiry": true}, ""},
		{"an unset time", "?expiry=0001-01-01T00:00:00Z", nil, "past"},
		{"back again", "", object{"expiry": at}, at},
		{"a time that has passed", "", object{"expiry": "2020-01-01T00:00:00Z"}, "past"},
		{"snake case", "", object{"disable_expiry": true}, ""},
		{"empty query", "?expiry=", nil, "past"},
	} {
		node := f.call("POST", "/api/v1/node/"+f.node+"/expire"+c.query, c.body).ok()["node"].(object)
		expired := c.expiry == "past"
		got, _ := node["expiry"].(string)
		if node["expired"] != expired || !expired && got != c.expiry || expired && got == "" {
			t.Errorf("%s: expiry %v, expired %v", c.name, node["expiry"], node["expired"])
		}
	}
	if lines := f.log.lines(t, "node expiry changed"); len(lines) < 2 || lines[0]["expiry"] != at || lines[1]["expiry"] != "never" {
		t.Errorf("log: %v", lines)
	}
	path := "/api/v1/node/" + f.node + "/expire"
	f.call("POST", path, object{"expiry": at, "disableExpiry": true}).
		fails(400, "Bad Request", "specify only one of expiry and disableExpiry", "disableExpiry")
	f.call("POST", path+"?expiry=soon", nil).fails(400, "Bad Request", "expiry must be a time such as 2027-01-31T12:00:00Z", "expiry")
	f.call("POST", path+"?disableExpiry=perhaps", nil).fails(400, "Bad Request", "invalid value for parameter disableExpiry", "disableExpiry")
	f.call("POST", "/api/v1/node/9/expire", nil).fails(404, "Not Found", `unknown node "9"; list nodes with: fairlead nodes list`, "")
}

func TestSeveralNodesExpireAtOnce(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	for n := range uint64(3) {
		s.register(machine(n, key)).ok()
	}
	for _, c := range []struct {
		body object
		want string
	}{
		{object{"nodes": []any{"host-0", "100.64.0.2", 1}}, `{"alreadyExpired":0,"expired":2}`},
		{object{"allOffline": true}, `{"alreadyExpired":2,"expired":1}`},
		{object{"all_offline": true}, `{"alreadyExpired":3,"expired":0}`},
		{object{"all": true, "nodes": nil}, `{"alreadyExpired":3,"expired":0}`},
	} {
		if a := s.call("POST", "/api/v1/node/expire", c.body); string(a.body) != c.want {
			t.Errorf("%v: %s, want %s", c.body, a.body, c.want)
		}
	}
	const one = "specify exactly one of nodes, all and allOffline"
	for _, body := range []object{nil, {"all": false}, {"all": true, "allOffline": true}, {"all": true, "nodes": []string{"1"}}} {
		s.call("POST", "/api/v1/node/expire", body).fails(400, "Bad Request", one, "")
	}
	s.call("POST", "/api/v1/node/expire", object{"nodes": []string{"1", "nowhere"}}).
		fails(404, "Not Found", `unknown node "nowhere"; list nodes with: fairlead nodes list`, "")
	if lines := s.log.lines(t, "nodes expired"); len(lines) != 4 || lines[0]["nodes"] != 2.0 {
		t.Errorf("log: %v", lines)
	}
}

func TestNodesAreRenamedTaggedAndGivenAddresses(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	for n := range uint64(2) {
		s.register(machine(n, key)).ok()
	}
	node := func(method, path string, body any) object { return s.call(method, path, body).ok()["node"].(object) }

	if n := node("POST", "/api/v1/node/1/rename/Web", nil); n["givenName"] != "web" || n["name"] != "host-0" {
		t.Errorf("%v", n)
	}
	s.call("POST", "/api/v1/node/2/rename/web", nil).
		fails(409, "Conflict", `node 1 already has the name "web"; rename that node first, or choose another name`, "")
	s.call("POST", "/api/v1/node/2/rename/a%20b", nil).
		fails(400, "Bad Request", `invalid node name "a b": use at most 63 letters, digits and hyphens, with no hyphen at either end`, "newName")
	if n := node("POST", "/api/v1/node/web/rename", nil); n["givenName"] != "host-0" {
		t.Errorf("%v", n)
	}

	n := node("POST", "/api/v1/node/1/tags", object{"tags": []string{"tag:web", "tag:db", "tag:web"}})
	if diff := cmp.Diff([]any{"tag:db", "tag:web"}, n["tags"]); diff != "" || n["user"].(object)["name"] != "tagged-devices" || n["createdBy"].(object)["name"] != "alice" {
		t.Errorf("%v (-want +got):\n%s", n, diff)
	}
	const last = "cannot remove the last tag of a node; delete the node and let it join again with a pre-auth key of a user"
	s.call("POST", "/api/v1/node/1/tags", object{"tags": []string{}}).fails(400, "Bad Request", last, "tags")

	n = node("PUT", "/api/v1/node/1/addresses", object{"ipv4": "100.64.7.1", "ipv6": "fd7a:115c:a1e0::701"})
	if diff := cmp.Diff([]any{"100.64.7.1", "fd7a:115c:a1e0::701"}, n["ipAddresses"]); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	s.call("PUT", "/api/v1/node/2/addresses", object{"ipv4": "100.64.7.1"}).
		fails(409, "Conflict", "node 1 (host-0) already has the address 100.64.7.1; change the address of that node first", "")
	s.call("PUT", "/api/v1/node/2/addresses", object{"ipv4": "seven"}).fails(400, "Bad Request", `invalid IP address "seven"`, "ipv4")
	s.call("PUT", "/api/v1/node/2/addresses", object{"ipv6": "2001:db8::1"}).
		fails(400, "Bad Request", "2001:db8::1 is outside fd7a:115c:a1e0::/48, the address range of nodes", "ipv6")

	if a := s.call("DELETE", "/api/v1/node/100.64.7.1", nil); string(a.body) != "{}" {
		t.Errorf("%s", a.body)
	}
	s.call("DELETE", "/api/v1/node/1", nil).fails(404, "Not Found", `unknown node "1"; list nodes with: fairlead nodes list`, "")
}
