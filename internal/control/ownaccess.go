package control

import (
	"slices"

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

// whyOwn is Why for a member. The source must be one of the member's nodes, and the
// destination a node that it sees, or another one of the member's. The answer says by which
// property of the source it is allowed. It does not contain the rules, which may name other
// people, groups and hosts, nor those that almost allow it.
func (s *Policies) whyOwn(a mesh.Actor, in PolicyQuestion) (explain.Answer, *policy.World, error) {
	w := s.ledger.World()
	q, err := in.service()
	if err != nil {
		return explain.Answer{}, nil, err
	}
	from, err := OwnNode(w.Snapshot, a, in.From)
	if err != nil {
		return explain.Answer{}, nil, err
	}
	to, err := FindNode(w.Snapshot, in.To)
	if err != nil {
		return explain.Answer{}, nil, err
	}
	if !OwnsNode(a, to) && !w.Sees(w.Class(from), from.Owner, to) {
		return explain.Answer{}, nil, ErrNoNode(in.To)
	}
	q.From, q.To = explain.End{Node: from.ID}, explain.End{Node: to.ID}
	full := explain.Why(w, q)
	answer := explain.Answer{Allowed: full.Allowed, Notes: full.Notes}
	for _, f := range full.Rules {
		if !slices.ContainsFunc(answer.Rules, func(g explain.Finding) bool { return g.Text == f.Source }) {
			answer.Rules = append(answer.Rules, explain.Finding{Text: f.Source})
		}
	}
	return answer, w, nil
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
