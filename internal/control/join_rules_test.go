package control

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// joinNow is the time of all decisions in these tests.
const joinNow = meshgen.Start + mesh.Time(time.Hour/time.Microsecond)

// door is a snapshot and the texts of its pre-auth keys.
type door struct {
	world *policy.World
	keys  map[string]string
}

// newDoor returns a snapshot with users 1 and 2. Machine 1 has node 1 of user 1, the
// expired node 2 of user 2, and node 3 with tags, created by user 1. Node 4 is ephemeral,
// on machine 4.
func newDoor() door {
	d := door{keys: map[string]string{"unknown": "flp_a_b"}}
	evs := []mesh.Event{mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}}
	node := func(id mesh.NodeID, owner mesh.UserID, machine uint64, change func(*mesh.Node)) {
		n := meshgen.Node(id, owner)
		n.MachineKey = meshgen.MachineKey(machine)
		change(n)
		evs = append(evs, mesh.NodePut{Node: n})
	}
	node(1, 1, 1, func(*mesh.Node) {})
	node(2, 2, 1, func(n *mesh.Node) { n.Expiry, n.KeyExpired = meshgen.Start, true })
	node(3, 0, 1, func(n *mesh.Node) { n.Tags, n.CreatedBy = []string{"tag:a"}, 1 })
	node(4, 1, 4, func(n *mesh.Node) { n.Ephemeral = true })
	for i, k := range []struct {
		name string
		mesh.PreAuthKey
	}{
		{"user1", mesh.PreAuthKey{User: 1}},
		{"user2", mesh.PreAuthKey{User: 2, Reusable: true, Used: true}},
		{"spent", mesh.PreAuthKey{User: 1, Used: true}},
		{"expired", mesh.PreAuthKey{User: 1, Expiry: joinNow}},
		{"tags", mesh.PreAuthKey{Tags: []string{"tag:b"}}},
		{"tags of user2", mesh.PreAuthKey{User: 2, Tags: []string{"tag:b"}, Ephemeral: true}},
	} {
		issued := identity.NewKey(identity.KindPreAuth)
		k.ID, k.Prefix, k.Hash = mesh.KeyID(i+1), issued.Prefix, issued.Hash
		if k.Expiry == 0 {
			k.Expiry = joinNow + 1
		}
		d.keys[k.name] = issued.Text
		evs = append(evs, mesh.PreAuthKeyPut{Key: &k.PreAuthKey})
	}
	login := func(id mesh.LoginID, machine, node uint64, l mesh.Login) {
		l.ID, l.MachineKey, l.NodeKey = id, meshgen.MachineKey(machine), meshgen.NodeKey(node)
		if l.Until == 0 {
			l.Until = joinNow + 1
		}
		evs = append(evs, mesh.LoginPut{Login: &l})
	}
	login(1, 10, 10, mesh.Login{User: 2})
	login(2, 11, 11, mesh.Login{Rejected: "no"})
	login(3, 12, 12, mesh.Login{User: 2, Until: joinNow})
	login(4, 1, 13, mesh.Login{User: 1})
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	d.world = policy.NewWorld(s, nil)
	return d
}

func (d door) decide(j Joining) (verdict, []mesh.Event, error) { return d.decideAt(joinNow, j) }

