package control_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// put commits nodes. Their IDs, keys and addresses are derived from their order, and so
// are their names unless they are set.
func put(t *testing.T, s service, nodes ...mesh.Node) {
	t.Helper()
	evs := []mesh.Event{mesh.UserPut{User: &mesh.User{ID: 1, Name: "alice"}}}
	for i, n := range nodes {
		n.ID = mesh.NodeID(i + 1)
		n.MachineKey, n.NodeKey = meshgen.MachineKey(uint64(i)), meshgen.NodeKey(uint64(i))
		n.IPv4, n.IPv6 = v4(i+1), v6(i+1)
		if n.Hostname == "" {
			n.Hostname = "host"
		}
		if n.Name == "" {
			n.Name = n.Hostname + "-" + n.ID.String()
		}
		if len(n.Tags) == 0 {
			n.Owner = 1
		}
		evs = append(evs, mesh.NodePut{Node: &n})
		if n.Presence.Online {
			evs = append(evs, mesh.Online{ID: n.ID, Replica: "r", Conn: 1, At: 1})
		}
	}
	commit(t, s, evs...)
}

func commit(t *testing.T, s service, evs ...mesh.Event) {
	t.Helper()
	if _, err := s.ledger.Commit(t.Context(), admin, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		t.Fatal(err)
	}
}

func v4(n int) netip.Addr { return mesh.AddrAt(netip.MustParsePrefix("100.64.0.0/10"), uint64(n)) }
func v6(n int) netip.Addr {
	return mesh.AddrAt(netip.MustParsePrefix("fd7a:115c:a1e0::/48"), uint64(n))
}

func (s service) node(t *testing.T, id mesh.NodeID) *mesh.Node {
	t.Helper()
	n, ok := s.ledger.World().Nodes.Get(id)
	if !ok {
		t.Fatalf("there is no node %s", id)
	}
	return n
}

func withPolicy(t *testing.T, text string) service {
	t.Helper()
	s := open(t)
	commit(t, s, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: text, Source: "api"}})
	if problems := s.ledger.World().Problems; len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

func TestNodesAreFoundByIDNameAndAddress(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Name: "laptop"}, mesh.Node{Name: "7"}, mesh.Node{Name: "1"})
	for ref, want := range map[string]mesh.NodeID{
		"1": 1, "2": 2, "laptop": 1, "LapTop": 1, v4(2).String(): 2, v6(3).String(): 3, "::ffff:" + v4(1).String(): 1,
		"7": 0, // a number is an ID, even if it is the name of a node
		"":  0, "lap": 0, "-1": 0, "100.64.9.9": 0, "laptop.example.com": 0,
	} {
		n, err := control.FindNode(s.ledger.World().Snapshot, ref)
		switch {
		case want == 0:
			if reason(err) != control.NotFound {
				t.Errorf("%q: %v, %v", ref, n, err)
			}
		case err != nil || n.ID != want:
			t.Errorf("%q: %v, %v, want node %s", ref, n, err, want)
		}
	}
}

func TestNodesAreFoundByTheirFullName(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Name: "laptop"})
	commit(t, s, s.ledger.World().SettingPutFor(mesh.SettingDNS, `{"baseDomain": "mesh.example"}`, "", false, 1)...)
	for ref, found := range map[string]bool{
		"laptop": true, "laptop.mesh.example": true, "Laptop.Mesh.Example.": true, "laptop.example": false, "mesh.example": false, ".mesh.example": false,
	} {
		if n, err := control.FindNode(s.ledger.World().Snapshot, ref); (err == nil) != found {
			t.Errorf("%q: %v, %v", ref, n, err)
		}
	}
}

func TestDeletedNodeIsGoneAndItsIDIsNotUsedAgain(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{}, mesh.Node{})
	if err := s.Nodes.Delete(t.Context(), admin, "host-2", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Nodes.Delete(t.Context(), admin, "2", ""); reason(err) != control.NotFound {
		t.Errorf("a second time: %v", err)
	}
	w := s.ledger.World()
	if _, ok := w.Nodes.ByAddr(v4(2)); ok || w.Nodes.Len() != 1 || w.Counters.Node != 2 {
		t.Errorf("%d nodes, last id %s", w.Nodes.Len(), w.Counters.Node)
	}
}

