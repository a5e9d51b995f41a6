package lang

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// CheckApprovers returns problems with autoApprovers whose prefix includes routes that
// are refused anyway. Entries for 0.0.0.0/0 and ::/0 are fine: they mean every route that
// can be approved.
func (d *Doc) CheckApprovers(reserved mesh.Reserved) (problems Problems) {
	for _, r := range d.Approvers.Routes {
		if own, ok := reserved.Overlap(r.Prefix); ok {
			problems = append(problems, Problem{Line: int(r.Line), Column: r.Column, Text: fmt.Sprintf(
				"autoApprovers cannot approve %s: it overlaps %s, which the mesh itself uses; use the networks behind your routers",
				r.Prefix, own)})
		}
	}
	return problems
}

// Approves reports whether a route that a node advertises needs no approval:
// autoApprovers names the node's owner or one of its tags for a prefix that
// includes the route, or for exit nodes. A nil document approves nothing.
func (d *Doc) Approves(s *mesh.Snapshot, n *mesh.Node, route netip.Prefix) bool {
	if d == nil {
		return false
	}
	id := IdentityOf(s, n)
	isNode := func(t Target) bool { return t.Identifies(&id, d.Groups) }
	if mesh.Exit(route) {
		return slices.ContainsFunc(d.Approvers.ExitNode, isNode)
	}
	return slices.ContainsFunc(d.Approvers.Routes, func(r RouteApprovers) bool {
		return r.Prefix.Bits() <= route.Bits() && r.Prefix.Contains(route.Addr()) && slices.ContainsFunc(r.Who, isNode)
	})
}
