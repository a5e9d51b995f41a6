package lang

import (
	"maps"
	"net/netip"
	"slices"
)

// Doc is a policy that was read. Nobody modifies it after Parse.
type Doc struct {
	// Groups maps groups to the names of their users, in the form of UserName.
	Groups map[string][]string
	// MemberLines says for each group on which line each of these names is.
	MemberLines map[string][]Line
	Hosts       map[string]netip.Prefix
	// TagOwners maps tags to their owners: groups, tags, names of users, and
	// autogroup:member.
	TagOwners map[string][]string

	// Rules say who may reach what: the acls and then the grants, each in the
	// order of the text. A document that has neither member says nothing about
	// access, so everyone may reach everyone by a rule that has no line. One with
	// an empty list allows nothing.
	Rules []Rule
	// SSH says who may open SSH sessions where. The first rule that matches
	// applies.
	SSH []SSHRule
	// Approvers say whose routes need no approval.
	Approvers Approvers
	// Attributes are what nodes are told about themselves.
	Attributes []Attribute
	// Tests and SSHTests must hold of Rules and SSH.
	Tests    []Test
	SSHTests []SSHTest
	// RandomizeClientPort makes clients choose another UDP port at each start.
	RandomizeClientPort bool
	// Warnings are about text that is valid but may not mean what its author
	// intended, up to a limit.
	Warnings []Problem

	users map[string]bool // all users named anywhere
}

// Users returns the users that are named anywhere, sorted and in the form of
// UserName. They need not exist.
func (d *Doc) Users() []string { return slices.Sorted(maps.Keys(d.users)) }

// NamesUser reports whether a user is named anywhere, by a name in the form of
// UserName.
func (d *Doc) NamesUser(name string) bool { return d != nil && d.users[name] }
