package control

import (
	"context"
	"errors"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// RoleSource returns the role that a user has now, and the group at the identity provider that
// gives it, if one does.
func (s *Users) RoleSource(u *mesh.User) (role mesh.Role, group string) { return s.roles.Source(u) }

func (s *core) roleOf(u *mesh.User) mesh.Role { return s.roles.Of(u) }

// Access returns what a person may do now.
func (s *Users) Access(u *mesh.User) mesh.Access { return s.personAccess(u) }

func (s *core) personAccess(u *mesh.User) mesh.Access {
	if u.Suspended() {
		return mesh.Access{}
	}
	return mesh.Access{Role: s.roleOf(u)}
}

// Access returns what an API key allows now: no more than its owner may do, if it has one.
func (s *APIKeys) Access(snap *mesh.Snapshot, k *mesh.APIKey) mesh.Access {
	return s.keyAccess(snap, k)
}

func (s *core) keyAccess(snap *mesh.Snapshot, k *mesh.APIKey) mesh.Access {
	if k.User == 0 {
		return k.Access
	}
	owner, ok := snap.Users.Get(k.User)
	if !ok {
		return mesh.Access{}
	}
	return k.Within(s.personAccess(owner).Role)
}

// SetRole assigns a role to a user. The zero Role removes the assignment, so that the
// groups of the user decide. ifRevision is as in Rename.
func (s *Users) SetRole(ctx context.Context, a mesh.Actor, ref string, role mesh.Role, ifRevision string) (*mesh.User, error) {
	type assignment struct{ before, after *mesh.User }
	out, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (none assignment, _ []mesh.Event, _ error) {
		was, err := userAt(w.Snapshot, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		user := *was
		user.Role = role
		if err := s.mayGiveAccess(w, a, "assigning roles", "a role applies to everything"); err != nil {
			return none, nil, err
		}
		if user.Role == was.Role {
			return assignment{was, was}, nil, nil
		}
		if s.roleOf(&user) != mesh.RoleAdmin {
			if err := s.keepAdmin(w, a, was.ID); err != nil {
				return none, nil, err
			}
		}
		return assignment{was, &user}, []mesh.Event{mesh.UserPut{User: &user}}, nil
	})
	if err != nil {
		return nil, err
	}
	if out.after != out.before {
		s.logFor(a).Info("user role changed", "user", out.after.Name, "role", s.roleOf(out.after), "was", s.roleOf(out.before), "assigned", out.after.Role)
	}
	return out.after, nil
}

// mayGiveAccess refuses callers who may not do everything, because what a person may do has
// no scopes.
func (s *core) mayGiveAccess(w *policy.World, a mesh.Actor, doing, because string) error {
	if has, bound := s.callerAccess(w.Snapshot, a); bound && !has.Covers(mesh.Access{Role: mesh.RoleAdmin}) {
		return refuse(Forbidden, "", "%s requires the role admin without scopes, because %s; the API key has %s and the scopes %v", doing, because, has.Role, has.Scopes)
	}
	return nil
}

// mayRemove refuses to remove the access of a user who has a higher role than the caller,
// or would have it without the assigned one: such a person could sign in again and get the
// role of their groups.
func (s *core) mayRemove(w *policy.World, a mesh.Actor, u *mesh.User) error {
	has, bound := s.callerAccess(w.Snapshot, a)
	if !bound {
		return nil
	}
	if role := s.roleOf(u); !has.Role.AtLeast(role) {
		return refuse(Forbidden, "", "user %s has the role %s, which is higher than that of the caller (%s)", u.Name, role, has.Role)
	}
	bare := *u
	bare.Role = ""
	if role := s.roleOf(&bare); !has.Role.AtLeast(role) {
		return refuse(Forbidden, "", "the groups of user %s give the role %s, which is higher than that of the caller (%s)", u.Name, role, has.Role)
	}
	return nil
}

// keepAdmin refuses to take the administrator's access from these users if nobody else has
// it. API keys do not count as administrators: they expire, and perhaps nobody has the
// text any more. A caller on the local socket is never refused, because this person cannot
// lock themselves out, and must be able to stop an administrator whose account was
// compromised.
func (s *core) keepAdmin(w *policy.World, a mesh.Actor, losing ...mesh.UserID) error {
	if a.Kind == mesh.ActorLocal {
		return nil
	}
	lost := false
	for u := range w.Users.All() {
		switch {
		case !s.administers(w, u):
		case slices.Contains(losing, u.ID):
			lost = true
		default:
			return nil
		}
	}
	if lost {
		return errLastAdmin()
	}
	return nil
}

// administers reports whether a user can sign in as an administrator.
func (s *core) administers(w *policy.World, u *mesh.User) bool {
	if u.Provider == "" || u.Suspended() || s.roleOf(u) != mesh.RoleAdmin {
		return false
	}
	return u.Provider != mesh.ProviderLocal || len(w.Passkeys.Of(u.ID)) > 0
}

// LosesLastAdmin reports whether a change was refused because nobody would be an administrator
// any more.
func LosesLastAdmin(err error) bool {
	refusal := new(Refusal)
	return errors.As(err, &refusal) && refusal.Text == errLastAdmin().Error()
}

func errLastAdmin() error {
	return refuse(Conflict, "", "the last administrator cannot be demoted, suspended or deleted: give another person the role admin first "+
		"(fairlead users set-role NAME admin), or use the local socket of the server")
}
