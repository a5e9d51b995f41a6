package control

import (
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Quotas limit the number of nodes; zero means no limit.
type Quotas struct {
	NodesPerUser, NodesPerKey int
}

// check refuses a node that would exceed the limit of its user or its pre-auth key. A node
// that was counted before is never refused: a limit that is set or lowered later must not
// lock out a device that logs in again. Tagged nodes belong to no user.
func (q Quotas) check(w *policy.World, n *mesh.Node) error {
	if err := q.checkUser(w, n.ID, n.Owner); err != nil {
		return err
	}
	if q.NodesPerKey == 0 || n.PreAuthKey == 0 {
		return nil
	}
	if old, ok := w.Nodes.Get(n.ID); ok && old.PreAuthKey == n.PreAuthKey {
		return nil
	}
	joined := 0
	for o := range w.Nodes.All() {
		if o.PreAuthKey == n.PreAuthKey {
			joined++
		}
	}
	if joined >= q.NodesPerKey {
		return refuse(Conflict, "preAuthKey", "%d nodes have joined with this pre-auth key, which is the limit (limits.nodes_per_key); "+
			"use another key, or delete nodes that are no longer needed", joined)
	}
	return nil
}

func (q Quotas) checkUser(w *policy.World, id mesh.NodeID, owner mesh.UserID) error {
	if q.NodesPerUser == 0 || owner == 0 {
		return nil
	}
	if n, ok := w.Nodes.Get(id); ok && n.Owner == owner {
		return nil
	}
	if owned := w.Nodes.OwnedCount(owner); owned >= q.NodesPerUser {
		u, _ := w.Users.Get(owner)
		return refuse(Conflict, "user", "user %s has %d nodes, which is the limit (limits.nodes_per_user); delete nodes that are no longer needed, or raise the limit",
			u.Name, owned)
	}
	return nil
}
