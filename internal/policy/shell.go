package policy

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Shell is an SSH rule as it applies to a node.
type Shell struct {
	*lang.SSHRule
	// People holds the users who may log in, from any of their untagged nodes. Addrs
	// holds the addresses of the tagged nodes from which logins are allowed.
	People []*mesh.User
	Addrs  []netip.Addr
}

// noteShells records what the SSH rules for nodes of a class depend on.
func (c *Rules) noteShells(i *classInfo) {
	for _, r := range c.ssh {
		switch {
		case r.on(i):
			i.shells = true
			i.shellNodes = i.shellNodes || slices.ContainsFunc(r.srcs, func(s int) bool { return mayBeTagged(&c.selectors[s].target) })
		case r.onOwn(i):
			i.shells, i.shellOwn = true, true
		}
	}
}

// on reports whether a rule applies to nodes of a class, whatever the source.
func (r *compiledShell) on(i *classInfo) bool { return slices.ContainsFunc(r.dsts, i.own.Has) }

// onOwn reports whether a rule lets the owners of nodes of a class log in on them through
// autogroup:self.
func (r *compiledShell) onOwn(i *classInfo) bool {
	return r.self && slices.ContainsFunc(r.srcs, i.own.Has)
}

func mayBeTagged(t *lang.Target) bool {
	return t.Kind == lang.Tag || t.Kind == lang.Tagged || t.Kind == lang.Any
}

// Shells returns the SSH rules that let someone log in on nodes of a class, in order.
// owner is the owner of the nodes; zero for tagged nodes.
func (w *World) Shells(c Class, owner mesh.UserID) (list []Shell) {
	if c == Nobody {
		return nil
	}
	i := w.rules.info(c)
	for k := range w.rules.ssh {
		r := &w.rules.ssh[k]
		s := Shell{SSHRule: r.SSHRule}
		if r.on(i) {
			s.People, s.Addrs = w.shellSources(r.srcs)
		} else if u, ok := w.Users.Get(owner); ok && r.onOwn(i) {
			s.People = []*mesh.User{u}
		}
		if len(s.People)+len(s.Addrs) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// ShellsOfOwn reports whether the SSH rules for nodes of a class depend on the owner of
// the nodes.
func (c *Rules) ShellsOfOwn(class Class) bool { return c.info(class).shellOwn }

// shellSources returns the users, and the addresses of tagged nodes, that selectors refer
// to, sorted and without duplicates.
func (w *World) shellSources(selectors []int) (people []*mesh.User, addrs []netip.Addr) {
	for _, s := range selectors {
		people = append(people, w.peopleOf(s)...)
		t := &w.rules.selectors[s].target
		if !mayBeTagged(t) {
			continue
		}
		for n := range w.Nodes.Approved() {
			if n.Tagged() && (t.Kind != lang.Tag || slices.Contains(n.Tags, t.Name)) {
				addrs = append(addrs, n.Addrs()...)
			}
		}
	}
	slices.SortFunc(people, func(a, b *mesh.User) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(people), slices.Compact(addrs)
}
