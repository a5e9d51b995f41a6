package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Forbids returns the mesh addresses that a route would take traffic from, if any: a
// reserved range, or the address of a node from an earlier range.
func (w *World) Forbids(route netip.Prefix) (netip.Prefix, bool) {
	if own, ok := w.Reserved.Overlap(route); ok {
		return own, true
	}
	if _, held := w.NodeByAddr(route.Addr().Unmap()); held && route.IsSingleIP() {
		return route, true
	}
	return netip.Prefix{}, false
}

// CheckApprovers finds autoApprovers whose prefix includes routes that are refused
// anyway. Entries for 0.0.0.0/0 and ::/0 are fine: they mean every route that can
// be approved.
func (d *Doc) CheckApprovers(reserved mesh.Reserved) (problems Problems) {
	for _, r := range d.approvers.Routes {
		if own, ok := reserved.Overlap(r.Prefix); ok {
			problems = append(problems, Problem{Line: int(r.Line), Column: r.Column, Text: fmt.Sprintf(
				"autoApprovers cannot approve %s: it overlaps %s, which belongs to the mesh itself; use the networks behind your routers", r.Prefix, own)})
		}
	}
	return problems
}

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
