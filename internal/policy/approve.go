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
	if w.Doc == nil {
		return false
	}
	if mesh.Exit(route) {
		return w.means(w.Doc.approvers.ExitNode, n)
	}
	return slices.ContainsFunc(w.Doc.approvers.Routes, func(r RouteApprovers) bool {
		return r.Prefix.Bits() <= route.Bits() && r.Prefix.Contains(route.Addr()) && w.means(r.Who, n)
	})
}

// means reports whether one of targets is a node by what it is.
func (w *World) means(targets []Target, n *mesh.Node) bool {
	owner := w.ownerOf(n)
	return slices.ContainsFunc(targets, func(t Target) bool {
		switch t.Kind {
		case Tag:
			return slices.Contains(n.Tags, t.Name)
		case Tagged:
			return n.Tagged()
		case Member:
			return owner != nil
		case User:
			return owner != nil && slices.Contains(namesOf(owner), t.Name)
		case Group:
			return owner != nil && slices.ContainsFunc(namesOf(owner), func(name string) bool { return slices.Contains(w.Doc.groups[t.Name], name) })
		case Any, Self, Internet, DangerAll, Addresses: // cannot stand there
		}
		return false
	})
}
