package mesh

import (
	"fmt"
	"slices"
	"strings"
)

// Role bounds what the holder of a key may do. The zero Role may do nothing.
type Role string

// The roles, each with all that the one before may do.
const (
	// RoleRead looks at everything and changes nothing.
	RoleRead Role = "read"
	// RoleOperator does the daily work: all but keys, webhooks and the policy.
	RoleOperator Role = "operator"
	// RoleAdmin does everything.
	RoleAdmin Role = "admin"
)

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{RoleRead, RoleOperator, RoleAdmin} }

func (r Role) rank() int { return slices.Index(Roles(), r) }

// Noun is what a scope opens.
type Noun string

// The nouns of scopes.
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
)

// Nouns lists what a scope can open.
func Nouns() []Noun {
	return []Noun{
		NounUsers, NounPreAuthKeys, NounAPIKeys, NounNodes, NounRoutes, NounLogins, NounSSH, NounDNS, NounPolicy,
		NounHistory, NounWebhooks, NounService,
	}
}

// scopeToRead ends a scope that opens a noun to readers alone.
const scopeToRead = ":read"

// Access is what a key opens.
type Access struct {
	Role Role `json:"role,omitempty"`
	// Scopes are the nouns that Role counts for, each with or without :read; none
	// means all. They are sorted and stand once.
	Scopes []string `json:"scopes,omitempty"`
}

// ParseRole reads the name of a role.
func ParseRole(text string) (Role, error) {
	if r := Role(text); r.rank() >= 0 {
		return r, nil
	}
	return "", fmt.Errorf("%q is no role; the roles are %s", text, listing(Roles()))
}

// ParseScopes reads scopes and puts them in their one form.
func ParseScopes(texts []string) (scopes []string, err error) {
	for _, s := range texts {
		noun := strings.TrimSuffix(s, scopeToRead)
		if !slices.Contains(Nouns(), Noun(noun)) {
			return nil, fmt.Errorf("%q is no scope; the scopes are %s, each also with %s behind it", s, listing(Nouns()), scopeToRead)
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
	return strings.Join(texts, ", ")
}

// Allows reports whether a opens what asks for a role on a noun.
func (a Access) Allows(n Noun, least Role) bool {
	return least.rank() >= 0 && a.Role.rank() >= least.rank() && a.opens(string(n), least == RoleRead)
}

func (a Access) opens(noun string, toRead bool) bool {
	return len(a.Scopes) == 0 || slices.Contains(a.Scopes, noun) || toRead && slices.Contains(a.Scopes, noun+scopeToRead)
}

// Covers reports whether a opens all that b does: nobody hands out more than he
// has.
func (a Access) Covers(b Access) bool {
	if a.Role.rank() < b.Role.rank() || len(b.Scopes) == 0 && len(a.Scopes) > 0 {
		return false
	}
	return !slices.ContainsFunc(b.Scopes, func(s string) bool {
		noun, toRead := strings.CutSuffix(s, scopeToRead)
		return !a.opens(noun, toRead)
	})
}
