package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// register sends a request to POST /api/v1/machine, without an API key.
func (s *service) register(body any) *answer {
	s.t.Helper()
	return s.call("POST", "/api/v1/machine", body, noKey)
}

// with returns a copy of o with changes.
func with(o object, changes object) object {
	o = maps.Clone(o)
	maps.Copy(o, changes)
	return o
}

// rejected checks for the uniform response to an invalid key, and for the reason in the log.
func (s *service) rejected(a *answer, reason string) {
	s.t.Helper()
	a.fails(401, "Node registration rejected", "Authentication failed: invalid key", "")
	lines := s.log.lines(s.t, "authentication failed")
	if last := lines[len(lines)-1]; last["reason"] != reason || last["addr"] != "127.0.0.1" {
		s.t.Errorf("logged %v, want the reason %q", last, reason)
	}
}

const (
	keyUnknown = "the key is unknown; ask your administrator for a new one"
	keyExpired = "the key has expired; ask your administrator for a new one"
	keySpent   = "the key is single-use and was already used; ask your administrator for a new one"
)

func TestMachineIsEnrolledAsAsked(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice"})
	got := s.register(with(machine(1, key), object{
		"hostname": "Alice's Läptop", "os": "linux", "arch": "arm64", "clientVersion": "1.92.3", "routableIPs": []string{"192.168.7.0/24", "10.0.0.0/8", "10.0.0.0/8"},
	})).ok()["node"].(object)
	keyShape := s.call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"].([]any)[0].(object)
	want := object{
		"id": "1", "machineKey": machineKey(1), "nodeKey": nodeKey(1), "discoKey": "", "ipAddresses": []any{"100.64.0.1", "fd7a:115c:a1e0::1"},
		"name": "Alice's Läptop", "hostname": "Alice's Läptop", "givenName": "alices-lptop", "user": keyShape["user"], "createdBy": nil,
		"os": "linux", "arch": "arm64", "clientVersion": "1.92.3", "online": false, "lastSeen": got["createdAt"], "expiry": nil, "expired": false, "needsApproval": false, "ephemeral": false,
		"preAuthKey": keyShape, "registerMethod": "REGISTER_METHOD_AUTH_KEY", "createdAt": got["createdAt"], "updatedAt": got["createdAt"],
		"approvedRoutes": []any{}, "availableRoutes": []any{"10.0.0.0/8", "192.168.7.0/24"}, "subnetRoutes": []any{}, "routePreferences": object{},
		"tags": []any{}, "forcedTags": []any{}, "validTags": []any{}, "invalidTags": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if keyShape["used"] != true || keyShape["user"].(object)["nodeCount"] != 1.0 {
		t.Errorf("the key after its use: %v", keyShape)
	}
	if diff := cmp.Diff([]any{want}, s.call("GET", "/api/v1/node", nil).ok()["nodes"]); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	lines := s.log.lines(t, "node registered")
	if len(lines) != 1 || lines[0]["name"] != "alices-lptop" {
		t.Errorf("log: %v", lines)
	}
	if n := s.counts("mesh_node_registrations_total")[""]; n != 1 {
		t.Errorf("mesh_node_registrations_total is %d", n)
	}
}

func TestSameEnrolmentAgainIsTheSameAnswer(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	made := s.call("POST", "/api/v1/preauthkey", object{"user": "alice"}).ok()["preAuthKey"].(object)
	request := machine(1, made["key"].(string))
	first := s.register(request).ok()["node"].(object)
	again := func() {
		t.Helper()
		rev := s.ledger.World().Rev
		got := s.register(with(request, object{"hostname": "other", "os": "plan9"})).ok()["node"].(object)
		got["preAuthKey"], first["preAuthKey"] = nil, nil
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
		if s.ledger.World().Rev != rev {
			t.Error("something changed")
		}
	}
	again() // works although the key is single-use and has been used
	s.call("POST", "/api/v1/preauthkey/expire", object{"id": made["id"]}).ok()
	again() // works although the key has also expired

	s.rejected(s.register(with(request, object{"nodeKey": nodeKey(2)})), keyExpired)
	valid := s.preAuthKey(object{"user": "alice", "reusable": true})
	const known = "this machine is already registered as node 1; delete that node first"
	s.register(with(request, object{"nodeKey": nodeKey(2), "preAuthKey": valid})).fails(409, "Conflict", known, "")
	s.register(with(request, object{"preAuthKey": valid})).fails(409, "Conflict", known, "")
	s.register(with(machine(2, valid), object{"nodeKey": nodeKey(1)})).
		fails(409, "Conflict", "another device uses this node key; generate a new one", "")
	if n := s.ledger.World().Nodes.Len(); n != 1 {
		t.Errorf("%d nodes", n)
	}
	s.call("DELETE", "/api/v1/preauthkey?id="+made["id"].(string), nil).ok()
	s.rejected(s.register(request), keyUnknown)
	if n := len(s.log.lines(t, "node registered")); n != 1 {
		t.Errorf("%d registrations are logged", n)
	}
	if lines := s.log.lines(t, "registration conflicts with an existing node"); len(lines) != 3 || lines[0]["reason"] != known {
		t.Errorf("logged %v", lines)
	}
	if lines := s.log.lines(t, "forbidden"); len(lines) > 0 { // that message is for status 403
		t.Errorf("logged %v", lines)
	}
}

func TestKeyThatDoesNotFitIsRejected(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	once := s.preAuthKey(object{"user": "alice"})
	s.register(machine(1, once)).ok()
	s.rejected(s.register(machine(2, once)), keySpent)

	revoked := s.preAuthKey(object{"user": "alice", "reusable": true})
	s.call("POST", "/api/v1/preauthkey/expire", object{"key": revoked}).ok()
	s.rejected(s.register(machine(2, revoked)), keyExpired)

	deleted := s.preAuthKey(object{"user": "alice"})
	s.call("DELETE", "/api/v1/preauthkey?id="+prefixOf(deleted), nil).ok()
	for _, key := range []string{
		deleted, "x", once + "x", masked(once), prefixOf(once), s.key, strings.Replace(once, "flp_", "flk_", 1), strings.Repeat("x", 1000), "flp_\x00_",
		"flp_AAAAAAAAAAAA_" + strings.Repeat("a", 43),
	} {
		locks := s.store.locks.Load()
		s.rejected(s.register(machine(2, key)), keyUnknown)
		if s.store.locks.Load() != locks {
			t.Error("a guess took the write lock")
		}
	}
	if n := s.ledger.World().Nodes.Len(); n != 1 {
		t.Errorf("%d nodes", n)
	}
	if got, want := len(s.log.lines(t, "authentication failed")), 12; got != want {
		t.Errorf("%d refusals are logged, want %d", got, want)
	}
}

func TestKeysExpireByTheClock(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		call := func(method, path string, body any, headers ...string) *answer {
			return s.direct(s.handler, method, path, body, headers...)
		}
		until := time.Now().Add(10 * time.Minute)
		preAuth := call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:a"}, "reusable": true, "expiration": until}).ok()["preAuthKey"].(object)["key"].(string)
		apiKey := call("POST", "/api/v1/apikey", object{"expiration": until}).ok()["apiKey"].(string)
		time.Sleep(10*time.Minute - time.Second) //nolint:forbidigo // the bubble's clock
		call("POST", "/api/v1/machine", machine(1, preAuth)).ok()
		call("GET", "/api/v1/user", nil, "Authorization: Bearer "+apiKey).ok()
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		call("POST", "/api/v1/machine", machine(2, preAuth)).fails(401, "Node registration rejected", "Authentication failed: invalid key", "")
		call("GET", "/api/v1/user", nil, "Authorization: Bearer "+apiKey).fails(401, "Unauthorized", invalid, "")
		if got := call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"].([]any)[0].(object); got["expired"] != true || got["used"] != true {
			t.Errorf("%v", got)
		}
		if got := call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)[1].(object); got["expired"] != true {
			t.Errorf("%v", got)
		}
	})
}

