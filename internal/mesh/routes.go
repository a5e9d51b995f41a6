package mesh

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// Route is a prefix that a node advertises, has advertised or may advertise. As in Node,
// the fields with the tag decided hold what was decided about it.
type Route struct {
	ID     RouteID      `json:"id"`
	Prefix netip.Prefix `json:"prefix"`
	// Enabled means that an administrator or the policy approved the route.
	Enabled bool `json:"enabled,omitempty" decided:"true"`
	// Decided means that a person enabled or disabled it. The policy does not change that.
	Decided bool `json:"decided,omitempty" decided:"true"`
	// ApprovedBy is the version of the policy that enabled it. It is zero if a person
	// decided, or if an older release enabled it.
	ApprovedBy PolicyVersion `json:"approvedBy,omitempty"`
	// Preference is the priority of the node among several routers of the prefix: the
	// highest wins.
	Preference int  `json:"preference,omitempty" decided:"true"`
	CreatedAt  Time `json:"createdAt"`
	UpdatedAt  Time `json:"updatedAt"`
}

// Exit reports whether a prefix is an exit route.
func Exit(p netip.Prefix) bool { return p.Bits() == 0 }

// Route finds a route by its prefix.
func (n *Node) Route(p netip.Prefix) (Route, bool) {
	i, ok := slices.BinarySearchFunc(n.AllRoutes, p, Route.comparePrefix)
	if !ok {
		return Route{}, false
	}
	return n.AllRoutes[i], true
}

// AddRoute adds a route with a prefix that the node does not have yet.
func (n *Node) AddRoute(r Route) {
	i, _ := slices.BinarySearchFunc(n.AllRoutes, r.Prefix, Route.comparePrefix)
	n.AllRoutes = slices.Insert(slices.Clip(n.AllRoutes), i, r)
}

// AutoApproval is what the policy says about the routes of one node.
type AutoApproval struct {
	Version  PolicyVersion
	Approves func(netip.Prefix) bool
	// Withdraws selects the routes whose earlier approval no longer holds. For
	// those that only a policy had enabled, Approves decides again. Nil selects
	// none: an approval outlives the autoApprovers that it came from.
	Withdraws func(Route) bool
	// Forbids selects prefixes that cannot be routes, whoever approved them; nil
	// selects none.
	Forbids func(netip.Prefix) bool
}

// review withdraws the approvals that no longer hold. Routes that a person decided on stay
// unchanged, unless they are forbidden.
func (a AutoApproval) review(routes []Route, now Time) {
	for i := range routes {
		switch r := &routes[i]; {
		case r.Enabled && a.Forbids != nil && a.Forbids(r.Prefix):
			r.Enabled, r.ApprovedBy, r.UpdatedAt = false, 0, now
		case !r.Enabled || r.Decided || a.Withdraws == nil || !a.Withdraws(*r):
		case a.Approves(r.Prefix):
			r.ApprovedBy = a.Version
		default:
			r.Enabled, r.ApprovedBy, r.UpdatedAt = false, 0, now
		}
	}
}

// KeepRoutes updates AllRoutes and Routes to match what the device advertises and the
// policy, and reports whether they changed. New routes get the ids after last. A route that
// nobody decided on is enabled if the policy approves it. A decision on one exit route
// applies to the other too. A route that is no longer advertised stays known and enabled,
// because devices restart. Forbidden prefixes are removed from RoutableIPs. A node that
// needs approval serves no routes.
func (n *Node) KeepRoutes(last RouteID, now Time, auto AutoApproval) (changed bool) {
	all, announced := slices.Clone(n.AllRoutes), n.RoutableIPs
	auto.review(all, now)
	if auto.Forbids != nil && slices.ContainsFunc(announced, auto.Forbids) {
		n.RoutableIPs = slices.DeleteFunc(slices.Clone(announced), auto.Forbids)
		if len(n.RoutableIPs) == 0 {
			n.RoutableIPs = nil
		}
	}
	for _, p := range n.RoutableIPs {
		i, ok := slices.BinarySearchFunc(all, p, Route.comparePrefix)
		if !ok {
			last++
			r := Route{ID: last, Prefix: p, CreatedAt: now, UpdatedAt: now}
			if twin := slices.IndexFunc(all, func(o Route) bool { return Exit(o.Prefix) }); Exit(p) && twin >= 0 && all[twin].Decided {
				r.Enabled, r.Decided = all[twin].Enabled, true
			}
			all = slices.Insert(all, i, r)
		}
		if r := &all[i]; !r.Enabled && !r.Decided && auto.Approves(p) {
			r.Enabled, r.ApprovedBy, r.UpdatedAt = true, auto.Version, now
		}
	}
	all = n.forgetRoutes(all)
	var served []netip.Prefix
	for _, r := range all {
		if r.Enabled && !n.NeedsApproval && slices.Contains(n.RoutableIPs, r.Prefix) {
			served = append(served, r.Prefix)
		}
	}
	changed = !slices.Equal(all, n.AllRoutes) || !slices.Equal(served, n.Routes) || len(announced) != len(n.RoutableIPs)
	n.AllRoutes, n.Routes = all, served
	return changed
}

// maxKnownRoutes limits how many routes are kept that a node no longer advertises and
// nobody decided on, because a device could keep advertising new ones.
const maxKnownRoutes = 256

