package control

import (
	"context"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Approve gives a user who signed in for the first time access, and approves their nodes
// unless every node needs its own approval. ifRevision is as in Rename.
func (s *Users) Approve(ctx context.Context, a mesh.Actor, ref, ifRevision string) (*mesh.User, error) {
	type approval struct{ before, after *mesh.User }
	out, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none approval, _ []mesh.Event, _ error) {
		was, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		if !was.NeedsApproval {
			return approval{was, was}, nil, nil
		}
		user := *was
		user.NeedsApproval = false
		if err := s.mayApprove(w, a, &user); err != nil {
			return none, nil, err
		}
		evs := []mesh.Event{mesh.UserPut{User: &user}}
		if !s.nodeApproval {
			evs = append(evs, approveNodesOf(w, now, user.ID)...)
		}
		return approval{was, &user}, evs, nil
	})
	if err != nil {
		return nil, err
	}
	if out.after != out.before {
		s.logFor(a).Info("user approved", "user", out.after.Name, "role", s.roleOf(out.after))
	}
	return out.after, nil
}

// mayApprove refuses to give a user a higher role than the caller has. A role has no scopes,
// so a key with scopes cannot make anyone an administrator.
func (s *core) mayApprove(w *policy.World, a mesh.Actor, u *mesh.User) error {
	if has, bound := s.callerAccess(w.Snapshot, a); bound && (!has.Role.AtLeast(s.roleOf(u)) || s.roleOf(u) == mesh.RoleAdmin && len(has.Scopes) > 0) {
		return refuse(Forbidden, "", "user %s would have the role %s, which is higher than yours (%s)", u.Name, s.roleOf(u), has.Role)
	}
	return nil
}

// approveNodesOf approves the nodes that a user added.
func approveNodesOf(w *policy.World, now mesh.Time, id mesh.UserID) (evs []mesh.Event) {
	last := w.Counters.Route
	for was := range w.Nodes.All() {
		if !was.NeedsApproval || was.Owner != id && was.CreatedBy != id {
			continue
		}
		n := *was
		n.NeedsApproval, n.UpdatedAt = false, now
		n.KeepRoutes(last, now, autoApproval(w, &n))
		for _, r := range n.AllRoutes {
			last = max(last, r.ID)
		}
		evs = append(evs, mesh.NodePut{Node: &n})
	}
	return evs
}

// waits reports whether a user needs approval.
func waits(s *mesh.Snapshot, id mesh.UserID) bool {
	u, ok := s.Users.Get(id)
	return ok && u.NeedsApproval
}