func (d door) decideAt(now mesh.Time, j Joining) (verdict, []mesh.Event, error) {
	s := &Joins{core: &core{prefixV4: netip.MustParsePrefix("100.64.0.0/10"), prefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48")}, nodeExpiry: time.Hour}
	j.Proven, j.Host = true, Host{Hostname: "new name"}.bounded()
	return s.decideJoin(d.world, now, j, s.addresses(0))
}

// kinds returns the kinds of events, separated by spaces.
func kinds(evs []mesh.Event) string {
	var list []string
	for _, e := range evs {
		list = append(list, string(e.Kind()))
	}
	return strings.Join(list, " ")
}

// long: one table contains every case, so that gaps are visible.
func TestJoinDecisions(t *testing.T) {
	const logout = mesh.Time(123)
	const created, rekeyed, used = "node.put address.cursor", "node.put", " preauthkey.used"
	d := newDoor()
	for name, c := range map[string]struct {
		machine, node uint64
		old           uint64
		key           string
		wish          mesh.Time
		tags          []string
		ephemeral     bool

		events     string
		id         mesh.NodeID
		owner      mesh.UserID
		registered bool
		expired    bool
		ask        bool
		rejected   string
		refusal    string
	}{
		"known":                         {machine: 1, node: 1, id: 1, owner: 1},
		"known, key is not looked at":   {machine: 1, node: 1, key: "spent", tags: []string{"tag:x"}, id: 1, owner: 1},
		"known, tags are not looked at": {machine: 1, node: 1, tags: []string{"nonsense"}, id: 1, owner: 1},
		"known, old key is sticky":      {machine: 1, node: 1, old: 99, id: 1, owner: 1},
		"known, key ended":              {machine: 1, node: 2, id: 2, owner: 2, expired: true},
		"known, key ended, with key":    {machine: 1, node: 2, key: "user2", id: 2, owner: 2, expired: true},
		"known, key ended, wish":        {machine: 1, node: 2, wish: joinNow + 1, id: 2, owner: 2, expired: true},
		"known, shorter":                {machine: 1, node: 1, wish: joinNow + 5, events: "node.put", id: 1, owner: 1},
		"of another device":             {machine: 2, node: 1, key: "user1", refusal: "another device uses this node key"},
		"logout":                        {machine: 1, node: 1, wish: logout, events: "node.put", id: 1, owner: 1, expired: true},
		"logout again":                  {machine: 1, node: 2, wish: logout, id: 2, owner: 2, expired: true},
		"logout of another device":      {machine: 2, node: 1, wish: logout, refusal: "another device uses this node key"},
		"logout, ephemeral":             {machine: 4, node: 4, wish: logout, events: "node.gone", expired: true},
		"logout, gone":                  {machine: 9, node: 9, wish: logout, expired: true},

		"new":                {machine: 9, node: 9, key: "user1", events: created + " preauthkey.put" + used, id: 5, owner: 1, registered: true},
		"new, reusable":      {machine: 9, node: 9, key: "user2", events: created + used, id: 5, owner: 2, registered: true},
		"new, tags":          {machine: 9, node: 9, key: "tags", events: created + " preauthkey.put" + used, id: 5, registered: true},
		"new, ephemeral":     {machine: 9, node: 9, key: "user2", ephemeral: true, events: created + used, id: 5, owner: 2, registered: true},
		"new, own tags":      {machine: 9, node: 9, key: "tags", tags: []string{"tag:b"}, events: created + " preauthkey.put" + used, id: 5, registered: true},
		"new, strange tags":  {machine: 9, node: 9, key: "tags", tags: []string{"tag:x"}, refusal: "tag not allowed"},
		"new, no tags":       {machine: 9, node: 9, key: "tags", tags: []string{"nonsense"}, refusal: "invalid tag"},
		"new, unknown key":   {machine: 9, node: 9, key: "unknown", refusal: "the key is unknown"},
		"new, spent key":     {machine: 9, node: 9, key: "spent", refusal: "was already used"},
		"new, expired key":   {machine: 9, node: 9, key: "expired", refusal: "has expired"},
		"new, no key":        {machine: 9, node: 9, ask: true},
		"approved":           {machine: 10, node: 10, events: created + " login.gone", id: 5, owner: 2, registered: true},
		"approved, tags":     {machine: 10, node: 10, tags: []string{"tag:x"}, refusal: "tag not allowed"},
		"approved elsewhere": {machine: 9, node: 10, ask: true},
		"rejected":           {machine: 11, node: 11, rejected: "no"},
		"approved too late":  {machine: 12, node: 12, ask: true},

		"again":                             {machine: 1, node: 9, key: "user1", events: rekeyed + " preauthkey.put" + used, id: 1, owner: 1, registered: true},
		"again, after its end":              {machine: 1, node: 9, key: "user2", events: rekeyed + used, id: 2, owner: 2, registered: true},
		"again, approved":                   {machine: 1, node: 13, events: rekeyed + " login.gone", id: 1, owner: 1, registered: true},
		"again, its tagged node":            {machine: 1, node: 9, old: 3, key: "user1", events: rekeyed + " preauthkey.put" + used, id: 3, owner: 1, registered: true},
		"again, with tags of nobody":        {machine: 1, node: 9, key: "tags", events: rekeyed + " preauthkey.put" + used, id: 3, registered: true},
		"again, with tags of user 2":        {machine: 1, node: 9, key: "tags of user2", events: rekeyed + " preauthkey.put" + used, id: 3, registered: true},
		"again, user becomes tagged":        {machine: 1, node: 9, old: 2, key: "tags of user2", events: rekeyed + " preauthkey.put" + used, id: 2, registered: true},
		"again, no key":                     {machine: 1, node: 9, old: 1, ask: true},
		"same machine, another user":        {machine: 4, node: 9, key: "user2", events: created + used, id: 5, owner: 2, registered: true},
		"same machine, user without a node": {machine: 4, node: 9, old: 4, key: "tags", events: created + " preauthkey.put" + used, id: 5, registered: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := Joining{MachineKey: meshgen.MachineKey(c.machine), NodeKey: meshgen.NodeKey(c.node), PreAuthKey: d.keys[c.key], Expiry: c.wish, Tags: c.tags, Ephemeral: c.ephemeral}
			if c.old != 0 {
				j.OldNodeKey = meshgen.NodeKey(c.old)
			}
			v, evs, err := d.decide(j)
			if c.refusal != "" {
				var refusal *Refusal
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, c.refusal) || len(evs) > 0 {
					t.Fatalf("%v, events %s", err, kinds(evs))
				}
				return
			}
			if err != nil || kinds(evs) != c.events || v.registered != c.registered || v.keyExpired != c.expired || v.ask != c.ask || v.rejected != c.rejected {
				t.Fatalf("%+v, events %s, %v", v, kinds(evs), err)
			}
			if v.node == nil {
				v.node = &mesh.Node{}
			}
			if v.node.ID != c.id || v.node.Owner != c.owner {
				t.Errorf("%+v", v.node)
			}
			if c.registered {
				checkAdmitted(t, d.world, j, v.node)
			}
		})
	}
}

