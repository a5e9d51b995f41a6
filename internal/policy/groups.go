package policy

import (
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// HasGroups reports whether GroupsOf returns any groups for nodes of a class.
func (c *Rules) HasGroups(class Class) bool {
	return class != Nobody && len(c.info(class).groups()) > 0
}

// GroupsOf returns the groups of a user that nodes of a class are told, sorted: those that
// the rules which let others reach these nodes name as sources.
func (c *Rules) GroupsOf(class Class, u *mesh.User) (names []string) {
	if !c.HasGroups(class) {
		return nil
	}
	var own bitset.Set
	c.addUser(&own, u)
	for _, s := range c.info(class).groups() {
		if own.Has(s) {
			names = append(names, c.selectors[s].target.Name)
		}
	}
	return names
}

// sourceGroups returns the selectors of the groups that are sources of access rules and
// SSH rules for nodes of a class, sorted by name.
func (c *Rules) sourceGroups(i *classInfo) (list []int) {
	add := func(sources []int) {
		for _, s := range sources {
			if c.selectors[s].target.Kind == lang.Group {
				list = append(list, s)
			}
		}
	}
	for r := range i.dst.any().All() {
		add(c.srcs[r])
	}
	for k := range c.ssh {
		if c.ssh[k].on(i) {
			add(c.ssh[k].srcs)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return strings.Compare(c.selectors[a].target.Name, c.selectors[b].target.Name) })
	return slices.Compact(list)
}