func TestTagsComeFromTheKey(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true, "aclTags": []string{"tag:web", "tag:db"}})
	for n, tags := range [][]string{nil, {"tag:web"}, {"tag:db", "tag:web"}} {
		node := s.register(with(machine(uint64(n), key), object{"tags": tags})).ok()["node"].(object)
		for _, member := range []string{"tags", "forcedTags", "validTags"} {
			if !cmp.Equal(node[member], []any{"tag:db", "tag:web"}) {
				t.Errorf("%s %v", member, node[member])
			}
		}
		user := object{
			"id": "2147455555", "name": "tagged-devices", "createdAt": nil, "displayName": "Tagged Devices", "email": "", "providerId": "", "provider": "",
			"profilePicUrl": "", "nodeCount": 0.0,
		}
		if diff := cmp.Diff(user, node["user"]); diff != "" {
			t.Errorf("user (-want +got):\n%s", diff)
		}
		if node["createdBy"].(object)["name"] != "alice" {
			t.Errorf("created by %v", node["createdBy"])
		}
	}
	if got := s.call("GET", "/api/v1/node?user=alice", nil).ok()["nodes"].([]any); len(got) != 0 {
		t.Errorf("nodes with tags are listed as alice's: %v", got)
	}

	plain := s.preAuthKey(object{"user": "alice", "reusable": true})
	for key, text := range map[string]string{
		key:   "tag not allowed: the pre-auth key does not have tag:admin, and there is no policy whose tagOwners could allow it",
		plain: "tag not allowed: the pre-auth key does not have tag:admin, and there is no policy whose tagOwners could allow it",
	} {
		before := len(s.log.lines(t, "ACL denied"))
		s.register(with(machine(9, key), object{"tags": []string{"tag:admin"}})).fails(403, "Node registration rejected", "Forbidden: "+text, "")
		lines := s.log.lines(t, "ACL denied")
		if len(lines) != before+1 {
			t.Fatalf("%d more lines", len(lines)-before)
		}
		last := lines[before]
		if last["addr"] != "127.0.0.1" || last["node"] != "host-9" || last["user"] != "alice" || last["rule"] != text {
			t.Errorf("%v", last)
		}
	}
	if n := s.ledger.World().Nodes.Len(); n != 3 {
		t.Errorf("%d nodes", n)
	}
}

