package mesh_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// hall holds a snapshot with routers of one prefix, which can go online and offline or
// become unhealthy.
type hall struct {
	t *testing.T
	s *mesh.Snapshot
}

func office() netip.Prefix { return netip.MustParsePrefix("10.1.0.0/16") }

func newHall(t *testing.T, preferences ...int) *hall {
	h := &hall{t, mesh.Empty()}
	for i, preference := range preferences {
		n := meshgen.Node(mesh.NodeID(i+1), 1)
		n.RoutableIPs = []netip.Prefix{office()}
		n.Routes = n.RoutableIPs
		n.AllRoutes = []mesh.Route{{ID: mesh.RouteID(i + 1), Prefix: office(), Enabled: true, Preference: preference}}
		h.commit(mesh.NodePut{Node: n})
	}
	return h
}

func (h *hall) commit(evs ...mesh.Event) {
	h.s, _ = mesh.Apply(h.s, h.s.Rev+1, mesh.Settle(h.s, evs)...)
}

func (h *hall) change(id mesh.NodeID, change func(*mesh.Node)) {
	n, _ := h.s.Nodes.Get(id)
	c := *n
	change(&c)
	h.commit(mesh.NodePut{Node: &c})
}

func (h *hall) online(id mesh.NodeID) {
	h.commit(mesh.Online{ID: id, Replica: "a", Conn: int64(h.s.Rev), At: 1})
}

func (h *hall) offline(id mesh.NodeID) { h.commit(mesh.Offline{ID: id, At: 2}) }

// leads returns the primary router of the prefix. More than one is an error.
func (h *hall) leads() (id mesh.NodeID) {
	h.t.Helper()
	for n := range h.s.Nodes.All() {
		if slices.Contains(n.Primary, office()) {
			if id != 0 {
				h.t.Fatalf("nodes %d and %d lead to one prefix", id, n.ID)
			}
			id = n.ID
		}
	}
	return id
}

func (h *hall) want(id mesh.NodeID, when string) {
	h.t.Helper()
	if got := h.leads(); got != id {
		h.t.Errorf("%s: node %d leads, want %d", when, got, id)
	}
}

func TestRouterStaysUntilItCannot(t *testing.T) {
	h := newHall(t, 0, 5, 0)
	h.want(1, "nobody is online, and who was there first has it")
	h.online(3)
	h.want(3, "the only one online")
	h.online(2)
	h.want(3, "one that is preferred comes, and who leads stays")
	h.offline(3)
	h.want(2, "who led is gone")
	h.online(3)
	h.online(1)
	h.want(2, "others are back")
	h.offline(2)
	h.want(1, "equal preference: who was there first")
	h.change(1, func(n *mesh.Node) { n.Unhealthy = true })
	h.want(3, "who led does not answer")
	h.change(1, func(n *mesh.Node) { n.Unhealthy = false })
	h.want(3, "it answers again")
	h.change(3, func(n *mesh.Node) { n.Routes = nil })
	h.want(1, "no longer announced")
	h.change(1, func(n *mesh.Node) { n.KeyExpired = true })
	h.want(1, "nobody else is online: rather an expired one than another that is away")
	h.online(2)
	h.want(2, "one that can")
	h.commit(mesh.NodeGone{ID: 2}, mesh.NodeGone{ID: 1})
	h.want(0, "nobody has the prefix")
}

func TestRouterThatComesAndGoesMovesThePrefixOnce(t *testing.T) {
	h := newHall(t, 10, 0)
	h.online(1)
	h.online(2)
	moves, leads := 0, h.leads()
	for range 20 {
		h.offline(1)
		h.online(1)
		if now := h.leads(); now != leads {
			moves, leads = moves+1, now
		}
	}
	if moves != 1 || leads != 2 {
		t.Errorf("moved %d times, to node %d", moves, leads)
	}
}

