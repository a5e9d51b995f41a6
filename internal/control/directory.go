package control

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Limits of what an identity provider can push.
const (
	maxGroups  = 2_000
	maxMembers = 20_000
	// maxDirectoryText limits ids and names at the provider.
	maxDirectoryText = 255
)

// Directory implements what an identity provider does that pushes users and groups (SCIM).
// The provider knows best who is in which group and who has left, so these use cases may
// change every user, and whom the policy applies to.
type Directory struct{ *core }

// DirectoryUser is what a provider says about a user.
type DirectoryUser struct {
	ExternalID string
	// UserName is the name with which the person signs in at the provider. A new user gets
	// a name that is derived from it, which does not change any more.
	UserName    string
	DisplayName string
	Email       string
	// Active suspends the user if it is false, and ends a suspension by the provider if it
	// is true. If it is nil, nothing changes.
	Active *bool
}

// DirectoryName returns what the provider calls a user. Before the provider has pushed the
// user, that is the e-mail address or the name.
func DirectoryName(u *mesh.User) string { return cmp.Or(u.DirectoryName, u.Email, u.Name) }

// CreateUser adds a user whom the provider has pushed.
func (s *Directory) CreateUser(ctx context.Context, a mesh.Actor, in DirectoryUser) (*mesh.User, error) {
	u, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		if err := checkDirectoryUser(w, in, 0); err != nil {
			return nil, nil, err
		}
		name, err := nameFor(w, Person{Issuer: "scim", Subject: in.UserName, Username: in.UserName, Email: in.Email, DisplayName: in.DisplayName})
		if err != nil {
			return nil, nil, refuse(Conflict, "userName", "another user already has the name %s or the email address %s", in.UserName, in.Email)
		}
		u := &mesh.User{
			ID: w.Counters.User + 1, Name: name, DisplayName: in.DisplayName, Email: in.Email, CreatedAt: now,
			DirectoryID: in.ExternalID, DirectoryName: in.UserName,
		}
		if in.Active != nil && !*in.Active {
			u = u.Suspend(mesh.SuspendedBySCIM, now)
		}
		return u, []mesh.Event{mesh.UserPut{User: u}}, nil
	})
	if err == nil {
		s.logFor(a).Info("user created by the identity provider", "user", u.Name)
	}
	return u, err
}

// ChangeUser changes a user. change must be a pure function, because it may be called
// several times.
func (s *Directory) ChangeUser(ctx context.Context, a mesh.Actor, id mesh.UserID, change func(*DirectoryUser) error) (*mesh.User, error) {
	type result struct{ before, after *mesh.User }
	out, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none result, _ []mesh.Event, _ error) {
		was, ok := w.Users.Get(id)
		if !ok {
			return none, nil, refuse(NotFound, "id", "unknown user ID %v", id)
		}
		in := DirectoryUser{ExternalID: was.DirectoryID, UserName: DirectoryName(was), DisplayName: was.DisplayName, Email: was.Email}
		if err := change(&in); err != nil {
			return none, nil, err
		}
		if err := checkDirectoryUser(w, in, id); err != nil {
			return none, nil, err
		}
		changed := *was
		changed.DirectoryID, changed.DirectoryName, changed.DisplayName, changed.Email = in.ExternalID, in.UserName, in.DisplayName, in.Email
		u := &changed
		switch {
		case in.Active == nil:
		case !*in.Active && !was.Suspended():
			if err := s.keepAdmin(w, a, id); err != nil {
				return none, nil, err
			}
			u = changed.Suspend(mesh.SuspendedBySCIM, now)
		case *in.Active && was.SuspendedBy == mesh.SuspendedBySCIM: // otherwise an administrator has to
			u = changed.Restore()
		}
		if reflect.DeepEqual(u, was) {
			return result{was, was}, nil, nil
		}
		return result{was, u}, []mesh.Event{mesh.UserPut{User: u}}, nil
	})
	switch {
	case err != nil:
		return nil, err
	case out.after.Suspended() && !out.before.Suspended():
		s.logFor(a).Info("user suspended", "user", out.after.Name, "source", mesh.SuspendedBySCIM)
	case !out.after.Suspended() && out.before.Suspended():
		s.logFor(a).Info("user restored", "user", out.after.Name)
	}
	return out.after, nil
}