// checkAdmitted checks what must be true for every node that joined.
func checkAdmitted(t *testing.T, w *policy.World, j Joining, n *mesh.Node) {
	t.Helper()
	if n.NodeKey != j.NodeKey || n.MachineKey != j.MachineKey || n.KeyExpired || n.UpdatedAt != joinNow || n.Name != "new-name" || n.Host == "" {
		t.Errorf("%+v", n)
	}
	if n.Tagged() != (n.Owner == 0) || n.Tagged() != (n.Expiry == 0) || !n.Tagged() && n.Expiry != joinNow.Add(time.Hour) {
		t.Errorf("owner %d, tags %v, expiry %d", n.Owner, n.Tags, n.Expiry)
	}
	if old, ok := w.Nodes.Get(n.ID); ok && (n.IPv4 != old.IPv4 || n.IPv6 != old.IPv6 || n.CreatedAt != old.CreatedAt) {
		t.Errorf("the node lost its addresses: %+v", n)
	}
	k, ok := identity.PreAuthKey(w.Snapshot, j.PreAuthKey)
	if ok != (n.Method == mesh.RegisterAuthKey) || ok && (n.PreAuthKey != k.ID || n.Ephemeral != (k.Ephemeral || j.Ephemeral)) || !ok && n.PreAuthKey != 0 {
		t.Errorf("method %s, key %d, ephemeral %v", n.Method, n.PreAuthKey, n.Ephemeral)
	}
}

