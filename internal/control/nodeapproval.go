package control

import (
	"context"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// SetApproval approves a node, or withdraws its approval. A node without approval has no
// peers; its device stays connected and gets access without a new login once it is approved.
func (s *Nodes) SetApproval(ctx context.Context, a mesh.Actor, ref string, approved bool, ifRevision string) (*mesh.Node, error) {
	before, after, err := s.change(ctx, a, ref, ifRevision, func(w *policy.World, now mesh.Time, n *mesh.Node) (bool, error) {
		changed := n.NeedsApproval == approved
		n.NeedsApproval = !approved
		return keepRoutes(w, now, n) || changed, nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case before.NeedsApproval == after.NeedsApproval:
	case approved:
		s.logRoutes(a, before, after)
		s.logFor(a).Info("node approved", "node", after.ID, "name", after.Name, "user", s.ownerName(after))
	default:
		s.logRoutes(a, before, after)
		s.logFor(a).Info("node approval withdrawn", "node", after.ID, "name", after.Name, "user", s.ownerName(after))
	}
	return after, nil
}

// approves reports whether nodes that join with g need no approval: an administrator
// created the key as pre-approved, or approved the device itself.
func (g grant) approves() bool {
	if g.key != nil {
		return g.key.PreApproved
	}
	return g.method == mesh.RegisterApproved
}