func checkDirectoryUser(w *policy.World, in DirectoryUser, id mesh.UserID) error {
	for path, text := range map[string]string{"userName": in.UserName, "externalId": in.ExternalID} {
		if err := checkText(path, text, maxDirectoryText); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{"displayName": in.DisplayName, "emails": in.Email} {
		if err := checkText(path, text, maxUserText); err != nil {
			return err
		}
	}
	if in.UserName == "" {
		return refuse(Invalid, "userName", "userName is required")
	}
	if err := knownBy(w, "emails", in.Email, id); err != nil {
		return err
	}
	for u := range w.Users.All() {
		if u.ID != id && (mesh.FoldName(DirectoryName(u)) == mesh.FoldName(in.UserName) || in.ExternalID != "" && u.DirectoryID == in.ExternalID) {
			return refuse(Conflict, "userName", "user %s already has this userName or externalId", u.Name)
		}
	}
	return nil
}

// DeleteUser deletes a user with the user's nodes and keys.
func (s *Directory) DeleteUser(ctx context.Context, a mesh.Actor, id mesh.UserID) error {
	u, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.User, []mesh.Event, error) {
		u, ok := w.Users.Get(id)
		if !ok {
			return nil, nil, refuse(NotFound, "id", "unknown user ID %v", id)
		}
		if err := s.keepAdmin(w, a, id); err != nil {
			return nil, nil, err
		}
		return u, []mesh.Event{mesh.UserGone{ID: id}}, nil
	})
	if err == nil {
		s.logFor(a).Info("user deleted", "user", u.Name)
	}
	return err
}

// DirectoryGroup is what a provider says about a group. Members is sorted and unique.
type DirectoryGroup struct {
	ExternalID  string
	DisplayName string
	Members     []mesh.UserID
}

// MembersOf returns the members of a group that exist.
func MembersOf(s *mesh.Snapshot, g *mesh.Group) (ids []mesh.UserID) {
	for _, m := range g.Members {
		if _, ok := s.Users.Get(m.User); ok {
			ids = append(ids, m.User)
		}
	}
	return ids
}

// PutGroup adds a group, if id is zero, or changes one. change must be a pure function,
// because it may be called several times. The group and its members change in one commit.
func (s *Directory) PutGroup(ctx context.Context, a mesh.Actor, id mesh.GroupID, change func(*DirectoryGroup) error) (*mesh.Group, error) {
	return commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Group, []mesh.Event, error) {
		was := &mesh.Group{ID: w.Counters.Group + 1, CreatedAt: now}
		if id != 0 {
			var ok bool
			if was, ok = w.Groups.Get(id); !ok {
				return nil, nil, refuse(NotFound, "id", "there is no group with the id %v", id)
			}
		}
		in := DirectoryGroup{ExternalID: was.ExternalID, DisplayName: was.DisplayName, Members: MembersOf(w.Snapshot, was)}
		if err := change(&in); err != nil {
			return nil, nil, err
		}
		g, err := checkGroup(w, was.ID, in)
		if err != nil {
			return nil, nil, err
		}
		g.CreatedAt = was.CreatedAt
		if id != 0 && g.Name == was.Name && g.DisplayName == was.DisplayName && g.ExternalID == was.ExternalID && slices.Equal(g.Members, was.Members) {
			return was, nil, nil
		}
		evs, err := s.memberships(w, now, a, was, g)
		return g, append([]mesh.Event{mesh.GroupPut{Group: g}}, evs...), err
	})
}

// DeleteGroup deletes a group. Its members lose it.
func (s *Directory) DeleteGroup(ctx context.Context, a mesh.Actor, id mesh.GroupID) error {
	_, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none nothing, _ []mesh.Event, _ error) {
		g, ok := w.Groups.Get(id)
		if !ok {
			return none, nil, refuse(NotFound, "id", "there is no group with the id %v", id)
		}
		evs, err := s.memberships(w, now, a, g, &mesh.Group{})
		return none, append([]mesh.Event{mesh.GroupGone{ID: id}}, evs...), err
	})
	return err
}

