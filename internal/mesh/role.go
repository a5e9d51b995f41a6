package mesh

import (
	"fmt"
	"slices"
	"strings"
)

// ParsePersonRole parses the name of a role of a person. It also accepts the names that
// Tailscale uses.
func ParsePersonRole(text string) (Role, error) {
	switch text {
	case "owner":
		return RoleAdmin, nil
	case "network-admin", "it-admin":
		return RoleOperator, nil
	case "auditor":
		return RoleRead, nil
	}
	if r := Role(text); slices.Contains(PersonRoles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q: use %s", text, listing(PersonRoles()))
}

// IsAssignedAdmin reports whether an administrator made the user an administrator. It is
// false for a user who is one only because of RoleRules.
func (u *User) IsAssignedAdmin() bool { return u.Role == RoleAdmin && !u.NeedsApproval }

// RoleRule gives a role to everyone in a group at an identity provider.
type RoleRule struct {
	Issuer, Group string
	Role          Role
}

// RoleRules decides which role a person has. The configuration defines the rules.
type RoleRules []RoleRule

// Of returns the role of a user: the one that an administrator assigned, or else the
// highest that a group gives, or else RoleMember for everyone who signs in with a
// provider. Other users have no role.
func (rules RoleRules) Of(u *User) Role {
	role, _ := rules.Source(u)
	return role
}

// Source returns the role of a user, and the group that gives it. The group is empty if no
// group gives the role. If several groups give it, Source returns the first one of the
// configuration.
func (rules RoleRules) Source(u *User) (role Role, group string) {
	switch {
	case u.NeedsApproval:
		return "", ""
	case u.Role != "":
		return u.Role, ""
	case u.Provider == "":
		return "", ""
	}
	role = RoleMember
	for _, r := range rules {
		higher := group == "" || !role.AtLeast(r.Role)
		if higher && u.signsInAt(r.Issuer) && slices.Contains(u.Groups, r.Group) {
			role, group = r.Role, r.Group
		}
	}
	return role, group
}

// signsInAt reports whether the user's account is at this issuer. A group of the same name
// at another provider must not give a role. Where one issuer is the beginning of another,
// the rest of the ProviderID is taken for a subject only if it contains no slash.
func (u *User) signsInAt(issuer string) bool {
	subject, ok := strings.CutPrefix(u.ProviderID, strings.TrimRight(issuer, "/")+"/")
	return ok && u.Provider == ProviderOIDC && !strings.Contains(subject, "/")
}