// A client that registers twice with a single-use key, as "tailscale up --force-reauth"
// may, gets one node. Nobody else can use the key, and registering again does not extend
// the minute.
func TestSingleUseKeyIsAcceptedAgainFromItsMachineForAMinute(t *testing.T) {
	d := newDoor()
	key := issue(&d, mesh.PreAuthKey{ID: 20, User: 1, Expiry: joinNow.Add(time.Hour)})
	after := func(wait time.Duration, machine, node uint64) (verdict, error) {
		v, evs, err := d.decideAt(joinNow.Add(wait), Joining{MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(node), PreAuthKey: key})
		if err == nil {
			s, _ := mesh.Apply(d.world.Snapshot, d.world.Rev+1, evs...)
			d.world = policy.NewWorld(s, nil)
		}
		return v, err
	}
	first, err := after(0, 9, 90)
	if err != nil {
		t.Fatal(err)
	}
	for i, wait := range []time.Duration{time.Second, 40 * time.Second, 59 * time.Second} {
		v, err := after(wait, 9, uint64(91+i))
		if err != nil {
			t.Fatalf("after %v: %v", wait, err)
		}
		if v.node.ID != first.node.ID || v.node.IPv4 != first.node.IPv4 || !v.registered {
			t.Errorf("after %v: %+v, want the node %d again", wait, v, first.node.ID)
		}
	}
	if k, _ := d.world.PreAuthKeys.Get(20); k.LastUse.Count != 1 {
		t.Errorf("the key counts %d uses, want 1", k.LastUse.Count)
	}
	for name, c := range map[string]struct {
		wait    time.Duration
		machine uint64
	}{"another device": {time.Second, 8}, "a minute later": {time.Minute, 9}} {
		if v, err := after(c.wait, c.machine, 99); err == nil || !strings.Contains(err.Error(), "is single-use") {
			t.Errorf("%s: %+v, %v; want the key refused", name, v, err)
		}
	}
	expired := *first.node
	expired.NodeKey, expired.Expiry, expired.KeyExpired = meshgen.NodeKey(93), joinNow, true
	s, _ := mesh.Apply(d.world.Snapshot, d.world.Rev+1, mesh.NodePut{Node: &expired})
	d.world = policy.NewWorld(s, nil)
	if v, err := after(2*time.Second, 9, 99); err == nil {
		t.Errorf("a node that was expired came back with its used key: %+v", v)
	}
}

// issue adds a key and returns its text.
func issue(d *door, k mesh.PreAuthKey) string {
	issued := identity.NewKey(identity.KindPreAuth)
	k.Prefix, k.Hash = issued.Prefix, issued.Hash
	s, _ := mesh.Apply(d.world.Snapshot, d.world.Rev+1, mesh.PreAuthKeyPut{Key: &k})
	d.world = policy.NewWorld(s, nil)
	return issued.Text
}

func TestNameChosenByAPersonStays(t *testing.T) {
	d := newDoor()
	n, _ := d.world.Nodes.Get(1)
	renamed := *n
	renamed.Renamed = true
	d.world.Snapshot, _ = mesh.Apply(d.world.Snapshot, 2, mesh.NodePut{Node: &renamed})
	v, _, err := d.decide(Joining{MachineKey: n.MachineKey, NodeKey: meshgen.NodeKey(9), PreAuthKey: d.keys["user1"]})
	if err != nil || v.node.Name != n.Name || v.node.Hostname != "new name" {
		t.Errorf("%+v %v", v.node, err)
	}
}

func TestHostDescriptionIsBounded(t *testing.T) {
	var routes []netip.Prefix
	for i := range 300 {
		routes = append(routes, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 7}), 24))
	}
	long := strings.Repeat("é", 1000)
	h := Host{Hostname: long, OS: long + "\x00", Arch: "a\nb", ClientVersion: "\xff", Object: strings.Repeat("x", MaxHostObject+1), RoutableIPs: append(routes, netip.Prefix{})}.bounded()
	if len(h.Hostname) != 254 || len(h.OS) != 128 || h.Arch != "a-b" || h.ClientVersion != "-" || !strings.HasPrefix(h.Object, `{"Hostname":"é`) || len(h.RoutableIPs) != 256 {
		t.Errorf("%d %d %q %q %.20q %d", len(h.Hostname), len(h.OS), h.Arch, h.ClientVersion, h.Object, len(h.RoutableIPs))
	}
	if h.RoutableIPs[0] != netip.MustParsePrefix("10.0.0.0/24") {
		t.Error(h.RoutableIPs[0])
	}
	if again := h.bounded(); !again.equal(h) {
		t.Errorf("%+v becomes %+v", h, again)
	}
}

