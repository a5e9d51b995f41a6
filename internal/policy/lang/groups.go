package lang

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// CheckGroups returns problems with groups that depend on the users. A group that is
// both defined and a group of the identity provider is one: readers could not tell who is
// meant. So is a group that neither defines, unless expected says that the provider may
// have groups that no user has had yet.
func (d *Doc) CheckGroups(s *mesh.Snapshot, expected bool) (problems Problems) {
	provided := providedGroups(s)
	for _, group := range known(d.Groups) {
		if provided[group] {
			problems = append(problems, d.groupsAt[group].with(
				"%s is defined here, but the identity provider also has a group with this name: remove or rename one of them", group))
		}
	}
	if !expected && len(provided) == 0 {
		for _, group := range d.unknownGroups(provided) {
			problems = append(problems, d.Provided[group].with("%s is not defined: add it to groups%s", group, Nearest(group, known(d.Groups))))
		}
	}
	return problems[:min(len(problems), maxProblems)]
}

// UndefinedGroups returns warnings about groups that must exist at the identity provider,
// for readers who do not know which groups it has.
func (d *Doc) UndefinedGroups() (warnings []Problem) {
	for _, group := range d.unknownGroups(nil) {
		warnings = append(warnings, d.Provided[group].with("%s is not defined in groups, so it must be a group of the identity provider%s", group, Nearest(group, known(d.Groups))))
	}
	return warnings[:min(len(warnings), maxWarnings)]
}

// UndefinedGroupsIn is UndefinedGroups for a text that may have problems, so that all mistakes
// are reported at once.
func UndefinedGroupsIn(text []byte) []Problem {
	doc, _ := parse(text)
	if doc == nil {
		return nil
	}
	return doc.UndefinedGroups()
}

// groupWarnings returns warnings about groups that nobody has.
func (d *Doc) groupWarnings(s *mesh.Snapshot) (warnings []Problem) {
	provided := providedGroups(s)
	groups := slices.Concat(known(d.Groups), slices.Sorted(maps.Keys(provided)))
	for _, group := range d.unknownGroups(provided) {
		warnings = append(warnings, d.Provided[group].with(
			"%s is not defined in groups, and no user has it at the identity provider%s", group, Nearest(group, groups)))
	}
	return warnings[:min(len(warnings), maxWarnings)]
}

// unknownGroups returns the groups that are used but that nobody has, in the order of
// the text.
func (d *Doc) unknownGroups(provided map[string]bool) []string {
	list := slices.DeleteFunc(known(d.Provided), func(group string) bool { return provided[group] })
	slices.SortStableFunc(list, func(a, b string) int { return d.Provided[a].compare(d.Provided[b]) })
	return list
}

// providedGroups returns the groups that users have at the identity provider, and those
// that it has pushed.
func providedGroups(s *mesh.Snapshot) map[string]bool {
	groups := map[string]bool{}
	for g := range s.Groups.All() {
		groups[PrefixGroup+g.Name] = true
	}
	for u := range s.Users.All() {
		if u.NeedsApproval || u.Suspended() {
			continue // otherwise anyone with an account at the provider could make a policy invalid
		}
		for _, name := range u.Groups {
			groups[PrefixGroup+name] = true
		}
	}
	return groups
}

// with returns a problem at the same place.
func (p Problem) with(format string, args ...any) Problem {
	p.Text = shortened(fmt.Sprintf(format, args...))
	return p
}