// forgetRoutes removes the oldest routes above maxKnownRoutes that the node no longer
// advertises and nobody decided on.
func (n *Node) forgetRoutes(all []Route) []Route {
	var idle []RouteID
	for _, r := range all {
		if !r.Decided && !slices.Contains(n.RoutableIPs, r.Prefix) {
			idle = append(idle, r.ID)
		}
	}
	excess := len(idle) - maxKnownRoutes
	if excess <= 0 {
		return all
	}
	slices.Sort(idle)
	return slices.DeleteFunc(all, func(r Route) bool {
		_, idles := slices.BinarySearch(idle, r.ID)
		return idles && r.ID <= idle[excess-1]
	})
}

func (r Route) comparePrefix(p netip.Prefix) int { return r.Prefix.Compare(p) }

// RoutersOf returns the nodes that advertise a route that is enabled for them, in no
// particular order.
func (s *Nodes) RoutersOf(p netip.Prefix) []NodeID {
	ids, _ := s.routers.at(p)
	return ids
}

// RedundantRoutes yields the prefixes that RoutersOf returns more than one node for, with these nodes, in no particular order.
func (s *Nodes) RedundantRoutes() iter.Seq2[netip.Prefix, []NodeID] {
	return func(yield func(netip.Prefix, []NodeID) bool) {
		for p, ids := range s.routers.all() {
			if len(ids) > 1 && !yield(p, ids) {
				return
			}
		}
	}
}

// settleRoutes adds events that set the primary router of each prefix that evs may
// affect.
func settleRoutes(before *Snapshot, evs []Event) []Event {
	prefixes, nodes := routesOf(before, evs)
	if len(prefixes) == 0 {
		return evs
	}
	d := before.Edit()
	d.Apply(before.Rev+1, evs...)
	after := d.Snapshot()
	e := election{s: after, changed: map[NodeID]*Node{}}
	for _, p := range prefixes {
		e.elect(p, nodes)
	}
	settled := slices.Clip(evs)
	for _, id := range slices.Sorted(maps.Keys(e.changed)) {
		settled = append(settled, NodePut{Node: e.changed[id]})
	}
	return settled
}

// routesOf returns the prefixes whose primary router evs may change, sorted, and the
// nodes that evs are about.
func routesOf(before *Snapshot, evs []Event) (prefixes []netip.Prefix, nodes []NodeID) {
	add := func(n *Node) {
		for _, p := range slices.Concat(n.Routes, n.Primary) {
			if !Exit(p) {
				prefixes = append(prefixes, p)
			}
		}
	}
	for _, e := range evs {
		var id NodeID
		switch e := e.(type) {
		case NodePut:
			id = e.Node.ID
			add(e.Node)
		case NodeGone:
			id = e.ID
		case Online:
			id = e.ID
		case Offline:
			id = e.ID
		default:
			continue
		}
		nodes = append(nodes, id)
		if n, ok := before.Nodes.Get(id); ok {
			add(n)
		}
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	return slices.Compact(prefixes), nodes
}

// election chooses the primary routers of prefixes.
type election struct {
	s       *Snapshot
	changed map[NodeID]*Node
}

// elect chooses the primary router of a prefix. The current one stays while it can: a
// better preference alone does not replace it, so a router that comes and goes moves the
// prefix once. nodes may include former primary routers that no longer advertise the
// prefix.
func (e *election) elect(p netip.Prefix, nodes []NodeID) {
	best := e.s.Nodes.BestRouter(p, func(*Node) bool { return true })
	for _, id := range slices.Concat(e.s.Nodes.RoutersOf(p), nodes) {
		if n, ok := e.s.Nodes.Get(id); ok {
			e.set(n, p, n == best)
		}
	}
}

// BestRouter returns the best router of a prefix among the nodes for which may is true, or
// nil if there is none.
func (s *Nodes) BestRouter(p netip.Prefix, may func(*Node) bool) (best *Node) {
	for _, id := range s.RoutersOf(p) {
		if n, ok := s.Get(id); ok && may(n) && (best == nil || n.before(best, p)) {
			best = n
		}
	}
	return best
}

// set records whether a node is the primary router of a prefix.
func (e *election) set(n *Node, p netip.Prefix, leads bool) {
	if c, ok := e.changed[n.ID]; ok {
		n = c
	}
	i, has := slices.BinarySearchFunc(n.Primary, p, netip.Prefix.Compare)
	if has == leads {
		return
	}
	c := *n
	c.Net, c.Presence = Net{}, Presence{} // not part of a NodePut
	if leads {
		c.Primary = slices.Insert(slices.Clone(n.Primary), i, p)
	} else if c.Primary = slices.Delete(slices.Clone(n.Primary), i, i+1); len(c.Primary) == 0 {
		c.Primary = nil
	}
	e.changed[n.ID] = &c
}

// before reports whether n is a better router of a prefix than m: by fitness, then
// because it is primary already, then by preference, then by age.
func (n *Node) before(m *Node, p netip.Prefix) bool {
	a, _ := n.Route(p)
	b, _ := m.Route(p)
	return cmp.Or(
		cmp.Compare(n.fitness(), m.fitness()),
		cmp.Compare(count(slices.Contains(n.Primary, p)), count(slices.Contains(m.Primary, p))),
		cmp.Compare(a.Preference, b.Preference),
		cmp.Compare(m.ID, n.ID),
	) > 0
}

// fitness ranks how well a node can serve as a router.
func (n *Node) fitness() int {
	return count(n.Presence.Online && !n.CutOff()) + count(n.Presence.Online && !n.CutOff() && !n.Unhealthy)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