func TestReportDecisions(t *testing.T) {
	d := newDoor()
	n, _ := d.world.Nodes.Get(1)
	at := meshgen.Net(1)
	host := Host{n.Hostname, n.OS, n.Arch, n.ClientVersion, n.Host, n.RoutableIPs}
	base := Report{MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: &host, CapVersion: 106, Endpoints: at.Endpoints, DiscoKey: at.DiscoKey, HomeRelay: at.HomeRelay}
	known := *n
	known.CapVersion = 106
	apply := func(w *policy.World, evs ...mesh.Event) *policy.World {
		s, _ := mesh.Apply(w.Snapshot, w.Rev+1, evs...)
		return policy.NewWorld(s, nil)
	}
	facts := func(at mesh.Time, udp bool, micros int64) *mesh.Facts {
		return &mesh.Facts{Node: 1, At: at, NAT: mesh.NAT{UDP: &udp}, Latencies: []mesh.Latency{{Region: 1, Micros: micros}}}
	}
	w := apply(d.world, mesh.NodePut{Node: &known}, mesh.NodeNet{ID: 1, Net: at}, mesh.NodeFacts{Facts: facts(1, true, 1)})
	online := apply(w, mesh.Online{ID: 1, Replica: "a", Conn: 1, At: joinNow})
	for name, c := range map[string]struct {
		world  *policy.World
		change func(*Report)
		events string
	}{
		"the same":             {w, func(*Report) {}, ""},
		"nothing":              {w, func(r *Report) { *r = Report{MachineKey: r.MachineKey, NodeKey: r.NodeKey} }, ""},
		"no endpoints":         {w, func(r *Report) { r.Endpoints = nil }, ""},
		"no disco key":         {w, func(r *Report) { r.DiscoKey = key.DiscoPublic{} }, ""},
		"no relay":             {w, func(r *Report) { r.HomeRelay = 0 }, ""},
		"no such relay":        {w, func(r *Report) { r.HomeRelay = 1 << 16 }, ""},
		"another relay":        {w, func(r *Report) { r.HomeRelay = 99 }, "node.net"},
		"an endpoint less":     {w, func(r *Report) { r.Endpoints = r.Endpoints[:1] }, "node.net"},
		"new disco key":        {online, func(r *Report) { r.DiscoKey = meshgen.DiscoKey(9) }, "node.net"},
		"disco key of offline": {w, func(r *Report) { r.DiscoKey = meshgen.DiscoKey(9) }, "node.net node.offline"},
		"new version":          {w, func(r *Report) { r.CapVersion = 107 }, "node.put"},
		"new name and relay": {w, func(r *Report) {
			h := host
			h.Hostname = "other"
			r.Host, r.HomeRelay = &h, 99
		}, "node.put node.net"},
		"another latency":           {w, func(r *Report) { r.facts = facts(2, true, 2) }, ""},
		"another latency and relay": {w, func(r *Report) { r.facts, r.HomeRelay = facts(2, true, 2), 99 }, "node.net node.facts"},
		"behind another NAT":        {w, func(r *Report) { r.facts = facts(2, false, 1) }, "node.facts"},
		"NAT as it was before":      {w, func(r *Report) { r.facts = facts(0, false, 1) }, ""},
	} {
		r := base
		c.change(&r)
		evs, err := decideReport(c.world, joinNow, r)
		if err != nil || kinds(evs) != c.events {
			t.Errorf("%s: %s %v", name, kinds(evs), err)
			continue
		}
		if evs, _ := decideReport(apply(c.world, evs...), joinNow, r); len(evs) > 0 {
			t.Errorf("%s: said again it is news again: %s", name, kinds(evs))
		}
	}
	if _, err := decideReport(w, joinNow, Report{MachineKey: meshgen.MachineKey(9), NodeKey: n.NodeKey}); err == nil {
		t.Error("another device may report")
	}
}

func TestEndpointsThatMeanNothingElsewhereAreDropped(t *testing.T) {
	var all []netip.AddrPort
	for _, text := range []string{
		"192.0.2.1:1", "[fe80::1]:1", "[fe80::1%eth0]:1", "169.254.1.1:1", "0.0.0.0:1", "[::]:1", "224.0.0.1:1", "192.0.2.1:0", "[::ffff:192.0.2.2]:2", "192.0.2.1:1", "[2001:db8::1]:3",
	} {
		all = append(all, netip.MustParseAddrPort(text))
	}
	var got []string
	for _, e := range usable(append(all, netip.AddrPort{})) {
		got = append(got, e.String())
	}
	if diff := cmp.Diff([]string{"192.0.2.1:1", "192.0.2.2:2", "[2001:db8::1]:3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for port := range 100 {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 9}), uint16(port+1)))
	}
	if n := len(usable(all)); n != maxEndpoints {
		t.Errorf("%d endpoints", n)
	}
}