func checkGroup(w *policy.World, id mesh.GroupID, in DirectoryGroup) (*mesh.Group, error) {
	for path, text := range map[string]string{"displayName": in.DisplayName, "externalId": in.ExternalID} {
		if err := checkText(path, text, maxDirectoryText); err != nil {
			return nil, err
		}
	}
	name, ok := GroupName(in.DisplayName)
	if !ok {
		return nil, refuse(Invalid, "displayName", "the policy cannot name the group %q: rename it, without any of : * , @", in.DisplayName)
	}
	for g := range w.Groups.All() {
		if g.ID != id && (g.Name == name || in.ExternalID != "" && g.ExternalID == in.ExternalID) {
			return nil, refuse(Conflict, "displayName", "the group %s already has this name or externalId", g.DisplayName)
		}
	}
	if id > w.Counters.Group && w.Groups.Len() >= maxGroups {
		return nil, refuse(Invalid, "", "there are %d groups already, which is the limit", maxGroups)
	}
	slices.Sort(in.Members)
	in.Members = slices.Compact(in.Members)
	if len(in.Members) > maxMembers {
		return nil, refuse(Invalid, "members", "a group can have at most %d members", maxMembers)
	}
	g := &mesh.Group{ID: id, Name: name, DisplayName: in.DisplayName, ExternalID: in.ExternalID}
	for _, user := range in.Members {
		if _, ok := w.Users.Get(user); !ok {
			return nil, refuse(Invalid, "members", "unknown user ID %v", user)
		}
		g.Members = append(g.Members, mesh.Member{User: user})
	}
	return g, nil
}

// memberships returns the events that give users the groups that follow from a change.
func (s *Directory) memberships(w *policy.World, now mesh.Time, a mesh.Actor, before, after *mesh.Group) (evs []mesh.Event, err error) {
	was, is := idsOf(before), idsOf(after)
	var demoted []mesh.UserID
	for _, id := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(was, is)))) {
		user, ok := w.Users.Get(id)
		if !ok {
			continue
		}
		groups := slices.Clone(user.Groups)
		if _, found := slices.BinarySearch(was, id); found {
			groups = slices.DeleteFunc(groups, func(name string) bool { return name == before.Name })
		}
		if _, found := slices.BinarySearch(is, id); found {
			groups = append(groups, after.Name)
		}
		u := *user
		if u.Groups, _ = GroupNames(groups); slices.Equal(u.Groups, user.Groups) {
			continue
		}
		if s.administers(w, user) && !s.administers(w, &u) {
			demoted = append(demoted, id)
		}
		evs = append(append(evs, mesh.UserPut{User: &u}), renamedOwner(w, now, &u)...)
	}
	if len(demoted) > 0 {
		err = s.keepAdmin(w, a, demoted...)
	}
	return evs, err
}

func idsOf(g *mesh.Group) (ids []mesh.UserID) {
	for _, m := range g.Members {
		ids = append(ids, m.User)
	}
	return ids
}

// pushedGroups returns the names of the groups that the provider has pushed for a user.
func pushedGroups(s *mesh.Snapshot, id mesh.UserID) (names []string) {
	for g := range s.Groups.All() {
		if slices.Contains(g.Members, mesh.Member{User: id}) {
			names = append(names, g.Name)
		}
	}
	return names
}

// pushedUser returns the user whom the provider has pushed for a person who signs in for
// the first time: one with the subject as id, or else with the verified e-mail address.
// Only the provider that pushes users can do this, because anyone may have the same ids and
// addresses elsewhere. A user who has signed in, or to whom an administrator has assigned a
// role, is never used: an administrator has to link such a user.
func pushedUser(s *mesh.Snapshot, p Person) (*mesh.User, bool) {
	if !p.Directory {
		return nil, false
	}
	var byMail *mesh.User
	for u := range s.Users.All() {
		switch {
		case u.DirectoryName == "" || u.Provider != "" || u.Role != "":
		case u.DirectoryID != "" && u.DirectoryID == p.Subject:
			return u, true
		case p.Email != "" && (mesh.FoldName(u.DirectoryName) == mesh.FoldName(p.Email) || mesh.FoldName(u.Email) == mesh.FoldName(p.Email)):
			byMail = u
		}
	}
	return byMail, byMail != nil
}
