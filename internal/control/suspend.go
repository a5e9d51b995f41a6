package control

import (
	"cmp"
	"context"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Suspension is the result of suspending a user.
type Suspension struct {
	User *mesh.User
	// Deleted is how many tagged nodes were deleted.
	Deleted int

	changed bool
	nodes   int
}

// Answer returns how many tagged nodes were deleted.
func (s Suspension) Answer() string { return strconv.Itoa(s.Deleted) }

// Suspend takes away all access of a user until Restore: the user's nodes are cut off, and
// nothing that authenticates the user is accepted. Nothing of it is deleted. The tagged nodes
// that the user added keep their access, because they belong to their tags; they are deleted
// if tagged is set. The last
// administrator cannot be suspended. A user who is already suspended stays so, with the same source. ifRevision
// is as in Rename.
func (s *Users) Suspend(ctx context.Context, a mesh.Actor, ref, ifRevision string, tagged bool) (Suspension, error) {
	out, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none Suspension, _ []mesh.Event, _ error) {
		user, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		if err := cmp.Or(s.mayRemove(w, a, user), s.keepAdmin(w, a, user.ID)); err != nil {
			return none, nil, err
		}
		out := Suspension{User: user, nodes: w.Nodes.OwnedCount(user.ID)}
		var evs []mesh.Event
		if !user.Suspended() {
			out.User, out.changed = user.Suspend(mesh.SuspendedByAdmin, now), true
			evs = append(evs, mesh.UserPut{User: out.User})
		}
		if tagged {
			for _, n := range TaggedBy(w.Snapshot)[user.ID] {
				evs = append(evs, mesh.NodeGone{ID: n.ID})
				out.Deleted++
			}
		}
		if has, bound := s.callerAccess(w.Snapshot, a); out.Deleted > 0 && bound && !has.Allows(mesh.NounNodes, mesh.RoleOperator) {
			return none, nil, refuse(Forbidden, "deleteTagged", "deleting the tagged nodes of a user requires an API key with the scope nodes")
		}
		return out, evs, nil
	})
	if err != nil {
		return Suspension{}, err
	}
	if out.changed || out.Deleted > 0 {
		s.logFor(a).Info("user suspended", "user", out.User.Name, "source", out.User.SuspendedBy, "nodes", out.nodes, "tagged_nodes_deleted", out.Deleted)
	}
	return out, nil
}

// Restore ends a suspension, or dismisses one that is held. The user's nodes, keys and sessions are valid again, unless they have
// expired or were deleted in the meantime.
func (s *Users) Restore(ctx context.Context, a mesh.Actor, ref, ifRevision string) (*mesh.User, error) {
	changed := false
	user, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		user, err := userAt(w.Snapshot, ref, ifRevision)
		if changed = err == nil && (user.Suspended() || user.Held()); !changed {
			return user, nil, err
		}
		restored := user.Restore()
		if err := s.mayApprove(w, a, restored); err != nil {
			return nil, nil, err
		}
		evs := []mesh.Event{mesh.UserPut{User: restored}}
		if r, ok := w.Rechecks.Get(user.ID); ok { // if the provider still refuses, the administrator has overruled it
			overruled := *r
			overruled.Refused, overruled.Due = true, now
			evs = append(evs, mesh.RecheckPut{Recheck: &overruled})
		}
		return restored, evs, nil
	})
	if err == nil && changed {
		s.logFor(a).Info("user restored", "user", user.Name)
	}
	return user, err
}

// checkNotSuspended refuses to add something for a suspended user.
func checkNotSuspended(u *mesh.User) error {
	if u.Suspended() {
		return refuse(Conflict, "user", "user %[1]s is suspended; restore the user first: fairlead users restore %[1]s", u.Name)
	}
	return nil
}

// errSuspended is the refusal for a device whose user is suspended. People see it on their
// device.
func errSuspended() error {
	return refuse(Suspended, "", "your account is suspended; ask your administrator to restore it")
}

// isSuspended reports whether a user exists and is suspended.
func isSuspended(w *policy.World, id mesh.UserID) bool {
	u, ok := w.Users.Get(id)
	return ok && u.Suspended()
}