func TestEnrolmentThatCannotBeReadIsRefused(t *testing.T) {
	s := sqlite(t)
	key := s.preAuthKey(object{"aclTags": []string{"tag:a"}, "reusable": true})
	good := machine(1, key)
	routes := make([]string, 257)
	for i := range routes {
		routes[i] = fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
	}
	const badMachine = "machineKey must be mkey: followed by 64 hexadecimal digits"
	for _, c := range []struct {
		change object
		detail string
		path   string
	}{
		{object{"preAuthKey": nil}, "preAuthKey is required", "preAuthKey"},
		{object{"machineKey": nil}, "machineKey is required", "machineKey"},
		{object{"nodeKey": nil}, "nodeKey is required", "nodeKey"},
		{object{"hostname": nil}, "hostname is required", "hostname"},
		{object{"hostname": ""}, "hostname is required", "hostname"},
		{object{"machineKey": "x"}, badMachine, "machineKey"},
		{object{"machineKey": nodeKey(1)}, badMachine, "machineKey"},
		{object{"machineKey": machineKey(1) + "00"}, badMachine, "machineKey"},
		{object{"machineKey": "mkey:" + strings.Repeat("0", 64)}, "machineKey is required: mkey: followed by 64 hexadecimal digits", "machineKey"},
		{object{"nodeKey": machineKey(1)}, "nodeKey must be nodekey: followed by 64 hexadecimal digits", "nodeKey"},
		{object{"nodeKey": "nodekey:" + strings.Repeat("0", 64)}, "nodeKey is required: nodekey: followed by 64 hexadecimal digits", "nodeKey"},
		{object{"hostname": strings.Repeat("a", 256)}, "hostname is longer than 255 bytes", "hostname"},
		{object{"os": strings.Repeat("a", 129)}, "os is longer than 128 bytes", "os"},
		{object{"arch": "a\nb"}, "arch contains the unprintable character U+000A", "arch"},
		{object{"clientVersion": "\t"}, "clientVersion contains the unprintable character U+0009", "clientVersion"},
		{object{"tags": []string{"tag:a", "tag:"}}, `invalid tag "tag:": use tag: followed by letters, digits and hyphens, such as tag:server`, "tags[1]"},
		{object{"tags": "tag:a"}, "tags must be a list", "tags"},
		{object{"routableIPs": []string{"10.0.0.0/8", "10.0.0.0"}}, `invalid network "10.0.0.0": use CIDR notation such as 192.168.7.0/24`, "routableIPs[1]"},
		{object{"routableIPs": []string{"10.0.0.1/8"}}, "invalid network 10.0.0.1/8: host bits are set; use 10.0.0.0/8", "routableIPs[0]"},
		{
			object{"routableIPs": []string{"192.168.7.0/24", "100.64.0.1/32"}},
			"100.64.0.1/32 cannot be a route: it overlaps 100.64.0.0/10, which the mesh itself uses; use the network behind the router, or 0.0.0.0/0 and ::/0 for an exit node", "routableIPs[1]",
		},
		{object{"routableIPs": routes}, "routableIPs must have at most 256 routes", "routableIPs"},
		{object{"routableIPs": object{}}, "routableIPs must be a list", "routableIPs"},
	} {
		s.register(with(good, c.change)).fails(400, "Bad Request", c.detail, c.path)
	}
	raw := strings.NewReplacer("KEY", key, "MACHINE", machineKey(1), "NODE", nodeKey(1))
	for hostname, detail := range map[string]string{
		"a\xffb":       "the request body is not valid UTF-8",
		"\xed\xa0\x80": "the request body is not valid UTF-8", // half of a surrogate pair, as some encoders write it
		"a\x00b":       "the request body is not valid JSON: invalid character '\\x00' in string literal at byte 210",
	} {
		a := s.register(raw.Replace(`{"preAuthKey":"KEY","machineKey":"MACHINE","nodeKey":"NODE","hostname":"`) + hostname + `"}`)
		if got := a.decoded()["detail"].(string); a.status != 400 || !strings.HasPrefix(got, strings.TrimRight(detail, "0123456789")) {
			t.Errorf("%q: %d %s", hostname, a.status, got)
		}
	}
	if w := s.ledger.World(); w.Nodes.Len() != 0 || w.Rev != 2 {
		t.Errorf("%d nodes at revision %d", w.Nodes.Len(), w.Rev)
	}
	s.register(good).ok()
}

