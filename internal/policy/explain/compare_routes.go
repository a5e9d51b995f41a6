package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// routeOffers is a prefix behind routers, with the rules that give access to it.
type routeOffers struct {
	prefix        netip.Prefix // a default route stands for the internet
	before, after []offer      // offers of rules that give access to all of it
}

// behind yields the rules that give access to networks behind a node, each with these networks.
func (s *evaluator) behind(c policy.Class, n *mesh.Node, yield func(rule, access int, places []netip.Prefix)) {
	if c == policy.Nobody {
		return
	}
	for _, in := range s.Rules().Inbound(c) {
		for d := range in.Dst {
			reach := &in.Dst[d]
			if places := reach.Places(n); len(places) > 0 && len(reach.Services) > 0 {
				yield(in.Index, s.accesses.number(accessOf(reach.Services)), places)
			}
		}
	}
}

// offersBehind returns the networks behind a node that rules of either world give access to.
func (c *comparison) offersBehind(was, is *mesh.Node) []routeOffers {
	type offerAt struct {
		offer
		places []netip.Prefix
	}
	var before, after []offerAt
	var places []netip.Prefix
	collect := func(s *evaluator, n *mesh.Node, list *[]offerAt) {
		s.behind(s.Class(n), n, func(rule, access int, at []netip.Prefix) {
			*list, places = append(*list, offerAt{offer{rule, access}, at}), append(places, at...)
		})
	}
	collect(c.before, was, &before)
	collect(c.after, is, &after)
	slices.SortFunc(places, func(a, b netip.Prefix) int { return cmp.Or(a.Bits()-b.Bits(), a.Compare(b)) })
	var list []routeOffers
	for _, p := range slices.Compact(places) {
		to := func(all []offerAt) (rules []offer) {
			for _, o := range all {
				if slices.ContainsFunc(o.places, func(q netip.Prefix) bool { return holds(q, p) }) {
					rules = append(rules, o.offer)
				}
			}
			return rules
		}
		list = append(list, routeOffers{p, to(before), to(after)})
	}
	return list
}

// holds reports whether one network is part of another. The internet is part only of itself and
// has no other parts.
func holds(whole, part netip.Prefix) bool {
	if whole.Bits() == 0 || part.Bits() == 0 {
		return whole == part
	}
	return whole.Bits() <= part.Bits() && whole.Contains(part.Addr())
}

// routeShift is a RouteShift under construction.
type routeShift struct {
	RouteShift
	from map[int]bool // indexes of sets of principals
}

// compareRoutes determines for whom access to networks behind routers changes. Routers of one
// bucket with the same routes are compared once.
func (c *comparison) compareRoutes() {
	type group struct {
		*bucket
		was, is *mesh.Node
		through []mesh.NodeID
	}
	groups := map[string]*group{}
	var order []*group
	for n := range c.after.Nodes.All() {
		was, ok := c.before.Nodes.Get(n.ID)
		if !ok || len(n.Routes)+len(was.Routes) == 0 {
			continue
		}
		j := c.subsetOf[n.ID].bucket
		key := fmt.Sprint(j.index, was.Routes, n.Routes)
		if groups[key] == nil {
			groups[key] = &group{bucket: j, was: was, is: n}
			order = append(order, groups[key])
		}
		groups[key].through = append(groups[key].through, n.ID)
	}
	var all []*routeShift
	for _, g := range order {
		shifts := map[string]*routeShift{}
		routes := c.offersBehind(g.was, g.is)
		for _, j := range c.buckets {
			if j != g.bucket || j.nodes > 1 {
				c.compareOffers(j, routes, shifts)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(shifts)) {
			s := shifts[key]
			s.Through = g.through
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *routeShift) int { return len(b.from) - len(a.from) })
	for _, s := range all[:min(len(all), maxShifts)] {
		var names []string
		for set := range s.from {
			names = append(names, c.sets[set]...)
		}
		slices.Sort(names)
		s.From = Principals{names[:min(len(names), maxPrincipals)], len(names)}
		c.effect.Routes = append(c.effect.Routes, s.RouteShift)
	}
	c.effect.MoreRoutes = max(0, len(all)-maxShifts)
}

// compareOffers compares what nodes of a bucket reach behind a router. A part of a network is
// listed only if it changes differently from the whole.
func (c *comparison) compareOffers(j *bucket, routes []routeOffers, shifts map[string]*routeShift) {
	type change struct {
		prefix        netip.Prefix
		before, after int
	}
	var told []change
	for _, w := range routes {
		family := 0
		if w.prefix.Addr().Is6() {
			family = 1
		}
		sum := func(src bitset.Set, rules []offer) (sum int) {
			for _, l := range rules {
				if src.Has(l.rule) {
					sum = c.accesses.plus(sum, l.access)
				}
			}
			return sum
		}
		before, after := sum(j.srcBefore.src[family], w.before), sum(j.srcAfter.src[family], w.after)
		// This network is listed only if it changes differently from the smallest network
		// that contains it.
		i := len(told) - 1
		for i >= 0 && !holds(told[i].prefix, w.prefix) {
			i--
		}
		told = append(told, change{w.prefix, before, after})
		if before == after || i >= 0 && told[i].before == before && told[i].after == after {
			continue
		}
		key := fmt.Sprintf("%s %d %d", w.prefix, before, after)
		s := shifts[key]
		lost, gained := c.accesses.minus(before, after), c.accesses.minus(after, before)
		if s == nil {
			s = &routeShift{from: map[int]bool{}, RouteShift: RouteShift{
				Prefix: w.prefix, Lost: c.accesses.all[lost].services(), Gained: c.accesses.all[gained].services(),
			}}
			shifts[key] = s
		}
		for _, e := range j.subsets {
			s.from[e.principals] = true
		}
		s.LostLines = c.before.leadingLines(s.LostLines, j.srcBefore.src[family], w.before, lost)
		s.GainedLines = c.after.leadingLines(s.GainedLines, j.srcAfter.src[family], w.after, gained)
	}
}

func (s *evaluator) leadingLines(list []lang.Line, src bitset.Set, rules []offer, what int) []lang.Line {
	for _, l := range rules {
		if what != nothing && src.Has(l.rule) && s.accesses.meets(l.access, what) {
			list = addLine(list, s.rules[l.rule].Line)
		}
	}
	return list
}
