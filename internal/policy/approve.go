package policy

import (
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Approves reports whether a route that a node announces needs nobody's approval:
// autoApprovers names the node's owner or one of its tags for a prefix that holds
// the route, or for exit nodes.
func (w *World) Approves(n *mesh.Node, route netip.Prefix) bool {
	return w.Doc.Approves(w.Snapshot, n, route)
}

// Approves is the same for a document that is not in force; nil approves nothing.
func (d *Doc) Approves(s *mesh.Snapshot, n *mesh.Node, route netip.Prefix) bool {
	if d == nil {
		return false
	}
	node := party{own: true, tags: n.Tags}
	if owner, ok := s.User(n.Owner); ok {
		node.names = namesOf(owner)
	}
	isNode := func(t Target) bool { return t.is(&node, d.groups) }
	if mesh.Exit(route) {
		return slices.ContainsFunc(d.approvers.ExitNode, isNode)
	}
	return slices.ContainsFunc(d.approvers.Routes, func(r RouteApprovers) bool {
		return r.Prefix.Bits() <= route.Bits() && r.Prefix.Contains(route.Addr()) && slices.ContainsFunc(r.Who, isNode)
	})
}