func TestRename(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   string
		reason control.Reason
	}{
		{"web", "web", -1},
		{"WEB-1", "web-1", -1},
		{"1st", "1st", -1},
		{strings.Repeat("a", 63), strings.Repeat("a", 63), -1},
		{"mine", "mine", -1}, // its current name
		{"", "host", -1},     // the hostname of its device
		{"taken", "", control.Conflict},
		{"42", "", control.Invalid},
		{"a.b", "", control.Invalid},
		{"-a", "", control.Invalid},
		{"a-", "", control.Invalid},
		{"a_b", "", control.Invalid},
		{"é", "", control.Invalid},
		{"a\n", "", control.Invalid},
		{strings.Repeat("a", 64), "", control.Invalid},
	} {
		s := open(t)
		put(t, s, mesh.Node{Name: "mine", Hostname: "Host"}, mesh.Node{Name: "taken"})
		n, err := s.Nodes.Rename(t.Context(), admin, "mine", c.name, "")
		if reason(err) != c.reason {
			t.Errorf("%q: %v, want reason %d", c.name, err, c.reason)
			continue
		}
		if err != nil {
			if c.reason == control.Conflict && !strings.Contains(err.Error(), "node 2 ") {
				t.Errorf("%q: %v does not name the holder", c.name, err)
			}
			continue
		}
		got := s.node(t, 1)
		if got.Name != c.want || n.Name != c.want || got.Renamed != (c.name != "") || got.Hostname != "Host" {
			t.Errorf("%q: name %q, renamed %v, hostname %q", c.name, got.Name, got.Renamed, got.Hostname)
		}
	}
}

func TestTaggedNodeBelongsToItsTagsForEver(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:web": [], "tag:db": ["alice"]}}`)
	put(t, s, mesh.Node{Expiry: 1, KeyExpired: true}, mesh.Node{Tags: []string{"tag:db"}, CreatedBy: 7, Expiry: 5})
	for _, tags := range [][]string{nil, {"web"}, {"tag:mail"}, {"tag:web", "tag:mail"}, make([]string, 65)} {
		if n, err := s.Nodes.Tag(t.Context(), admin, "1", tags, ""); reason(err) != control.Invalid {
			t.Errorf("%q: %v, %v", tags, n, err)
		}
	}
	if _, err := s.Nodes.Tag(t.Context(), admin, "9", []string{"tag:web"}, ""); reason(err) != control.NotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	if _, err := s.Nodes.Tag(t.Context(), admin, "1", []string{"tag:web", "tag:db", "tag:web"}, ""); err != nil {
		t.Fatal(err)
	}
	n := s.node(t, 1)
	if diff := cmp.Diff([]string{"tag:db", "tag:web"}, n.Tags); diff != "" || n.Owner != 0 || n.CreatedBy != 1 || n.Expiry != 0 || n.KeyExpired {
		t.Errorf("owner %s, created by %s, expiry %d, key expired %v, tags (-want +got):\n%s", n.Owner, n.CreatedBy, n.Expiry, n.KeyExpired, diff)
	}
	if s.ledger.World().Nodes.OwnedCount(1) != 0 {
		t.Error("the former owner's node is still counted")
	}
	if _, err := s.Nodes.Tag(t.Context(), admin, "2", []string{"tag:web"}, ""); err != nil {
		t.Fatal(err)
	}
	if n := s.node(t, 2); n.CreatedBy != 7 || n.Expiry != 5 {
		t.Errorf("other tags changed who created a node, or its expiry: %s, %d", n.CreatedBy, n.Expiry)
	}
}

func TestMovedNodeBelongsToItsNewUser(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Expiry: 5}, mesh.Node{Tags: []string{"tag:db"}})
	bob, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	before := s.node(t, 1)
	for ref, want := range map[string]struct {
		user   string
		reason control.Reason
	}{"1": {"", control.Invalid}, "host-1": {"nobody", control.NotFound}, "9": {"bob", control.NotFound}, "2": {"bob", control.Conflict}} {
		if n, err := s.Nodes.Move(t.Context(), admin, ref, want.user, ""); reason(err) != want.reason {
			t.Errorf("node %s to %q: %v, %v", ref, want.user, n, err)
		}
	}
	moved, err := s.Nodes.Move(t.Context(), admin, "1", "Bob", "")
	if err != nil {
		t.Fatal(err)
	}
	if moved.Owner != bob.ID || moved.Name != before.Name || moved.IPv4 != before.IPv4 || moved.Expiry != before.Expiry || s.ledger.World().Nodes.OwnedCount(bob.ID) != 1 {
		t.Errorf("%+v, was %+v", moved, before)
	}
	rev := s.ledger.World().Rev
	if _, err := s.Nodes.Move(t.Context(), admin, "1", bob.ID.String(), ""); err != nil || s.ledger.World().Rev != rev {
		t.Errorf("a second time: %v, revision %d after %d", err, s.ledger.World().Rev, rev)
	}
}

