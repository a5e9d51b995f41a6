package policy

import (
	"maps"
	"net/netip"
	"slices"
)

// Doc is a policy that was read. It is never written again, nor is anything that
// its methods return.
type Doc struct {
	groups      map[string][]string // names of users as userOf gives them
	memberLines map[string][]Line   // of a group: where each of these names stands
	hosts       map[string]netip.Prefix
	owners      map[string][]string // of a tag: groups, tags, names of users, and ownedByAll
	users       map[string]bool     // everyone named anywhere

	rules               []Rule
	ssh                 []SSHRule
	approvers           Approvers
	attributes          []Attribute
	tests               []Test
	sshTests            []SSHTest
	randomizeClientPort bool
	warnings            []Problem
}

// Warnings returns what has a meaning, but perhaps not the one that was meant, up
// to a limit.
func (d *Doc) Warnings() []Problem { return d.warnings }

// Rules returns who may reach what: the acls and then the grants, each in the
// order of the text. A document that has neither member says nothing about access,
// so everyone may reach everyone by a rule that stands nowhere; one with an empty
// list allows nothing.
func (d *Doc) Rules() []Rule { return d.rules }

// SSH returns who may open a shell where. The first rule that fits counts.
func (d *Doc) SSH() []SSHRule { return d.ssh }

// Approvers returns whose routes need no approval.
func (d *Doc) Approvers() Approvers { return d.approvers }

// Attributes returns what nodes are told about themselves.
func (d *Doc) Attributes() []Attribute { return d.attributes }

// Tests returns what must hold of the rules.
func (d *Doc) Tests() []Test { return d.tests }

// SSHTests returns what must hold of the SSH rules.
func (d *Doc) SSHTests() []SSHTest { return d.sshTests }

// RandomizeClientPort reports whether clients choose their UDP port anew at each
// start.
func (d *Doc) RandomizeClientPort() bool { return d.randomizeClientPort }

// Users returns the users that are named anywhere, in order and in the form in
// which names are compared. They need not exist.
func (d *Doc) Users() []string { return slices.Sorted(maps.Keys(d.users)) }
