package control

import (
	"context"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Routes implements the use cases for subnet routes and exit nodes.
type Routes struct{ *core }

// keepRoutes updates the routes of a node that is about to be committed to match what it
// advertises and the policy.
func keepRoutes(w *policy.World, now mesh.Time, n *mesh.Node) (changed bool) {
	return n.KeepRoutes(w.Counters.Route, now, autoApproval(w, n))
}

// autoApproval returns what the policy in force says about the routes of a node. A node
// whose owner or tags changed loses every approval that it would not get now, whichever
// version of the policy gave it.
func autoApproval(w *policy.World, n *mesh.Node) mesh.AutoApproval {
	auto := mesh.AutoApproval{Forbids: forbidden(w), Approves: func(p netip.Prefix) bool { return w.Doc.Approves(w.Snapshot, n, p) }}
	if p, ok := w.Policy(); ok {
		auto.Version = p.Version
	}
	if before, ok := w.Nodes.Get(n.ID); ok && (before.Owner != n.Owner || !slices.Equal(before.Tags, n.Tags)) {
		auto.Withdraws = func(mesh.Route) bool { return true }
	}
	return auto
}

// forbidden returns a function that reports whether a route would take traffic from the
// mesh itself.
func forbidden(w *policy.World) func(netip.Prefix) bool {
	return func(p netip.Prefix) bool {
		_, yes := w.Forbids(p)
		return yes
	}
}

// mayRoute refuses a route that would take traffic from the mesh itself.
func mayRoute(w *policy.World, path string, p netip.Prefix) error {
	if own, yes := w.Forbids(p); yes {
		return refuse(Invalid, path, "%s cannot be a route: it overlaps %s, which the mesh itself uses; use the network behind the router, or 0.0.0.0/0 and ::/0 for an exit node",
			p, own)
	}
	return nil
}

// commit commits a decision and returns its result.
func commit[T any](ctx context.Context, s *core, a mesh.Actor, decide decision[T]) (T, error) {
	return ledger.Commit(ctx, s.ledger, a, decide)
}

// decision is a pure function of the world and the time. It may run several times, so it
// must have no side effects.
type decision[T any] func(w *policy.World, now mesh.Time) (T, []mesh.Event, error)

// routed is a result together with the nodes whose routes may have changed.
type routed[T any] struct {
	result  T
	changes []nodeChange
}

type nodeChange struct{ before, after *mesh.Node }

// Answer returns the Answer of the result.
func (r routed[T]) Answer() string {
	if a, ok := any(r.result).(ledger.Answerer); ok {
		return a.Answer()
	}
	return ""
}

// commitRoutes is like commit, but also logs which routes were enabled or disabled.
func commitRoutes[T any](ctx context.Context, s *core, a mesh.Actor, decide decision[T]) (T, error) {
	out, err := commit(ctx, s, a, func(w *policy.World, now mesh.Time) (out routed[T], evs []mesh.Event, err error) {
		out.result, evs, err = decide(w, now)
		for _, e := range evs {
			if put, ok := e.(mesh.NodePut); ok {
				before, known := w.Nodes.Get(put.Node.ID)
				if !known {
					before = &mesh.Node{}
				}
				out.changes = append(out.changes, nodeChange{before, put.Node})
			}
		}
		return out, evs, err
	})
	for _, c := range out.changes {
		s.logRoutes(a, c.before, c.after)
	}
	return out.result, err
}

// nothing is the result of a decision that has none.
type nothing struct{}

// reapprove returns the route changes for a version that comes into force: routes that it
// approves and nobody decided on are enabled. If it replaces a version on trial, approvals
// that only the trial had given are withdrawn.
func reapprove(w *policy.World, now mesh.Time, p *mesh.Policy, doc *lang.Doc) (evs []mesh.Event) {
	auto := mesh.AutoApproval{Version: p.Version, Forbids: forbidden(w)}
	if before, ok := w.Policy(); ok && before.ConfirmBy != 0 {
		auto.Withdraws = func(r mesh.Route) bool { return r.ApprovedBy == before.Version }
	}
	return keepAllRoutes(w.Snapshot, now, doc, auto, func(*mesh.Node) bool { return true })
}

// renamedOwner returns the route changes that follow from a user's new name or groups. The
// user's nodes are treated as if they had moved to another user, because autoApprovers refer
// to users by name and by group.
func renamedOwner(w *policy.World, now mesh.Time, u *mesh.User) []mesh.Event {
	auto := mesh.AutoApproval{Forbids: forbidden(w), Withdraws: func(mesh.Route) bool { return true }}
	if p, ok := w.Policy(); ok {
		auto.Version = p.Version
	}
	renamed, _ := mesh.Apply(w.Snapshot, w.Rev+1, mesh.UserPut{User: u})
	return keepAllRoutes(renamed, now, w.Doc, auto, func(n *mesh.Node) bool { return n.Owner == u.ID })
}

// keepAllRoutes returns the events that update the routes of nodes to match a policy
// document. of selects the nodes.
func keepAllRoutes(s *mesh.Snapshot, now mesh.Time, doc *lang.Doc, auto mesh.AutoApproval, of func(*mesh.Node) bool) (evs []mesh.Event) {
	last := s.Counters.Route
	for n := range s.Nodes.All() {
		if len(n.RoutableIPs)+len(n.AllRoutes) == 0 || !of(n) {
			continue
		}
		changed := *n
		auto.Approves = func(p netip.Prefix) bool { return doc.Approves(s, n, p) }
		if changed.KeepRoutes(last, now, auto) {
			changed.UpdatedAt = now
			evs = append(evs, mesh.NodePut{Node: &changed})
			for _, r := range changed.AllRoutes {
				last = max(last, r.ID)
			}
		}
	}
	return evs
}

// NodeRoute is a route with its node.
type NodeRoute struct {
	*mesh.Node
	mesh.Route
}

// Announced reports whether the device currently advertises the route.
func (r NodeRoute) Announced() bool { return slices.Contains(r.RoutableIPs, r.Prefix) }

// Primary reports whether peers use the route through this node.
func (r NodeRoute) Primary() bool {
	if mesh.Exit(r.Prefix) {
		return slices.Contains(r.Routes, r.Prefix)
	}
	return slices.Contains(r.Node.Primary, r.Prefix)
}

// RoutesIn returns all routes, sorted by node and prefix.
func RoutesIn(s *mesh.Snapshot) []NodeRoute {
	var list []NodeRoute
	for n := range s.Nodes.All() {
		for _, r := range n.AllRoutes {
			list = append(list, NodeRoute{n, r})
		}
	}
	return list
}

// FindRoute finds a route by its id.
func FindRoute(s *mesh.Snapshot, id mesh.RouteID) (NodeRoute, error) {
	for n := range s.Nodes.All() {
		for _, r := range n.AllRoutes {
			if r.ID == id {
				return NodeRoute{n, r}, nil
			}
		}
	}
	return NodeRoute{}, refuse(NotFound, "route", "unknown route %s; list routes with: fairlead routes list", id)
}

// Enable enables or disables a route. The two exit routes are changed together.
func (s *Routes) Enable(ctx context.Context, a mesh.Actor, id mesh.RouteID, enabled bool, ifRevision string) (NodeRoute, error) {
	return s.change(ctx, a, id, ifRevision, func(w *policy.World, n *mesh.Node, r *mesh.Route, now mesh.Time) error {
		if err := mayRoute(w, "route", r.Prefix); enabled && err != nil {
			return err
		}
		for i := range n.AllRoutes {
			if o := &n.AllRoutes[i]; o.ID == r.ID || mesh.Exit(r.Prefix) && mesh.Exit(o.Prefix) {
				decide(o, enabled, now)
			}
		}
		return nil
	})
}

// decide records a person's decision on a route.
func decide(r *mesh.Route, enabled bool, now mesh.Time) {
	if r.Enabled != enabled || !r.Decided {
		r.Enabled, r.Decided, r.ApprovedBy, r.UpdatedAt = enabled, true, 0, now
	}
}

// Prefer sets the preference of a route: among several routers of a prefix, the one with
// the highest preference becomes primary. The current primary router stays.
func (s *Routes) Prefer(ctx context.Context, a mesh.Actor, id mesh.RouteID, preference int, ifRevision string) (NodeRoute, error) {
	if preference < -maxPreference || preference > maxPreference {
		return NodeRoute{}, refuse(Invalid, "preference", "preference must be a number from %d to %d", -maxPreference, maxPreference)
	}
	return s.change(ctx, a, id, ifRevision, func(_ *policy.World, _ *mesh.Node, r *mesh.Route, now mesh.Time) error {
		if r.Preference != preference {
			r.Preference, r.UpdatedAt = preference, now
		}
		return nil
	})
}

const maxPreference = 1000

// change applies a change to a route, commits it and returns the route.
func (s *Routes) change(ctx context.Context, a mesh.Actor, id mesh.RouteID, ifRevision string,
	change func(w *policy.World, n *mesh.Node, r *mesh.Route, now mesh.Time) error,
) (NodeRoute, error) {
	_, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none nothing, _ []mesh.Event, _ error) {
		found, err := routeAt(w.Snapshot, id, ifRevision)
		if err != nil {
			return none, nil, err
		}
		n := *found.Node
		n.AllRoutes = slices.Clone(n.AllRoutes)
		i := slices.IndexFunc(n.AllRoutes, func(r mesh.Route) bool { return r.ID == id })
		if err := change(w, &n, &n.AllRoutes[i], now); err != nil {
			return none, nil, err
		}
		return none, putRoutes(w, now, found.Node, &n), nil
	})
	if err != nil {
		return NodeRoute{}, err
	}
	return FindRoute(s.ledger.World().Snapshot, id)
}

