package wire_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const badKey = "Node registration rejected: Authentication failed: invalid key "

// counted checks how many registrations were counted and logged.
func (s *service) counted(want int) {
	s.t.Helper()
	value, _ := s.metric("mesh_node_registrations_total")
	got := int(value)
	if logged := len(s.log.lines(s.t, "node registered")); got != want || logged != want {
		s.t.Errorf("%d registrations are counted and %d logged, want %d", got, logged, want)
	}
}

// Conformance item 1: every kind of key.
func TestClientRegistersWithEachKindOfKey(t *testing.T) {
	s, _ := open(t, options{})
	alice := s.user("alice")
	expired := s.key(control.NewPreAuthKey{User: "alice"})
	if err := s.PreAuthKeys.Expire(t.Context(), admin, expired, ""); err != nil {
		t.Fatal(err)
	}
	reusable, once := s.key(control.NewPreAuthKey{User: "alice", Reusable: true}), s.key(control.NewPreAuthKey{User: "alice"})

	first := s.client()
	out := first.joins(withKey(reusable))
	want := tailcfg.RegisterResponse{
		User: tailcfg.User{ID: tailcfg.UserID(alice.ID), DisplayName: "alice"}, MachineAuthorized: true,
		Login: tailcfg.Login{ID: tailcfg.LoginID(alice.ID), LoginName: "alice", DisplayName: "alice"},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	n := s.only()
	if n.Owner != alice.ID || n.Method != mesh.RegisterAuthKey || n.PreAuthKey == 0 || n.Hostname != "laptop" || n.Name != "laptop" || n.OS != "linux" ||
		n.Arch != "arm64" || n.ClientVersion != "1.102.5" || n.CapVersion != int(tailcfg.CurrentCapabilityVersion) || n.UpdatedAt == 0 ||
		n.Host != `{"IPNVersion":"1.102.5","OS":"linux","Hostname":"laptop","GoArch":"arm64","Services":[{"Proto":"peerapi4","Port":4242}]}` ||
		n.Expiry.Sub(n.CreatedAt) != 24*time.Hour || n.Ephemeral || n.Tagged() {
		t.Errorf("node %+v", n)
	}
	s.client().joins(withKey(reusable))
	s.client().joins(withKey(once))
	s.counted(3)
	for text, reason := range map[string]string{
		once:        "(the key is single-use and was already used; ask your administrator for a new one)",
		expired:     "(the key has expired; ask your administrator for a new one)",
		"flp_a_b":   "(the key is unknown; ask your administrator for a new one)",
		"\x00\x1bé": "(the key is unknown; ask your administrator for a new one)",
	} {
		if got := s.client().register(withKey(text)); got.Error != badKey+reason || got.MachineAuthorized {
			t.Errorf("%q: %+v", text, got)
		}
	}
	lines := s.log.lines(t, "authentication failed")
	if len(lines) != 4 || lines[0]["addr"] != "192.0.2.7" {
		t.Errorf("logged %v", lines)
	}
	if refused, _ := s.metric("mesh_node_registrations_refused_total"); refused != 4 {
		t.Errorf("%v registrations are counted as refused, want 4", refused)
	}
	if n := s.ledger.World().Nodes.Len(); n != 3 {
		t.Errorf("%d nodes", n)
	}

	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice", Ephemeral: true})))
	if n, _ := s.ledger.World().Nodes.ByKey(c.node.Public()); !n.Ephemeral {
		t.Error("not ephemeral by its key")
	}
	c = s.client()
	c.joins(with(withKey(reusable), object{"Ephemeral": true}))
	if n, _ := s.ledger.World().Nodes.ByKey(c.node.Public()); !n.Ephemeral {
		t.Error("not ephemeral by its wish")
	}
	c = s.client()
	out = c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice", Tags: []string{"tag:b", "tag:a"}})))
	n, _ = s.ledger.World().Nodes.ByKey(c.node.Public())
	if diff := cmp.Diff([]string{"tag:a", "tag:b"}, n.Tags); diff != "" || n.Owner != 0 || n.CreatedBy != alice.ID || n.Expiry != 0 || out.Login.LoginName != "tagged-devices" ||
		out.User.ID != tailcfg.UserID(mesh.TaggedDevices) {
		t.Errorf("tagged: %+v %+v", n, out)
	}
}

func with(o object, changes object) object {
	for k, v := range changes {
		o[k] = v
	}
	return o
}

// Conformance item 3: restart with and without the key, re-login, logout.
func TestClientKeepsItsPlaceThroughItsLife(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	once := s.key(control.NewPreAuthKey{User: "alice"})
	c := s.client()
	c.joins(withKey(once))
	born := *s.only()

	rev := s.ledger.World().Rev
	c.connect()
	c.joins(nil) // as after a restart of the daemon
	c.joins(withKey(once))
	c.joins(withKey("whatever it was"))
	if s.ledger.World().Rev != rev {
		t.Error("knowing a client again wrote something")
	}
	s.counted(1)

	// A new login changes nothing until it is authorized.
	old := c.node
	c.node = key.NewNode()
	relogin := object{"OldNodeKey": old.Public()}
	if out := c.register(relogin); out.AuthURL == "" {
		t.Errorf("%+v", out)
	}
	if n := s.only(); n.NodeKey != old.Public() {
		t.Error("the old key is gone before the new one was allowed")
	}
	next := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	c.joins(with(withKey(next), relogin))
	n := s.only()
	if n.ID != born.ID || n.IPv4 != born.IPv4 || n.IPv6 != born.IPv6 || n.Name != born.Name || n.NodeKey != c.node.Public() || n.PreAuthKey == born.PreAuthKey {
		t.Errorf("born %+v\nnow %+v", born, *n)
	}
	s.counted(2)
	c.joins(relogin) // clients keep sending the old key

	logout := object{"Expiry": time.Unix(123, 0)}
	if out := c.register(logout); out.Error != "" || !out.NodeKeyExpired {
		t.Errorf("logout: %+v", out)
	}
	if n := s.only(); !n.KeyExpired || n.Expiry == 0 {
		t.Errorf("after the logout: %+v", n)
	}
	c.register(logout)
	if out := c.register(withKey(next)); !out.NodeKeyExpired {
		t.Errorf("the key that ended is taken: %+v", out)
	}
	c.node = key.NewNode()
	c.joins(withKey(next))
	if n := s.only(); n.ID != born.ID || n.KeyExpired || n.Expired(mesh.TimeOf(time.Now())) {
		t.Errorf("after the login: %+v", n)
	}
	s.counted(3)
}

func TestLoggedOutEphemeralNodeIsGone(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice", Ephemeral: true})))
	for range 2 { // clients retry, because the response may be lost
		if out := c.register(object{"Expiry": time.Unix(123, 0)}); out.Error != "" {
			t.Errorf("logout: %+v", out)
		}
	}
	if n := s.ledger.World().Nodes.Len(); n != 0 {
		t.Errorf("%d nodes", n)
	}
}

func TestTooOldClientIsToldWhatToDo(t *testing.T) {
	s, _ := open(t, options{})
	c := s.client()
	const want = "Node registration rejected: this client is too old for the server; install version 1.74 or newer"
	if out := c.register(object{"Version": 105}); out.Error != want {
		t.Errorf("%+v", out)
	}
	if status, text, _ := c.post("/machine/map", object{"Version": 105, "NodeKey": c.node.Public()}); status != 400 || !strings.Contains(text, "too old") {
		t.Errorf("%d %q", status, text)
	}
}

func TestNodeKeyOfAnotherMachineIsRefused(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	victim, thief := s.client(), s.client()
	victim.joins(withKey(text))
	before := *s.only()
	thief.node = victim.node
	if out := thief.register(withKey(text)); out.Error != "Node registration rejected: another device uses this node key; log out and in again to create a new one" {
		t.Errorf("%+v", out)
	}
	if out := thief.register(object{"Expiry": time.Unix(123, 0)}); out.Error == "" {
		t.Error("a thief can log others out")
	}
	for _, body := range []object{
		{"Stream": true}, {"OmitPeers": true, "Endpoints": []string{"192.0.2.1:1"}}, {},
	} {
		status, answer, _ := thief.post("/machine/map", with(body, object{"Version": 142, "NodeKey": victim.node.Public()}))
		if status != http.StatusForbidden || answer != "this node key belongs to another machine\n" {
			t.Errorf("%v: %d %q", body, status, answer)
		}
	}
	if after := s.only(); after.NodeKey != before.NodeKey || after.UpdatedAt != before.UpdatedAt || after.KeyExpired || len(after.Net.Endpoints) > 0 {
		t.Errorf("the victim changed: %+v", after)
	}
	if lines := s.log.lines(t, "forbidden"); len(lines) != 5 || lines[4]["reason"] != "this node key belongs to another machine" {
		t.Errorf("logged %v", lines)
	}
	victim.joins(nil)
}

func TestUnknownNodeHasNoMap(t *testing.T) {
	s, _ := open(t, options{})
	for _, body := range []object{{"Stream": true}, {"OmitPeers": true}, {}} {
		c := s.client()
		status, answer, _ := c.post("/machine/map", with(body, object{"Version": 142, "NodeKey": c.node.Public()}))
		if status != http.StatusNotFound || len(answer) > 120 {
			t.Errorf("%v: %d %q", body, status, answer)
		}
	}
}

// The limit is that of package control: 30 registrations that change something, and
// one more every 5 minutes.
func TestMachineThatRegistersTooOftenIsToldWhenToRetry(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	c := s.client()
	for range 30 {
		c.joins(withKey(text))
		c.node = key.NewNode()
	}
	status, answer, header := c.post("/machine/register", c.registration(withKey(text)))
	wait, err := strconv.Atoi(header.Get("Retry-After"))
	if status != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 300 || !strings.Contains(answer, "this device has registered too often; try again in") {
		t.Errorf("%d %q, Retry-After %q", status, answer, header.Get("Retry-After"))
	}
	s.client().joins(withKey(text)) // another machine is not affected
}

func TestDatabaseAwayIsNoRefusal(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	known, stranger := s.client(), s.client()
	known.joins(withKey(text))
	s.fault.away.Store(true)
	known.joins(withKey(text))
	for name, body := range map[string]object{"good": withKey(text), "bad": withKey("flp_a_b"), "none": nil} {
		status, answer, header := stranger.post("/machine/register", stranger.registration(body))
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %q %v", name, status, answer, header)
		}
	}
	if status, answer, _ := stranger.post("/machine/map", object{"Version": 142, "NodeKey": stranger.node.Public(), "Stream": true}); status != http.StatusServiceUnavailable {
		t.Errorf("map: %d %q", status, answer)
	}
	s.fault.away.Store(false)
	stranger.joins(withKey(text))
}

