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
	owner, _ := s.User(n.Owner)
	if mesh.Exit(route) {
		return d.means(d.approvers.ExitNode, n, owner)
	}
	return slices.ContainsFunc(d.approvers.Routes, func(r RouteApprovers) bool {
		return r.Prefix.Bits() <= route.Bits() && r.Prefix.Contains(route.Addr()) && d.means(r.Who, n, owner)
	})
}

// means reports whether one of targets is a node by what it is. A node with tags
// has no owner.
func (d *Doc) means(targets []Target, n *mesh.Node, owner *mesh.User) bool {
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
			return owner != nil && slices.ContainsFunc(namesOf(owner), func(name string) bool { return slices.Contains(d.groups[t.Name], name) })
		case Any, Self, Internet, DangerAll, Addresses: // cannot stand there
		}
		return false
	})
}
