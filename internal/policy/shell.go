package policy

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Shell is a rule about shells as it holds on a node.
type Shell struct {
	*lang.SSHRule
	// People are let in from any of their nodes without tags; Addrs are those of
	// the nodes with tags that are let in.
	People []*mesh.User
	Addrs  []netip.Addr
}

// noteShells finds out what the shells on nodes of a class depend on.
func (c *Rules) noteShells(i *classInfo) {
	for _, r := range c.ssh {
		switch {
		case r.on(i):
			i.shellNodes = i.shellNodes || slices.ContainsFunc(r.srcs, func(s int) bool { return mayBeTagged(&c.selectors[s].target) })
		case r.onOwn(i):
			i.shellOwn = true
		}
	}
}

// on reports whether all sources are let in on nodes of a class.
func (r *compiledShell) on(i *classInfo) bool { return slices.ContainsFunc(r.dsts, i.own.Has) }

// onOwn reports whether people of a class are let in on their own nodes.
func (r *compiledShell) onOwn(i *classInfo) bool {
	return r.self && slices.ContainsFunc(r.srcs, i.own.Has)
}

func mayBeTagged(t *lang.Target) bool {
	return t.Kind == lang.Tag || t.Kind == lang.Tagged || t.Kind == lang.Any
}

// Shells returns the rules that let someone open shells on nodes of a class that
// one user has, in order; zero for nodes with tags.
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
		} else if u, ok := w.User(owner); ok && r.onOwn(i) {
			s.People = []*mesh.User{u}
		}
		if len(s.People)+len(s.Addrs) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// ShellsOfOwn reports whether the SSH rules for nodes of a class depend on who has
// the nodes.
func (c *Rules) ShellsOfOwn(class Class) bool { return c.info(class).shellOwn }

// shellSources are the people and the nodes with tags that selectors mean, each
// once and in order.
func (w *World) shellSources(selectors []int) (people []*mesh.User, addrs []netip.Addr) {
	for _, s := range selectors {
		people = append(people, w.peopleOf(s)...)
		t := &w.rules.selectors[s].target
		if !mayBeTagged(t) {
			continue
		}
		for n := range w.Nodes() {
			if n.Tagged() && (t.Kind != lang.Tag || slices.Contains(n.Tags, t.Name)) {
				addrs = append(addrs, n.Addrs()...)
			}
		}
	}
	slices.SortFunc(people, func(a, b *mesh.User) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(people), slices.Compact(addrs)
}
