package netmap_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Two sites have the same prefix. Rules send one user through the second site, and the
// other user uses the primary router.
func TestRulesLeadThroughTheRoutersThatTheyName(t *testing.T) {
	site := netip.MustParsePrefix("10.1.0.0/16")
	s := mesh.Empty()
	commit := func(evs ...mesh.Event) { s, _ = mesh.Apply(s, s.Rev+1, mesh.Settle(s, evs)...) }
	commit(mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)})
	for id, tag := range []string{"", "", "tag:first", "tag:second", "tag:second"} {
		n := meshgen.Node(mesh.NodeID(id+1), mesh.UserID(id+1))
		n.CapVersion = 140
		if tag != "" {
			n.Owner, n.Tags, n.RoutableIPs, n.Routes = 0, []string{tag}, []netip.Prefix{site}, []netip.Prefix{site}
		}
		commit(mesh.NodePut{Node: n}, mesh.Online{ID: n.ID, Replica: "a", Conn: 1, At: 1})
	}
	doc, problems := lang.Parse([]byte(`{"tagOwners": {"tag:first": [], "tag:second": []}, "grants": [
		{"src": ["user1"], "dst": ["10.1.7.0/24"], "ip": ["*"], "via": ["tag:second"]},
		{"src": ["user2"], "dst": ["10.1.7.0/24"], "ip": ["*"]},
		{"src": ["*"], "dst": ["autogroup:tagged"], "ip": ["22"]}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	sc := netmap.SceneOf(policy.WorldOf(s, doc), nil)
	leads := func(viewer mesh.NodeID) (ids []mesh.NodeID) {
		for _, p := range netmap.Full(sc, viewer).Peers {
			if slices.Contains(p.AllowedIPs, site) != slices.Contains(p.PrimaryRoutes, site) {
				t.Errorf("peer %d: %v, %v", p.ID, p.AllowedIPs, p.PrimaryRoutes)
			}
			if slices.Contains(p.AllowedIPs, site) {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}
	want := func(when string, first, second []mesh.NodeID) {
		t.Helper()
		if a, b := leads(1), leads(2); !slices.Equal(a, first) || !slices.Equal(b, second) {
			t.Errorf("%s: user1 is led through %v and user2 through %v, want %v and %v", when, a, b, first, second)
		}
	}
	want("all are there", []mesh.NodeID{4}, []mesh.NodeID{3})
	for _, gone := range []mesh.NodeID{4, 3} {
		before := sc
		commit(mesh.Offline{ID: gone, At: 2})
		sc = netmap.SceneOf(before.Next(s, []mesh.NodeID{gone}), before)
		for viewer := range mesh.NodeID(2) {
			if diff := checkUpdate(netmap.NewCache(""), before, sc, viewer+1, s.Nodes.ChangedSince(&before.Nodes)); diff != "" {
				t.Errorf("viewer %d, without %d: %s", viewer+1, gone, diff)
			}
		}
		switch gone {
		case 4:
			want("the second site's first router is gone", []mesh.NodeID{5}, []mesh.NodeID{3})
		case 3:
			want("the first site is gone too", []mesh.NodeID{5}, []mesh.NodeID{5})
		}
	}
}
