package mesh

import (
	"fmt"
	"slices"
	"strings"
)

// Role limits what the holder of a key, or a person, may do. The zero Role allows nothing.
type Role string

// The roles. Each includes the one before.
const (
	// RoleMember allows operations that are marked for members, on what the person owns.
	// It is for people only: an API key has it if its owner does.
	RoleMember Role = "member"
	// RoleRead allows read-only access to everything.
	RoleRead Role = "read"
	// RoleOperator allows day-to-day work: everything except keys, webhooks and the
	// policy.
	RoleOperator Role = "operator"
	// RoleAdmin allows everything.
	RoleAdmin Role = "admin"
)

// Roles lists the roles that an API key can be given, least powerful first.
func Roles() []Role { return []Role{RoleRead, RoleOperator, RoleAdmin} }

// PersonRoles lists the roles that a person can have, least powerful first.
func PersonRoles() []Role { return append([]Role{RoleMember}, Roles()...) }

func (r Role) rank() int { return slices.Index(PersonRoles(), r) }

// AtLeast reports whether r includes other. Every role includes the zero Role.
func (r Role) AtLeast(other Role) bool { return r.rank() >= other.rank() }

// Noun is what a scope gives access to.
type Noun string

// The nouns that scopes can name.
const (
	NounUsers       Noun = "users"
	NounPreAuthKeys Noun = "preauthkeys"
	NounAPIKeys     Noun = "apikeys"
	NounNodes       Noun = "nodes"
	NounRoutes      Noun = "routes"
	NounLogins      Noun = "logins"
	NounSSH         Noun = "ssh"
	NounDNS         Noun = "dns"
	NounPolicy      Noun = "policy"
	NounHistory     Noun = "history"
	NounWebhooks    Noun = "webhooks"
	NounService     Noun = "service"
	NounSCIM        Noun = "scim"
)

// Nouns lists the nouns that scopes can name.
func Nouns() []Noun {
	return []Noun{
		NounUsers, NounPreAuthKeys, NounAPIKeys, NounNodes, NounRoutes, NounLogins, NounSSH, NounDNS, NounPolicy,
		NounHistory, NounWebhooks, NounService, NounSCIM,
	}
}

// scopeToRead is the suffix of a read-only scope.
const scopeToRead = ":read"

// Access is what a key gives access to.
type Access struct {
	Role Role `json:"role,omitempty"`
	// Scopes lists the nouns that Role applies to, each with or without :read; none means
	// all. They are sorted and unique.
	Scopes []string `json:"scopes,omitempty"`
}

// ParseRole parses the name of a role of an API key.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q: use %s", text, listing(Roles()))
}

// ParseScopes parses scopes and returns them in canonical form.
func ParseScopes(texts []string) (scopes []string, err error) {
	for _, s := range texts {
		noun := strings.TrimSuffix(s, scopeToRead)
		if !slices.Contains(Nouns(), Noun(noun)) {
			return nil, fmt.Errorf("unknown scope %q: use %s, each optionally followed by %s", s, listing(Nouns()), scopeToRead)
		}
		if noun == s || !slices.Contains(texts, noun) {
			scopes = append(scopes, s)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes), nil
}

func listing[S ~string](words []S) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// Allows reports whether a includes at least a role on a noun.
func (a Access) Allows(n Noun, least Role) bool {
	return least.rank() >= 0 && a.Role.rank() >= least.rank() && a.opens(string(n), least == RoleRead)
}

func (a Access) opens(noun string, toRead bool) bool {
	return len(a.Scopes) == 0 || slices.Contains(a.Scopes, noun) || toRead && slices.Contains(a.Scopes, noun+scopeToRead)
}

// Within returns a with at most this role.
func (a Access) Within(most Role) Access {
	if !most.AtLeast(a.Role) {
		a.Role = most
	}
	return a
}

// Covers reports whether a includes all of b: a key can create only keys with equal or
// fewer permissions.
func (a Access) Covers(b Access) bool {
	if a.Role.rank() < b.Role.rank() || len(b.Scopes) == 0 && len(a.Scopes) > 0 {
		return false
	}
	return !slices.ContainsFunc(b.Scopes, func(s string) bool {
		noun, toRead := strings.CutSuffix(s, scopeToRead)
		return !a.opens(noun, toRead)
	})
}