func TestNamesAndAddressesAreGivenInOrder(t *testing.T) {
	s := sqlite(t)
	key := s.preAuthKey(object{"aclTags": []string{"tag:a"}, "reusable": true})
	for n, want := range []string{"laptop", "laptop-1", "laptop-2", "laptop-3"} {
		node := s.register(with(machine(uint64(n), key), object{"hostname": "LapTop.local"})).ok()["node"].(object)
		addrs := []any{fmt.Sprintf("100.64.0.%d", n+1), fmt.Sprintf("fd7a:115c:a1e0::%d", n+1)}
		if node["givenName"] != want || node["name"] != "LapTop.local" || !cmp.Equal(node["ipAddresses"], addrs) {
			t.Errorf("%v %v %v, want %s %v", node["givenName"], node["name"], node["ipAddresses"], want, addrs)
		}
	}
}

func TestRandomAddressesLieInThePrefix(t *testing.T) {
	s := sqlite(t, config{control: func(c *control.Config) { c.RandomAddresses = true }})
	key := s.preAuthKey(object{"aclTags": []string{"tag:a"}, "reusable": true})
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	var seen []netip.Addr
	for n := range uint64(20) {
		addrs := s.register(machine(n, key)).ok()["node"].(object)["ipAddresses"].([]any)
		a, b := netip.MustParseAddr(addrs[0].(string)), netip.MustParseAddr(addrs[1].(string))
		if !v4.Contains(a) || !v6.Contains(b) || slices.Contains(seen, a) || slices.Contains(seen, b) {
			t.Errorf("%v %v", a, b)
		}
		seen = append(seen, a, b)
	}
	if slices.IsSortedFunc(seen, netip.Addr.Compare) {
		t.Error("the addresses are in order")
	}
}