func TestEveryoneLeadsToTheInternet(t *testing.T) {
	h := newHall(t, 0, 0)
	for _, id := range []mesh.NodeID{1, 2} {
		h.change(id, func(n *mesh.Node) {
			n.Routes = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		})
	}
	for n := range h.s.Nodes.All() {
		if n.Primary != nil {
			t.Errorf("node %d leads to %v alone", n.ID, n.Primary)
		}
	}
}

// Whatever happens, each prefix with routers has exactly one primary router, and never one
// that is offline while another is online.
func TestEachPrefixHasOneRouter(t *testing.T) {
	moved := 0
	for seed := range uint64(20) {
		moved += oneRouter(t, seed)
	}
	if moved < 20 {
		t.Errorf("a prefix moved only %d times", moved)
	}
}

func oneRouter(t *testing.T, seed uint64) (moved int) {
	r := rand.New(rand.NewPCG(seed, 4))
	s := mesh.Empty()
	for range 2500 {
		before := s
		s, _ = mesh.Apply(s, s.Rev+1, mesh.Settle(s, []mesh.Event{meshgen.Event(r, s)})...)
		leaders, fit, routers := map[netip.Prefix]*mesh.Node{}, map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
		can := func(n *mesh.Node) bool { return n.Presence.Online && !n.CutOff() && !n.Unhealthy }
		for n := range s.Nodes.All() {
			for _, p := range n.Routes {
				routers[p], fit[p] = !mesh.Exit(p), fit[p] || can(n)
			}
			for _, p := range n.Primary {
				if leaders[p] != nil || !slices.Contains(n.Routes, p) || mesh.Exit(p) {
					t.Fatalf("revision %d: node %d leads to %s by mistake", s.Rev, n.ID, p)
				}
				leaders[p] = n
				if was, ok := before.Nodes.Get(n.ID); ok && !slices.Contains(was.Primary, p) {
					moved++
				}
			}
		}
		for p, led := range routers {
			if led && (leaders[p] == nil || fit[p] && !can(leaders[p])) {
				t.Fatalf("revision %d: %s leads to %v", s.Rev, p, leaders[p])
			}
		}
	}
	return moved
}

func TestInternetOfTheOtherFamilyFollowsWhatWasDecided(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")
	never := func(netip.Prefix) bool { return false }
	for _, enabled := range []bool{true, false} {
		for _, first := range []netip.Prefix{v4, v6} {
			n := &mesh.Node{RoutableIPs: []netip.Prefix{first}}
			n.KeepRoutes(0, 1, mesh.AutoApproval{Approves: never})
			n.AllRoutes[0].Enabled, n.AllRoutes[0].Decided = enabled, true
			n.RoutableIPs = []netip.Prefix{v4, v6}
			n.KeepRoutes(1, 2, mesh.AutoApproval{Approves: func(netip.Prefix) bool { return true }})
			for _, r := range n.AllRoutes {
				if r.Enabled != enabled || !r.Decided {
					t.Errorf("%v was decided as %v first; %v is enabled: %v, decided: %v", first, enabled, r.Prefix, r.Enabled, r.Decided)
				}
			}
		}
	}
}

// A device that keeps announcing new routes does not make its node grow. What a person
// decided stays.
func TestUndecidedRoutesAreDropped(t *testing.T) {
	always := mesh.AutoApproval{Approves: func(netip.Prefix) bool { return true }}
	n := &mesh.Node{}
	last := mesh.RouteID(0)
	for i := range 2000 {
		n.RoutableIPs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)}
		n.KeepRoutes(last, 1, always)
		for _, r := range n.AllRoutes {
			last = max(last, r.ID)
		}
		if i == 0 {
			n.AllRoutes[0].Decided = true
		}
	}
	if got := len(n.AllRoutes); got != 258 {
		t.Errorf("%d routes are known, want 256 beside the first and the last", got)
	}
	for _, prefix := range []string{"10.0.0.0/24", "10.7.207.0/24", "10.7.206.0/24"} {
		if _, ok := n.Route(netip.MustParsePrefix(prefix)); !ok {
			t.Errorf("%s is forgotten", prefix)
		}
	}
}