func TestRefusedTagIsAnACLDenial(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	tagged := s.key(control.NewPreAuthKey{User: "alice", Reusable: true, Tags: []string{"tag:a"}})
	c := s.client()
	asks := func(tags ...string) object {
		return with(withKey(tagged), object{"Hostinfo": object{"Hostname": "h", "RequestTags": tags}})
	}
	if out := c.register(asks("tag:a", "tag:root")); !strings.HasPrefix(out.Error, "Node registration rejected: tag not allowed: the pre-auth key does not have tag:root") {
		t.Errorf("%+v", out)
	}
	if out := c.register(asks("root")); !strings.HasPrefix(out.Error, `Node registration rejected: invalid tag "root"`) {
		t.Errorf("%+v", out)
	}
	if lines := s.log.lines(t, "ACL denied"); len(lines) != 1 || lines[0]["user"] != "alice" || lines[0]["node"] != "h" {
		t.Errorf("logged %v", lines)
	}
	c.joins(asks("tag:a"))
	if n := s.only(); strings.Contains(n.Host, "RequestTags") || len(n.Tags) != 1 {
		t.Errorf("%+v", n)
	}
}

func TestLatencyIsCountedOncePerNodeAndMinute(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	report := object{"Version": 142, "NodeKey": c.node.Public(), "OmitPeers": true, "Hostinfo": object{
		"Hostname": "laptop", "NetInfo": object{"PreferredDERP": 7, "DERPLatency": map[string]float64{"7-v4": 0.02, "7-v6": 0.01, "8-v4": 0.001}},
	}}
	for range 3 {
		if status, text, _ := c.post("/machine/map", report); status != http.StatusOK || text != "" {
			t.Fatalf("%d %q", status, text)
		}
	}
	if n := s.only(); n.Net.HomeRelay != 7 {
		t.Errorf("%+v", n.Net)
	}
	sum, count := s.metric("mesh_connection_latency_seconds")
	if count < 1 || count > 2 || sum/float64(count) != 0.01 { // a minute boundary may fall in between
		t.Errorf("%d observations, %v s in all", count, sum)
	}
	if got, _ := s.metric("mesh_wire_connections"); got != 1 {
		t.Errorf("%v connections", got)
	}
}

func TestRelayAdmitsNodesAlone(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	ask := func(body string) (int, bool) {
		t.Helper()
		status, _, text := s.outside("POST", "/verify", body)
		var out tailcfg.DERPAdmitClientResponse
		_ = json.Unmarshal([]byte(text), &out)
		return status, out.Allow
	}
	body := func(k key.NodePublic) string {
		text, _ := json.Marshal(tailcfg.DERPAdmitClientRequest{NodePublic: k})
		return string(text)
	}
	if status, allow := ask(body(c.node.Public())); status != 200 || !allow {
		t.Errorf("a node: %d %v", status, allow)
	}
	if status, allow := ask(body(key.NewNode().Public())); status != 200 || allow {
		t.Errorf("a stranger: %d %v", status, allow)
	}
	c.register(object{"Expiry": time.Unix(123, 0)})
	if _, allow := ask(body(c.node.Public())); allow {
		t.Error("a node that logged out is admitted")
	}
	if status, allow := ask("{"); status != 400 || allow {
		t.Errorf("%d %v", status, allow)
	}
	if status, _ := ask(`{"x":"` + strings.Repeat("x", 5000)); status != 413 {
		t.Errorf("%d", status)
	}
}