func TestWithoutPolicyAdministratorsMayUseAnyTag(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	if _, err := s.Nodes.Tag(t.Context(), admin, "1", []string{"tag:anything"}, ""); err != nil {
		t.Error(err)
	}
}

func TestExpiryOfOneNode(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	at, never := func(t time.Time) control.Expiration { return control.Expiration{At: t} }, control.Expiration{Never: true}
	for _, c := range []struct {
		name   string
		e      control.Expiration
		expiry func(before *mesh.Node, now mesh.Time) mesh.Time
		lapsed bool
	}{
		{"at a time", at(later), func(*mesh.Node, mesh.Time) mesh.Time { return mesh.TimeOf(later) }, false},
		{"now", control.Expiration{}, func(_ *mesh.Node, now mesh.Time) mesh.Time { return now }, true},
		{"now, again", at(time.Unix(2, 0)), func(before *mesh.Node, _ mesh.Time) mesh.Time { return before.Expiry }, true},
		{"back until a time", at(later), func(*mesh.Node, mesh.Time) mesh.Time { return mesh.TimeOf(later) }, false},
		{"now, a third time", at(time.Unix(0, 0)), func(_ *mesh.Node, now mesh.Time) mesh.Time { return now }, true},
		{"never", never, func(*mesh.Node, mesh.Time) mesh.Time { return 0 }, false},
		{"never, again", never, func(*mesh.Node, mesh.Time) mesh.Time { return 0 }, false},
	} {
		before := s.node(t, 1)
		if _, err := s.Nodes.Expire(t.Context(), admin, "1", c.e, ""); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		n, w := s.node(t, 1), s.ledger.World()
		if want := c.expiry(before, w.At); n.Expiry != want || n.KeyExpired != c.lapsed {
			t.Errorf("%s: expiry %d, key expired %v, want %d, %v", c.name, n.Expiry, n.KeyExpired, want, c.lapsed)
		}
	}
	if _, err := s.Nodes.Expire(t.Context(), admin, "1", at(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), ""); reason(err) != control.Invalid {
		t.Errorf("the year 10000: %v", err)
	}
}

