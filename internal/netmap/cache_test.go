package netmap

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Whatever changes at the same time, shared messages give a viewer the same map as a full
// map would.
func TestSharedUpdatesMakeTheFullMap(t *testing.T) {
	shared := 0
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := mesh.Empty().Edit()
		for range 300 {
			d.Apply(1, mesh.Settle(d.Snapshot(), []mesh.Event{meshgen.Event(r, d.Snapshot())})...)
		}
		from := SceneOf(policy.NewWorld(d.Freeze(), nil), nil)
		cache := NewCache("")
		for range 5 {
			d, touched := from.Edit(), []mesh.NodeID{}
			for range 1 + r.IntN(60) {
				evs := mesh.Settle(d.Snapshot(), []mesh.Event{happening(r, d.Snapshot())})
				touched = append(touched, d.Apply(d.Snapshot().Rev+1, evs...)...)
			}
			to := SceneOf(from.Next(d.Freeze(), touched), from)
			for n := range to.Nodes.All() {
				if before, ok := from.Nodes.Get(n.ID); ok && before.NodeKey == n.NodeKey {
					shared += checkShared(t, cache, from, to, before, n, touched)
				}
			}
			if t.Failed() {
				return
			}
			from = to
		}
	}
	if shared == 0 {
		t.Error("nobody was sent what others are sent too")
	}
}

// New rules change what all viewers are sent. If only SSH rules depend on the owner, as in the default policy of Tailscale, a thousand
// owners must not take a thousand times as much memory.
func TestNewRulesCostOwnersOnlyTheirSSHRules(t *testing.T) {
	const users = 300
	const ssh = `"ssh": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self"], "users": ["root"]}]`
	d := mesh.Empty().Edit()
	for u := range mesh.UserID(users) {
		d.Apply(1, mesh.UserPut{User: meshgen.User(u + 1)}, mesh.NodePut{Node: meshgen.Node(mesh.NodeID(u+1), u+1)})
	}
	s := d.Freeze()
	scene := func(text string) *Scene {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return SceneOf(policy.WorldOf(s, doc), nil)
	}
	from := scene(`{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}], ` + ssh + `}`)
	to := scene(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["*:*"]}], ` + strings.Replace(ssh, "root", "admin", 1) + `}`)
	cache := NewCache("")
	patches := map[*Patch]bool{}
	for n := range to.Nodes.All() {
		delta := cache.delta(from, to, from.Viewpoint(n), to.Viewpoint(n), nil)
		if delta.err != nil || delta.response == nil || delta.response.SSHPolicy == nil || len(delta.response.PeersChangedPatch) != users {
			t.Fatalf("node %d: %+v", n.ID, delta)
		}
		for _, p := range delta.response.PeersChangedPatch {
			patches[p] = true
		}
	}
	if len(patches) != users {
		t.Errorf("%d patches for %d nodes", len(patches), users)
	}
}

func TestBlocksOfDeletedNodesAreForgotten(t *testing.T) {
	cache := NewCache("")
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)})
	first := mesh.NodeID(1000)
	for range 50 {
		for _, deleted := range []bool{false, true} {
			d := s.Edit()
			for id := first; id < first+256; id++ {
				if deleted {
					d.Apply(s.Rev+1, mesh.NodeGone{ID: id})
				} else {
					d.Apply(s.Rev+1, mesh.NodePut{Node: meshgen.Node(id, 1)})
				}
			}
			s = d.Freeze()
			if _, err := cache.FullMessage(SceneOf(policy.NewWorld(s, nil), nil), 1, time.Unix(1_800_000_000, 0)); err != nil {
				t.Fatal(err)
			}
		}
		first += 256
	}
	if n := len(cache.blocks); n > 50 {
		t.Errorf("%d blocks are kept for one node", n)
	}
}

// checkShared checks that a shared message gives a viewer the same map as a full map
// would. It returns 1 if the viewer is sent a shared message, and 0 otherwise.
func checkShared(t *testing.T, c *Cache, from, to *Scene, before, after *mesh.Node, touched []mesh.NodeID) int {
	t.Helper()
	d := c.delta(from, to, from.Viewpoint(before), to.Viewpoint(after), touched)
	if d.response == nil || !d.fits(from, to, before, after) {
		return 0 // TestUpdateFollowsFull checks the others
	}
	var got, want View
	got.Take(Full(from, after.ID))
	got.Take(d.response)
	if d.whole[after.ID] {
		got.Take(&Response{PeersRemoved: []mesh.NodeID{after.ID}})
	}
	want.Take(Full(to, after.ID))
	if diff := got.Differs(&want); diff != "" {
		t.Errorf("revision %d, node %d: %.500s", to.Rev, after.ID, diff)
	}
	return 1
}

// happening generates an event, often one that affects many nodes at once.
func happening(r *rand.Rand, s *mesh.Snapshot) mesh.Event {
	n, ok := s.Nodes.Get(mesh.NodeID(1 + r.IntN(300)))
	if !ok {
		return meshgen.Event(r, s)
	}
	c := *n
	switch r.IntN(13) {
	case 0:
		return meshgen.Event(r, s)
	case 1:
		c.RoutableIPs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	case 2:
		c.RoutableIPs, c.AllRoutes, c.Routes, c.Primary = nil, nil, nil, nil
	case 3:
		c.CapVersion = 106 + r.IntN(6)
	case 4:
		c.KeyExpired = !c.KeyExpired
	case 5:
		c.NeedsApproval, c.Routes, c.Primary = !c.NeedsApproval, nil, nil
	case 6:
		u := meshgen.User(mesh.UserID(1 + r.IntN(4)))
		u.Name, u.Email = fmt.Sprintf("user%d-%d", u.ID, r.IntN(2)), []string{"", "user1", "user2", "user3"}[r.IntN(4)]
		u.Groups = [][]string{nil, {"dev"}, {"dev", "unused"}}[r.IntN(3)]
		return mesh.UserPut{User: u}
	default:
		return mesh.NodeNet{ID: c.ID, Net: meshgen.Net(r.IntN(1000))}
	}
	return mesh.NodePut{Node: &c}
}