// putRoutes returns the event for changed routes, or nothing if they did not change.
func putRoutes(w *policy.World, now mesh.Time, before, n *mesh.Node) []mesh.Event {
	keepRoutes(w, now, n)
	if slices.Equal(n.AllRoutes, before.AllRoutes) && slices.Equal(n.Routes, before.Routes) {
		return nil
	}
	n.UpdatedAt = now
	return []mesh.Event{mesh.NodePut{Node: n}}
}

// Delete deletes a route that its device no longer advertises.
func (s *Routes) Delete(ctx context.Context, a mesh.Actor, id mesh.RouteID, ifRevision string) error {
	_, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none nothing, _ []mesh.Event, _ error) {
		found, err := routeAt(w.Snapshot, id, ifRevision)
		if err != nil {
			return none, nil, err
		}
		if found.Announced() {
			return none, nil, refuse(Conflict, "route", "node %s still advertises %s; disable the route instead, or stop advertising it there: tailscale set --advertise-routes=",
				found.Name, found.Prefix)
		}
		n := *found.Node
		n.AllRoutes = slices.DeleteFunc(slices.Clone(n.AllRoutes), func(r mesh.Route) bool { return r.ID == id })
		if len(n.AllRoutes) == 0 {
			n.AllRoutes = nil
		}
		return none, putRoutes(w, now, found.Node, &n), nil
	})
	return err
}

