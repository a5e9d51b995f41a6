package lang

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxWarnings limits the number of warnings of one kind.
const maxWarnings = 20

// WarningsFor returns the document's warnings, and warnings about users it names who do
// not exist, groups that nobody has, and autogroup:admin if nobody has the role. That may be intended: both can be named before the
// first sign-in.
func (d *Doc) WarningsFor(s *mesh.Snapshot) []Problem {
	if d == nil {
		return nil
	}
	people := map[string]bool{}
	for u := range s.Users.All() {
		for _, name := range NamesOf(u) {
			people[name] = true
		}
	}
	var strangers []string
	for _, name := range d.Users() {
		if !people[name] {
			strangers = append(strangers, name)
		}
	}
	warnings := append(slices.Clone(d.Warnings), d.groupWarnings(s)...)
	if d.adminsAt.Line > 0 && !slices.ContainsFunc(slices.Collect(s.Users.All()), (*mesh.User).IsAssignedAdmin) {
		warnings = append(warnings, d.adminsAt.with("%s is empty: assign the role with fairlead users set-role; people who have the role "+
			"because of a group are not included, so name their group in the rule", ownedByAdmins))
	}
	for _, name := range strangers[:min(len(strangers), maxWarnings)] {
		text := "unknown user " + name
		if _, ok := s.NodeNamed(name); ok {
			text += ", but a node has this name: refer to nodes by tag, by address, or by an entry in hosts"
		}
		warnings = append(warnings, Problem{Text: text})
	}
	if more := len(strangers) - maxWarnings; more > 0 {
		warnings = append(warnings, Problem{Text: fmt.Sprintf("%d more unknown users in the policy", more)})
	}
	return warnings
}