func TestFullPrefixIsAConflict(t *testing.T) {
	s := sqlite(t, config{control: func(c *control.Config) { c.PrefixV4 = netip.MustParsePrefix("100.64.0.0/30") }})
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	s.register(machine(1, key)).ok()
	s.register(machine(2, key)).ok()
	s.register(machine(3, key)).fails(409, "Conflict", "100.64.0.0/30: no free address left in the prefix; configure a larger prefix, or delete nodes", "")
	if n := len(s.log.lines(t, "no free address for a new node")); n != 1 {
		t.Errorf("%d log lines", n)
	}
	s.call("DELETE", "/api/v1/user/alice", nil).ok()
	key = s.preAuthKey(object{"aclTags": []string{"tag:a"}})
	s.register(machine(3, key)).ok()
}

func TestNodesOfUsersExpireAndTaggedOnesDoNot(t *testing.T) {
	s := sqlite(t, config{control: func(c *control.Config) { c.NodeExpiry = 24 * time.Hour }})
	s.newUser("alice")
	own := s.register(machine(1, s.preAuthKey(object{"user": "alice"}))).ok()["node"].(object)
	if left := time.Until(moment(t, own["expiry"])); left > 24*time.Hour || left < 23*time.Hour || own["expired"] != false {
		t.Errorf("expiry in %v, expired %v", left, own["expired"])
	}
	tagged := s.register(machine(2, s.preAuthKey(object{"user": "alice", "aclTags": []string{"tag:a"}}))).ok()["node"].(object)
	if tagged["expiry"] != nil {
		t.Errorf("a tagged node expires at %v", tagged["expiry"])
	}
}