// Approve enables exactly these routes of a node, whether or not it advertises them yet.
// One exit route includes the other.
func (s *Routes) Approve(ctx context.Context, a mesh.Actor, ref string, prefixes []netip.Prefix, ifRevision string) (*mesh.Node, error) {
	wanted, err := wantedRoutes(prefixes)
	if err != nil {
		return nil, err
	}
	id, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (mesh.NodeID, []mesh.Event, error) {
		before, err := nodeAt(w.Snapshot, a, ref, ifRevision)
		if err != nil {
			return 0, nil, err
		}
		for _, p := range wanted {
			if err := mayRoute(w, "routes", p); err != nil {
				return 0, nil, err
			}
		}
		n := *before
		n.AllRoutes = slices.Clone(n.AllRoutes)
		for i := range n.AllRoutes {
			decide(&n.AllRoutes[i], slices.Contains(wanted, n.AllRoutes[i].Prefix), now)
		}
		last := w.Counters.Route
		for _, p := range wanted {
			if _, ok := n.Route(p); !ok {
				last++
				n.AddRoute(mesh.Route{ID: last, Prefix: p, Enabled: true, Decided: true, CreatedAt: now, UpdatedAt: now})
			}
		}
		return before.ID, putRoutes(w, now, before, &n), nil
	})
	if err != nil {
		return nil, err
	}
	n, _ := s.ledger.World().Nodes.Get(id)
	return n, nil
}

func wantedRoutes(prefixes []netip.Prefix) ([]netip.Prefix, error) {
	if len(prefixes) > maxRoutes {
		return nil, refuse(Invalid, "routes", "a node can have at most %d routes", maxRoutes)
	}
	var wanted []netip.Prefix
	for _, p := range prefixes {
		switch {
		case !p.IsValid() || p != p.Masked():
			return nil, refuse(Invalid, "routes", "invalid network %s: host bits are set; use %s", p, p.Masked())
		case mesh.Exit(p):
			wanted = append(wanted, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
		default:
			wanted = append(wanted, p)
		}
	}
	slices.SortFunc(wanted, netip.Prefix.Compare)
	return slices.Compact(wanted), nil
}

// logRoutes logs which routes of a node were enabled or disabled.
func (s *core) logRoutes(a mesh.Actor, before, after *mesh.Node) {
	for _, r := range after.AllRoutes {
		if was, _ := before.Route(r.Prefix); r.Enabled && !was.Enabled {
			s.logFor(a).Info("route enabled", "node", after.ID, "name", after.Name, "route", r.Prefix)
		}
	}
	for _, was := range before.AllRoutes {
		if r, _ := after.Route(was.Prefix); was.Enabled && !r.Enabled {
			s.logFor(a).Info("route disabled", "node", after.ID, "name", after.Name, "route", was.Prefix)
		}
	}
}