func TestExpiringManySkipsAndCountsThoseThatHaveExpired(t *testing.T) {
	tagged := []string{"tag:a"}
	for name, c := range map[string]struct {
		sel              control.NodeSelection
		expired, already int
		lapsed           []mesh.NodeID
		reason           control.Reason
	}{
		"all, tagged ones too":       {control.NodeSelection{All: true}, 3, 1, []mesh.NodeID{1, 2, 3, 4}, -1},
		"all that are offline":       {control.NodeSelection{AllOffline: true}, 1, 1, []mesh.NodeID{2, 4}, -1},
		"by id, name and address":    {control.NodeSelection{Nodes: []string{"1", "host-3", v4(4).String(), "host-1"}}, 2, 1, []mesh.NodeID{1, 3, 4}, -1},
		"one that is not there":      {control.NodeSelection{Nodes: []string{"1", "nowhere"}}, 0, 0, []mesh.NodeID{4}, control.NotFound},
		"nothing":                    {control.NodeSelection{}, 0, 0, []mesh.NodeID{4}, control.Invalid},
		"all and all offline":        {control.NodeSelection{All: true, AllOffline: true}, 0, 0, []mesh.NodeID{4}, control.Invalid},
		"all offline and one by one": {control.NodeSelection{AllOffline: true, Nodes: []string{"1"}}, 0, 0, []mesh.NodeID{4}, control.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			online := mesh.Presence{Online: true}
			put(t, s, mesh.Node{Presence: online}, mesh.Node{Tags: tagged}, mesh.Node{Presence: online, Tags: tagged}, mesh.Node{Expiry: 1, KeyExpired: true})
			expired, already, err := s.Nodes.ExpireMany(t.Context(), admin, c.sel)
			if expired != c.expired || already != c.already || reason(err) != c.reason {
				t.Errorf("%d expired, %d had, %v; want %d, %d, reason %d", expired, already, err, c.expired, c.already, c.reason)
			}
			var lapsed []mesh.NodeID
			for n := range s.ledger.World().Nodes.All() {
				if n.KeyExpired != n.Expired(s.ledger.World().At) {
					t.Errorf("node %s: key expired %v, expiry %d", n.ID, n.KeyExpired, n.Expiry)
				}
				if n.KeyExpired {
					lapsed = append(lapsed, n.ID)
				}
			}
			if diff := cmp.Diff(c.lapsed, lapsed); diff != "" {
				t.Errorf("expired nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLargeNetworkExpiresInSeveralCommits(t *testing.T) {
	s := open(t)
	put(t, s, make([]mesh.Node, 600)...)
	commit(t, s, mesh.NodeGone{ID: 256}, mesh.NodeGone{ID: 257}, mesh.NodeGone{ID: 600})
	before := s.ledger.World().Rev
	expired, already, err := s.Nodes.ExpireMany(t.Context(), admin, control.NodeSelection{All: true})
	if err != nil || expired != 597 || already != 0 {
		t.Errorf("%d expired, %d had, %v", expired, already, err)
	}
	if commits := s.ledger.World().Rev - before; commits != 3 {
		t.Errorf("%d commits", commits)
	}
	if expired, already, err = s.Nodes.ExpireMany(t.Context(), admin, control.NodeSelection{All: true}); err != nil || expired != 0 || already != 597 {
		t.Errorf("again: %d expired, %d had, %v", expired, already, err)
	}
}

func TestNodeGetsTheAddressesReservedForIt(t *testing.T) {
	none := netip.Addr{}
	addr := netip.MustParseAddr
	for _, c := range []struct {
		name         string
		v4, v6       netip.Addr
		want4, want6 netip.Addr
		reason       control.Reason
	}{
		{"both", addr("100.100.1.7"), addr("fd7a:115c:a1e0::7:7"), addr("100.100.1.7"), addr("fd7a:115c:a1e0::7:7"), -1},
		{"one", addr("100.64.9.9"), none, addr("100.64.9.9"), v6(1), -1},
		{"the other", none, addr("fd7a:115c:a1e0::9"), v4(1), addr("fd7a:115c:a1e0::9"), -1},
		{"what it has", v4(1), v6(1), v4(1), v6(1), -1},
		{"nothing", none, none, v4(1), v6(1), control.Invalid},
		{"outside", addr("10.0.0.1"), none, v4(1), v6(1), control.Invalid},
		{"of the other kind", addr("fd7a:115c:a1e0::9"), none, v4(1), v6(1), control.Invalid},
		{"first of the prefix", addr("100.64.0.0"), none, v4(1), v6(1), control.Invalid},
		{"last of the prefix", addr("100.127.255.255"), none, v4(1), v6(1), control.Invalid},
		{"resolver of the clients", addr("100.100.100.100"), none, v4(1), v6(1), control.Invalid},
		{"resolver of the clients, IPv6", none, addr("fd7a:115c:a1e0::53"), v4(1), v6(1), control.Invalid},
		{"of another node", v4(2), none, v4(1), v6(1), control.Conflict},
		{"one free, one not", addr("100.64.9.9"), v6(2), v4(1), v6(1), control.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			put(t, s, mesh.Node{}, mesh.Node{})
			cursor := s.ledger.World().Counters.V4
			_, err := s.Nodes.SetAddresses(t.Context(), admin, "host-1", c.v4, c.v6, "")
			if reason(err) != c.reason || reason(err) < 0 && err != nil {
				t.Errorf("%v, want reason %d", err, c.reason)
			}
			if n := s.node(t, 1); n.IPv4 != c.want4 || n.IPv6 != c.want6 {
				t.Errorf("%s and %s, want %s and %s", n.IPv4, n.IPv6, c.want4, c.want6)
			}
			if s.ledger.World().Counters.V4 != cursor {
				t.Error("the next node's address moved")
			}
		})
	}
}
