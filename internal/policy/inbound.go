package policy

import (
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Inbound is a rule from the perspective of its destinations.
type Inbound struct {
	*lang.Rule
	Index int // index of the rule in Rules.List
	Src   []Source
	Dst   []Reach
	// Listed means that clients must be sent the addresses of its sources, because they
	// check marks only for TCP, UDP, SCTP and ICMP.
	Listed bool
}

// Source is a source of a rule.
type Source struct {
	lang.Target
	// Mark is the mark of the nodes of this source (see World.Marks). It is empty for
	// addresses and for everyone.
	Mark     string
	selector int
}

// Reach is a destination of a rule. It may match a node itself, networks behind the node,
// or both.
type Reach struct {
	lang.Destination
	Own, Behind bool
}

// On returns the addresses of a node, and the prefixes behind it, that a destination
// matches.
func (r *Reach) On(n *mesh.Node) (list []netip.Prefix) {
	for _, a := range n.Addrs() {
		if r.Own && (r.Kind != lang.Addresses || slices.ContainsFunc(r.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })) {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	if !r.Behind {
		return list
	}
	for _, route := range n.Routes {
		switch exit := route.Bits() == 0; {
		case exit && (r.Kind == lang.Any || r.Kind == lang.Internet):
			list = append(list, internet(route)...)
		case !exit && r.Kind == lang.Any:
			list = append(list, route)
		case !exit && r.Kind == lang.Addresses:
			list = append(list, shared(route, r.Prefixes)...)
		}
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	return slices.Compact(list)
}

// Places returns the prefixes behind a node that a destination matches. A default route
// stands for the internet.
func (r *Reach) Places(n *mesh.Node) (list []netip.Prefix) {
	if !r.Behind {
		return nil
	}
	for _, route := range n.Routes {
		switch exit := route.Bits() == 0; {
		case exit && (r.Kind == lang.Any || r.Kind == lang.Internet), !exit && r.Kind == lang.Any:
			list = append(list, route)
		case !exit && r.Kind == lang.Addresses:
			list = append(list, shared(route, r.Prefixes)...)
		}
	}
	return list
}

// shared returns the parts of a prefix that other prefixes contain.
func shared(p netip.Prefix, others []netip.Prefix) (list []netip.Prefix) {
	for _, o := range others {
		if !p.Overlaps(o) {
			continue
		}
		if o.Bits() > p.Bits() {
			list = append(list, o)
		} else {
			list = append(list, p)
		}
	}
	return list
}

// Inbound returns the rules that let others reach nodes of a class.
func (c *Rules) Inbound(class Class) []Inbound {
	if class == Nobody {
		return nil
	}
	return c.info(class).inbound()
}

// OwnInbound returns the rules that let the nodes of one user reach each other, for nodes
// of a class. They have no sources: the sources are the nodes with OwnMark.
func (c *Rules) OwnInbound(class Class) []Inbound {
	if class == Nobody {
		return nil
	}
	return c.ownInbound(c.info(class))
}

// inboundOf returns the rules that have nodes of a class as destinations, in order.
func (c *Rules) inboundOf(i *classInfo) (list []Inbound) {
	for r := range i.dst.any().All() {
		in := Inbound{Rule: &c.rules[r], Index: r, Src: c.sources(r), Listed: c.listing.Has(r)}
		for k, d := range in.Rule.Dst {
			reach := Reach{
				Destination: d,
				Own:         !c.via.Has(r) && slices.ContainsFunc(c.dsts[r][k], i.own.Has),
				Behind:      slices.ContainsFunc(c.dsts[r][k], i.behind.Has),
			}
			if reach.Own || reach.Behind {
				reach.Prefixes = c.prefixesOf(i, c.dsts[r][k])
				in.Dst = append(in.Dst, reach)
			}
		}
		list = append(list, in)
	}
	return list
}

// prefixesOf returns the prefixes of a destination in the families that apply to a class.
// Clients respond to echo requests on all addresses of a rule whose mark matches, so it
// must not contain other prefixes.
func (c *Rules) prefixesOf(i *classInfo, selectors []int) (list []netip.Prefix) {
	for _, s := range selectors {
		if i.own.Has(s) || i.behind.Has(s) {
			list = append(list, c.selectors[s].target.Prefixes...)
		}
	}
	return list
}

// ownInbound returns the rules that let the nodes of a user reach each other, for
// nodes of this class.
func (c *Rules) ownInbound(i *classInfo) (list []Inbound) {
	for r := range bitset.Both(i.src.any(), c.self) {
		in := Inbound{Rule: withAnswers(&c.rules[r]), Index: r, Listed: c.listing.Has(r)}
		for _, d := range in.Rule.Dst {
			if d.Kind == lang.Self {
				in.Dst = append(in.Dst, Reach{Destination: d, Own: true})
			}
		}
		list = append(list, in)
	}
	return list
}

func (c *Rules) sources(r int) []Source {
	list := make([]Source, len(c.srcs[r]))
	for k, s := range c.srcs[r] {
		list[k] = Source{c.selectors[s].target, c.selectors[s].mark, s}
	}
	return list
}

// needsList reports whether a rule has capabilities or protocols for which clients
// do not check marks.
func needsList(r *lang.Rule) bool {
	return len(r.App) > 0 || slices.ContainsFunc(r.Dst, func(d lang.Destination) bool {
		return slices.ContainsFunc(d.Services, func(s lang.Service) bool {
			return slices.ContainsFunc(s.Protocols, func(p int) bool { return !marked(p) })
		})
	})
}

// marked reports whether clients check marks for a protocol.
func marked(protocol int) bool {
	switch protocol {
	case lang.ICMP, lang.TCP, lang.UDP, lang.ICMPv6, lang.SCTP:
		return true
	}
	return false
}

// noteSources records how the inbound rules of a class identify their sources.
func (c *Rules) noteSources(i *classInfo) {
	rules := i.dst.any()
	i.marked, i.anyone = rules.Meets(c.marked), rules.Meets(c.open)
	for r := range bitset.Both(rules, c.listing) {
		i.listed = i.listed || c.marked.Has(r)
	}
	i.listed = i.listed || c.listsMirrored(i)
	for r := range bitset.Both(i.src.any(), c.self) {
		i.ownListed = i.ownListed || c.listing.Has(r)
	}
}
