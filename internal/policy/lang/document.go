package lang

import (
	"maps"
	"net/netip"
	"slices"
)

// Doc is a parsed policy. It is never modified after Parse.
type Doc struct {
	// Groups maps groups to the names of their users, in the form of UserName.
	Groups map[string][]string
	// Provided holds the groups that are used but not defined, with the place of their
	// first use. Their members are the users who have them at the identity provider.
	Provided map[string]Problem
	// MemberLines holds, for each group, the line of each of these names.
	MemberLines map[string][]Line
	Hosts       map[string]netip.Prefix
	// TagOwners maps tags to their owners: groups, tags, names of users,
	// autogroup:member and autogroup:admin.
	TagOwners map[string][]string

	// Rules holds the access rules: the acls and then the grants, each in the order of
	// the text. A document with neither of these fields does not restrict access: it has
	// one implicit rule, without a line, that allows everything. A document with an empty
	// list allows nothing.
	Rules []Rule
	// SSH holds the rules for SSH sessions. The first rule that matches applies.
	SSH []SSHRule
	// Approvers lists the users, groups and tags whose routes need no approval.
	Approvers Approvers
	// Attributes holds the attributes that nodes get.
	Attributes []Attribute
	// Tests and SSHTests are tests that Rules and SSH must pass.
	Tests    []Test
	SSHTests []SSHTest
	// RandomizeClientPort makes clients use a random UDP port instead of the default
	// port.
	RandomizeClientPort bool
	// Warnings holds warnings about text that is valid but may not mean what its author
	// intended, up to a limit.
	Warnings []Problem

	users    map[string]bool    // all users named anywhere
	groupsAt map[string]Problem // where each of Groups is defined
	adminsAt Problem            // where autogroup:admin is first used; without a line if nowhere
}

// Users returns the users that are named anywhere, sorted and in the form of
// UserName. They need not exist.
func (d *Doc) Users() []string { return slices.Sorted(maps.Keys(d.users)) }

// NamesUser reports whether a user is named anywhere, by a name in the form of
// UserName.
func (d *Doc) NamesUser(name string) bool { return d != nil && d.users[name] }