func TestNodesAreListedByUserAndShownByID(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.newUser("bob")
	for n, user := range []string{"alice", "bob", "alice"} {
		s.register(machine(uint64(n), s.preAuthKey(object{"user": user}))).ok()
	}
	for query, want := range map[string][]string{"": {"1", "2", "3"}, "?user=alice": {"1", "3"}, "?user=2": {"2"}, "?user=": {"1", "2", "3"}} {
		var got []string
		for _, n := range s.call("GET", "/api/v1/node"+query, nil).ok()["nodes"].([]any) {
			got = append(got, n.(object)["id"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	s.call("GET", "/api/v1/node?user=tagged-devices", nil).fails(404, "Not Found",
		"tagged-devices is not a user: it stands for tagged nodes; filter by tag instead: fairlead nodes list --tag tag:server", "")
	s.call("GET", "/api/v1/node?user=nobody", nil).fails(404, "Not Found", `unknown user "nobody"; list users with: fairlead users list`, "")
	for _, ref := range []string{"2", "host-1", "HOST-1", "100.64.0.2", "fd7a:115c:a1e0::2"} {
		if got := s.call("GET", "/api/v1/node/"+ref, nil).ok()["node"].(object); got["user"].(object)["name"] != "bob" {
			t.Errorf("%v", got)
		}
	}
	for _, id := range []string{"4", "0", "-1", "host-9", "99999999999999999999"} {
		s.call("GET", "/api/v1/node/"+id, nil).fails(404, "Not Found", fmt.Sprintf("unknown node %q; list nodes with: fairlead nodes list", id), "")
	}
}

func TestAPIKeyIsNotLookedAtForEnrolment(t *testing.T) {
	s := sqlite(t)
	key := s.preAuthKey(object{"aclTags": []string{"tag:a"}})
	s.call("POST", "/api/v1/machine", machine(1, key), "Authorization: Bearer nonsense").ok()
	if n := len(s.log.lines(t, "authentication failed")); n != 0 {
		t.Errorf("%d refusals are logged", n)
	}
}

func TestHostnameIsShownWithoutWhatWouldBreakALine(t *testing.T) {
	s := sqlite(t)
	key := s.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:a"}, "reusable": true}).ok()["preAuthKey"].(object)["key"].(string)
	n := uint64(0)
	for sent, want := range map[string]string{
		"a\x00b": "a-b", "a\x1b[31mb": "a-[31mb", "a\u0085b": "a-b", "a\u202eb\u2066": "a-b-", "\ufeffa\u2028": "-a-", "a\ufffeb\uffff": "a-b-", "a\ufffdb": "a-b", "\ue000": "-",
		"Zoë's Mac": "Zoë's Mac", "日本語\u3000機": "日本語\u3000機", "👩\u200d👩\u200d👧": "👩\u200d👩\u200d👧", "❤\ufe0f": "❤\ufe0f", "می\u200cخواهم": "می\u200cخواهم",
	} {
		n++
		if got := s.register(with(machine(n, key), object{"hostname": sent})).ok()["node"].(object)["hostname"]; got != want {
			t.Errorf("%q became %q, want %q", sent, got, want)
		}
	}
	n++
	half := strings.Replace(string(encode(t, with(machine(n, key), object{"hostname": "HALF"}))), "HALF", `a\ud800b`, 1)
	if got := s.register(half).ok()["node"].(object)["hostname"]; got != "a-b" {
		t.Errorf("half a character became %q", got)
	}
}

func encode(t *testing.T, body object) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Anyone who knows the server's address can send these without a key, as often as they like.
func TestStrangersBodyCostsLittle(t *testing.T) {
	s := sqlite(t)
	fill := func(head, piece, tail string, size int) string {
		return head + strings.Repeat(piece, (size-len(head)-len(tail))/len(piece)) + tail
	}
	const required = `{"preAuthKey":"a","machineKey":"b","nodeKey":"c","hostname":"d"`
	var members strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&members, `,"%x":1`, i)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		path   string
	}{
		"too large":    {fill(required+`,"tags":[`, "1,", "1]}", 1<<20), 413, ""},
		"long list":    {fill(required+`,"tags":[`, "1,", "1]}", 64<<10), 400, "tags"},
		"deep list":    {fill(required+`,"tags":[[`, "[],", "[]]]}", 64<<10), 400, "tags[0]"},
		"many members": {required + members.String() + "}", 400, "machineKey"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const rounds = 20
		for range rounds {
			a := s.direct(s.handler, "POST", "/api/v1/machine", c.body, noKey)
			if a.status != c.status || !strings.Contains(string(a.body), `"path":"`+c.path) && c.path != "" {
				t.Fatalf("%s: %d %s", name, a.status, a.body)
			}
		}
		runtime.ReadMemStats(&after)
		cost := (after.TotalAlloc - before.TotalAlloc) / rounds
		t.Logf("%s: %d kB allocated for a body of %d kB", name, cost>>10, len(c.body)>>10)
		if cost > 2<<20 {
			t.Errorf("%s costs more than 2 MB", name)
		}
	}
	a := s.register(with(machine(1, "flp_a_b"), object{"tags": slices.Repeat([]string{"tag:a"}, 1001)}))
	a.fails(400, "Bad Request", "tags must have at most 1000 elements", "tags")
}
