package lang

import (
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Identity is what targets match on a node besides its addresses: its tags or, if it has
// none, the names of its owner.
type Identity struct {
	Names  []string // in the form of UserName
	Groups []string // at the identity provider, without PrefixGroup
	Tags   []string
	Admin  bool // whether the owner has the assigned role admin
}

// IdentityOf returns the identity of a node.
func IdentityOf(s *mesh.Snapshot, n *mesh.Node) Identity {
	id := Identity{Tags: n.Tags}
	if owner, ok := s.Users.Get(n.Owner); ok && !n.Tagged() {
		return UserIdentity(owner)
	}
	return id
}

// UserIdentity returns the identity of a user's nodes without tags.
func UserIdentity(u *mesh.User) Identity {
	return Identity{Names: NamesOf(u), Groups: u.Groups, Admin: u.IsAssignedAdmin()}
}

// Identifies reports whether a target refers to nodes with this identity. It is false for
// targets that refer to addresses, to everyone, or to something other than nodes.
func (t *Target) Identifies(id *Identity, groups map[string][]string) bool {
	switch t.Kind {
	case User:
		return len(id.Tags) == 0 && slices.Contains(id.Names, t.Name)
	case Group:
		return len(id.Tags) == 0 && id.in(t.Name, groups)
	case Admin:
		return len(id.Tags) == 0 && id.Admin
	case Member:
		return len(id.Tags) == 0
	case Tag:
		return slices.Contains(id.Tags, t.Name)
	case Tagged:
		return len(id.Tags) > 0
	case Any, Self, Internet, DangerAll, Addresses:
	}
	return false
}

// MemberOf returns the index of the group member that has one of the names of an
// identity, or -1.
func (id *Identity) MemberOf(group []string) int {
	return slices.IndexFunc(group, func(member string) bool { return slices.Contains(id.Names, member) })
}

// in reports whether an untagged node with this identity belongs to a group: one of
// the document or, if that does not define it, of the identity provider.
func (id *Identity) in(group string, defined map[string][]string) bool {
	if members, ok := defined[group]; ok {
		return id.MemberOf(members) >= 0
	}
	name, ok := strings.CutPrefix(group, PrefixGroup)
	return ok && slices.Contains(id.Groups, name)
}

// UserName returns the form in which names of users are compared. One trailing "@" may
// mark it as a user; it is not part of the name.
func UserName(name string) string { return mesh.FoldName(strings.TrimSuffix(name, "@")) }

// NamesOf returns the names that refer to a user, in the form of UserName: the user's
// name and, if there is one, the e-mail address.
func NamesOf(user *mesh.User) []string {
	names := []string{mesh.FoldName(user.Name)}
	if user.Email != "" {
		names = append(names, mesh.FoldName(user.Email))
	}
	return names
}
