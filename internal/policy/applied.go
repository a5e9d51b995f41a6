package policy

import (
	"iter"
	"maps"
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Applied holds the rules that apply to the nodes of a class themselves, as opposed to
// networks behind them, first for IPv4, then for IPv6. Rules are given by their index in
// Rules.List, SSH rules by their index in the document.
type Applied struct {
	Has [2]bool             // the nodes have addresses of the family
	Src [2]bitset.Set       // rules that have the nodes as sources
	Dst [2][]DestinationRef // destinations that match the nodes, except through autogroup:self; by rule
	// ShellSrc holds the SSH rules that have the nodes as sources, ShellDst those that
	// have them as destinations.
	ShellSrc, ShellDst bitset.Set
}

// DestinationRef refers to one destination of a rule.
type DestinationRef struct{ Rule, Destination int }

// Applied returns the rules that apply to nodes of a class.
func (c *Rules) Applied(class Class) Applied {
	i := c.info(class)
	if class == Nobody {
		return Applied{Has: [2]bool{i.addrs.four, i.addrs.six}}
	}
	return c.appliedTo(i)
}

// AppliedToNew returns the rules that would apply to the first node of a user: one
// without tags and routes, whose addresses match only rules about the whole mesh.
func (c *Rules) AppliedToNew(u *mesh.User) Applied {
	t := traits{addrs: families{four: true, six: true}}
	t.own.AddList(c.all)
	t.own.AddList(c.member)
	c.addUser(&t.own, u)
	for _, p := range MeshPrefixes() {
		t.own.AddList(c.covering(p))
	}
	return c.appliedTo(c.newClass(t))
}

func (c *Rules) appliedTo(i *classInfo) (a Applied) {
	a.Has = [2]bool{i.addrs.four, i.addrs.six}
	var dst [2]bitset.Set
	for s := range i.own.All() {
		sel := &c.selectors[s]
		f := i.familiesOf(sel, i.addrs)
		for family, counts := range [2]bool{f.four, f.six} {
			if counts {
				a.Src[family].AddAll(sel.src, nil)
				dst[family].AddAll(sel.dst, c.via)
			}
		}
	}
	for family := range dst {
		for r := range dst[family].All() {
			a.Dst[family] = c.addDestinations(a.Dst[family], i, r, family == 1)
		}
	}
	for n := range c.ssh {
		r := &c.ssh[n]
		if r.on(i) {
			a.ShellDst.Add(n)
		}
		for _, src := range r.srcs {
			if i.own.Has(src) {
				a.ShellSrc.Add(n)
			}
		}
	}
	return a
}

// addDestinations adds the destinations of a rule that match nodes of a class by their
// addresses of one family.
func (c *Rules) addDestinations(list []DestinationRef, i *classInfo, rule int, six bool) []DestinationRef {
	for k, selectors := range c.dsts[rule] {
		for _, s := range selectors {
			f := i.familiesOf(&c.selectors[s], i.addrs)
			if i.own.Has(s) && (six && f.six || !six && f.four) {
				list = append(list, DestinationRef{rule, k})
				break
			}
		}
	}
	return list
}

// SourcesAt returns the rules whose sources include addresses of a prefix, whichever
// nodes have these addresses.
func (c *Rules) SourcesAt(p netip.Prefix) (rules bitset.Set) {
	for _, list := range [][]int{c.all, c.covering(p), c.within(p)} {
		for _, s := range list {
			rules.AddAll(c.selectors[s].src, nil)
		}
	}
	return rules
}

// List returns the access rules, in the order of lang.Doc.Rules. Without a policy, there
// is one rule that allows everything.
func (c *Rules) List() []lang.Rule { return c.rules }

// Prefixes yields the prefixes by which rules distinguish addresses.
func (c *Rules) Prefixes() iter.Seq[netip.Prefix] { return maps.Keys(c.byPrefix) }
