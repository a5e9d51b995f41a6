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

// A node that was stored with a route to another node's address, enabled and primary, is
// sent without it, even if rules name their routers.
func TestNobodyIsToldToSendTheTrafficOfANodeElsewhere(t *testing.T) {
	victim := meshgen.Node(1, 1)
	bad, good := netip.PrefixFrom(victim.IPv4, 32), netip.MustParsePrefix("10.1.0.0/16")
	exits := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	routes := slices.Concat(exits[:1], []netip.Prefix{good, bad, netip.MustParsePrefix("100.0.0.0/8"), netip.PrefixFrom(victim.IPv6, 128)}, exits[1:])
	s := mesh.Empty()
	commit := func(evs ...mesh.Event) { s, _ = mesh.Apply(s, s.Rev+1, mesh.Settle(s, evs)...) }
	commit(mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: victim}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	mallory := meshgen.Node(3, 0)
	mallory.Tags, mallory.RoutableIPs, mallory.Routes = []string{"tag:router"}, routes, routes
	for _, p := range routes {
		mallory.AddRoute(mesh.Route{ID: mesh.RouteID(len(mallory.AllRoutes) + 1), Prefix: p, Enabled: true})
	}
	commit(mesh.NodePut{Node: mallory}, mesh.Online{ID: 3, Replica: "a", Conn: 1, At: 1})
	if n, _ := s.Nodes.Get(3); !slices.Contains(n.Primary, bad) {
		t.Fatalf("the stored node does not lead to %s: %v", bad, n.Primary)
	}
	for name, text := range map[string]string{
		"everyone": `{"tagOwners": {"tag:router": []}, "grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}]}`,
		"via": `{"tagOwners": {"tag:router": []}, "grants": [{"src": ["*"], "dst": ["autogroup:tagged"], "ip": ["*"]},
			{"src": ["*"], "dst": ["0.0.0.0/0", "::/0", "autogroup:internet"], "ip": ["*"], "via": ["tag:router"]}]}`,
	} {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		w := policy.WorldOf(s, doc)
		shown := func() *netmap.Node {
			peers := netmap.Full(netmap.SceneOf(w, nil), 2).Peers
			return peers[slices.IndexFunc(peers, func(n *netmap.Node) bool { return n.ID == 3 })]
		}
		if before := shown(); !slices.Contains(before.AllowedIPs, bad) {
			t.Fatalf("%s: where nothing is reserved, %s is not shown: %v", name, bad, before.AllowedIPs)
		}
		w.Reserved = mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48"))
		after := shown()
		if want := []netip.Prefix{good}; !slices.Equal(after.PrimaryRoutes, want) {
			t.Errorf("%s: primary routes %v, want %v", name, after.PrimaryRoutes, want)
		}
		for _, p := range after.AllowedIPs {
			if _, overlaps := w.Reserved.Overlap(p); overlaps && !slices.Contains(after.Addresses, p) {
				t.Errorf("%s: allowed IPs have %s", name, p)
			}
		}
		for _, p := range append(exits, good) {
			if !slices.Contains(after.AllowedIPs, p) {
				t.Errorf("%s: allowed IPs %v have no %s", name, after.AllowedIPs, p)
			}
		}
	}
}
