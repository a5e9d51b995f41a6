package control

import (
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
)

// MapOwnAccess returns what the nodes of a member can reach, and the world it was evaluated
// in. from names some of these nodes; without names it is all of them. The result contains
// only what the nodes can reach, which their clients show too, and not the rules.
func (s *Policies) MapOwnAccess(a mesh.Actor, from []string) (*explain.AccessMap, *policy.World, error) {
	if len(from) > maxNamed {
		return nil, nil, refuse(Invalid, "from", "from has %d names; use at most %d", len(from), maxNamed)
	}
	w := s.ledger.World()
	own, err := ownNodes(w.Snapshot, a, from)
	if err != nil {
		return nil, nil, err
	}
	ask := explain.MapQuestion{By: explain.ByNodes}
	for _, n := range own {
		ask.From = append(ask.From, n.ID.String())
	}
	ask.To = visibleTo(w, own)
	if len(ask.From) == 0 || len(ask.To) == 0 {
		return &explain.AccessMap{}, w, nil
	}
	m, err := explain.MapOf(w, w, ask)
	if err != nil {
		return nil, nil, err
	}
	return reachable(m), w, nil
}

func ownNodes(s *mesh.Snapshot, a mesh.Actor, refs []string) (own []*mesh.Node, err error) {
	for _, ref := range refs {
		n, err := OwnNode(s, a, ref)
		if err != nil {
			return nil, err
		}
		own = append(own, n)
	}
	if len(refs) > 0 {
		return own, nil
	}
	for n := range s.Nodes.All() {
		if OwnsNode(a, n) && len(own) < maxNamed {
			own = append(own, n)
		}
	}
	return own, nil
}

// visibleTo names everything that some of the nodes may reach: the peers that they see,
// routes, and the internet.
func visibleTo(w *policy.World, own []*mesh.Node) (names []string) {
	internet := false
	for peer := range w.Nodes.All() {
		for _, n := range own {
			if n.ID != peer.ID && w.Sees(w.Class(n), n.Owner, peer) {
				names = append(names, peer.ID.String())
				break
			}
		}
		for _, r := range peer.Routes {
			internet = internet || mesh.Exit(r)
		}
	}
	for _, p := range w.Routes() {
		names = append(names, p.String())
	}
	if internet {
		names = append(names, explain.Internet)
	}
	return names
}

// reachable removes from a map the destinations that no source reaches, and all rules.
func reachable(m *explain.AccessMap) *explain.AccessMap {
	out := &explain.AccessMap{From: m.From, MoreFrom: m.MoreFrom, MoreTo: m.MoreTo, MoreCells: m.MoreCells}
	at := map[int]int{}
	for _, c := range m.Cells {
		to, ok := at[c.To]
		if !ok {
			to = len(out.To)
			at[c.To], out.To = to, append(out.To, m.To[c.To])
		}
		c.To, c.Rules = to, nil
		out.Cells = append(out.Cells, c)
	}
	return out
}
