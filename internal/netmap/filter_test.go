package netmap_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// A client that is sent another full map keeps the parts of its filter that the
// map does not name.
func TestFiltersOfAnOlderMapAreTakenBack(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	scene := func(text string) *netmap.Scene {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return netmap.SceneOf(policy.WorldOf(s, doc), nil)
	}
	from := scene(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]}]}`)
	to := scene(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:member:22"]}]}`)
	n, _ := s.Nodes.Get(1)
	var got, want netmap.View
	got.Take(netmap.Full(from, n.ID))
	got.Take(netmap.Full(to, n.ID))
	want.Take(netmap.Full(to, n.ID))
	if got.Differs(&want) == "" {
		t.Fatal("nothing is to be taken back")
	}
	got.Take(netmap.Dropped(from, to, n, n))
	if diff := got.Differs(&want); diff != "" {
		t.Error(diff)
	}
	if r := netmap.Dropped(to, to, n, n); r != nil {
		t.Errorf("%+v", r)
	}
}

// mirrorPolicy lets user 1 relay through tagged nodes, and use the folders that user 2 shares. Everyone
// may use the folders on their own nodes.
const mirrorPolicy = `{"tagOwners": {"tag:relay": []}, "grants": [
	{"src": ["user1"], "dst": ["tag:relay"], "app": {"tailscale.com/cap/relay": [], "example.com/cap/edit": []}},
	{"src": ["user1"], "dst": ["user2"], "ip": ["*"], "app": {"tailscale.com/cap/drive": [{"shares": ["*"], "access": "ro"}]}},
	{"src": ["autogroup:member"], "dst": ["autogroup:self"], "app": {"tailscale.com/cap/drive": [{"shares": ["*"], "access": "rw"}]}}]}`

// Clients use a relay or a shared folder only if their own filter gives the peer the capability
// that answers the one in the grant. TestClientsAllowWhatThePolicyAllows compares random policies.
func TestSourcesOfAGrantAnswerItsDestinations(t *testing.T) {
	tagged := meshgen.Node(3, 1)
	tagged.Owner, tagged.Tags, tagged.Routes = 0, []string{"tag:relay"}, nil
	router := meshgen.Node(4, 1) // its filter lists its own addresses
	router.RoutableIPs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.NodePut{Node: meshgen.Node(1, 1)},
		mesh.NodePut{Node: meshgen.Node(2, 2)}, mesh.NodePut{Node: tagged}, mesh.NodePut{Node: router})
	doc, problems := lang.Parse([]byte(mirrorPolicy))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	scene := netmap.SceneOf(policy.WorldOf(s, doc), nil)
	for _, c := range []struct {
		at, from mesh.NodeID
		want     []tailcfg.PeerCapability
	}{
		{1, 3, []tailcfg.PeerCapability{tailcfg.PeerCapabilityRelayTarget}},
		{3, 1, []tailcfg.PeerCapability{tailcfg.PeerCapabilityRelay, "example.com/cap/edit"}},
		{4, 3, []tailcfg.PeerCapability{tailcfg.PeerCapabilityRelayTarget}},
		{1, 2, []tailcfg.PeerCapability{tailcfg.PeerCapabilityTaildriveSharer}},
		{2, 1, []tailcfg.PeerCapability{tailcfg.PeerCapabilityTaildrive}},
		{1, 4, []tailcfg.PeerCapability{tailcfg.PeerCapabilityTaildrive, tailcfg.PeerCapabilityTaildriveSharer}},
		{2, 3, nil},
		{3, 2, nil},
	} {
		at, _ := s.Nodes.Get(c.at)
		from, _ := s.Nodes.Get(c.from)
		var sent tailcfg.MapResponse
		if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene, at.ID))), &sent); err != nil {
			t.Fatal(err)
		}
		client, err := newClient(at, &sent)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(maps.Keys(client.filter.CapsWithValues(from.IPv4, at.IPv4)))
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("node %d grants to node %d: %s", c.at, c.from, diff)
		}
	}
}
