package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// How often reports of one node are committed on this replica. A client that roams changes its
// endpoints a few times within a minute, and its description hardly ever. Routers may advertise
// and withdraw routes by script. Reports that arrive faster are merged and committed later. Each
// change of a description or of routes adds a row to the audit log, so these limits also bound
// how fast a node can grow the log. The row of a node with many routes is larger and costs more
// of the allowance.
const (
	netBurst, netEvery       = 60, time.Second
	hostBurst, hostEvery     = 30, 5 * time.Minute
	routesBurst, routesEvery = 30, 10 * time.Second
	routesPerCost            = 16

	lateInterval = 500 * time.Millisecond // how late a due report may be committed
)

// bucket is a token bucket. The zero value is full.
type bucket struct {
	used float64
	at   time.Time
}

// refill brings the bucket up to date and reports whether it is full.
func (b *bucket) refill(now time.Time, every time.Duration) (full bool) {
	b.used = max(0, b.used-now.Sub(b.at).Seconds()/every.Seconds())
	b.at = now
	return b.used == 0
}

// take takes cost from a bucket of size burst, if that much is left.
func (b *bucket) take(now time.Time, cost, burst float64, every time.Duration) bool {
	if b.refill(now, every); b.used+cost > burst {
		return false
	}
	b.used += cost
	return true
}

// refund puts back what was taken.
func (b *bucket) refund(cost float64) { b.used = max(0, b.used-cost) }

// reporter is the state kept for a node that has reported recently.
type reporter struct {
	net, host, routes bucket
	// late holds the parts of reports that may not have been committed yet; nil if there
	// are none.
	late *Report
	// reports counts the reports that were merged into late.
	reports int
	actor   mesh.Actor
	busy    int // number of commits for the node that are in progress
}

// lateReports limits how often each node makes this replica commit.
type lateReports struct {
	mu    sync.Mutex
	nodes map[mesh.NodeID]*reporter // guarded by mu; a node without an entry has its full allowance
}

// merged returns r, completed with the parts of an earlier report that r lacks.
func (r Report) merged(before *Report) Report {
	if before == nil || before.NodeKey != r.NodeKey || before.MachineKey != r.MachineKey {
		return r
	}
	r.Host = cmp.Or(r.Host, before.Host)
	r.CapVersion = cmp.Or(r.CapVersion, before.CapVersion)
	r.HomeRelay = cmp.Or(r.HomeRelay, before.HomeRelay)
	r.DiscoKey = cmp.Or(r.DiscoKey, before.DiscoKey)
	if len(r.Endpoints) == 0 {
		r.Endpoints = before.Endpoints
	}
	return r
}

// add merges a report into the uncommitted report of a node.
func (l *lateReports) add(id mesh.NodeID, a mesh.Actor, now time.Time, r Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok {
		full := bucket{at: now}
		n = &reporter{net: full, host: full, routes: full}
		if l.nodes == nil {
			l.nodes = map[mesh.NodeID]*reporter{}
		}
		l.nodes[id] = n
	}
	r = r.merged(n.late)
	n.late, n.actor = &r, a
	n.reports++
}

// latest returns the uncommitted report of a node, and how many reports were merged into
// it.
func (l *lateReports) latest(id mesh.NodeID) (r Report, a mesh.Actor, reports int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok || n.late == nil {
		return Report{}, mesh.Actor{}, 0, false
	}
	return *n.late, n.actor, n.reports, true
}

// committed records that the given number of reports were committed, except for the parts in
// rest. If the node has reported more since, everything stays: committing it again changes
// nothing.
func (l *lateReports) committed(id mesh.NodeID, reports int, rest parts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok || n.late == nil || n.reports != reports {
		return
	}
	n.late = n.late.only(rest)
}

// parts says which parts of a node a report changes. routes is the cost of changing the routes,
// and zero if they stay.
type parts struct {
	net, host bool
	routes    float64
}

func (p parts) any() bool { return p != parts{} }

// without returns p without the parts of o.
func (p parts) without(o parts) parts {
	if o.routes > 0 {
		p.routes = 0
	}
	return parts{net: p.net && !o.net, host: p.host && !o.host, routes: p.routes}
}

func partsOf(n *mesh.Node, evs []mesh.Event) (p parts) {
	for _, e := range evs {
		put, ok := e.(mesh.NodePut)
		if !ok {
			p.net = true
			continue
		}
		before, after := hostOf(n), hostOf(put.Node)
		if !slices.Equal(before.RoutableIPs, after.RoutableIPs) {
			p.routes = min(routesBurst, float64(1+len(put.Node.AllRoutes)/routesPerCost))
			after.RoutableIPs = before.RoutableIPs
		}
		p.host = !before.equal(after) || n.CapVersion != put.Node.CapVersion
	}
	return p
}

// only returns r reduced to the parts p, or nil if there are none.
func (r Report) only(p parts) *Report {
	if !p.any() {
		return nil
	}
	if !p.host {
		r.CapVersion = 0
	}
	if !p.host && p.routes == 0 {
		r.Host = nil
	}
	if !p.net {
		r.Endpoints, r.DiscoKey, r.HomeRelay, r.facts = nil, key.DiscoPublic{}, 0, nil
	}
	return &r
}

// within returns h with the parts that p does not contain replaced by those of n.
func (h Host) within(p parts, n *mesh.Node) Host {
	routes := h.RoutableIPs
	if !p.host {
		h = hostOf(n)
	}
	h.RoutableIPs = routes
	if p.routes == 0 {
		h.RoutableIPs = n.RoutableIPs
	}
	return h
}

// admit charges changes to the allowance of a node and returns those that may be committed
// now. If there are any, done must be called.
func (l *lateReports) admit(id mesh.NodeID, now time.Time, changes parts) (may parts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok {
		return parts{}
	}
	may.net = changes.net && n.net.take(now, 1, netBurst, netEvery)
	may.host = changes.host && n.host.take(now, 1, hostBurst, hostEvery)
	if changes.routes > 0 && n.routes.take(now, changes.routes, routesBurst, routesEvery) {
		may.routes = changes.routes
	}
	if may.any() {
		n.busy++
	}
	return may
}

// done records that a commit has ended. If the database was unavailable, it refunds the
// charge.
func (l *lateReports) done(id mesh.NodeID, may parts, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok {
		return
	}
	n.busy--
	if !errors.Is(err, ledger.ErrUnavailable) {
		return
	}
	n.routes.refund(may.routes)
	if may.net {
		n.net.refund(1)
	}
	if may.host {
		n.host.refund(1)
	}
}

// waiting returns the nodes that have something to commit and no commit in progress. It
// removes the entries of nodes that have nothing to commit and a full allowance.
func (l *lateReports) waiting(now time.Time) (ids []mesh.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.nodes, func(id mesh.NodeID, n *reporter) bool {
		net, host, routes := n.net.refill(now, netEvery), n.host.refill(now, hostEvery), n.routes.refill(now, routesEvery)
		if n.late != nil && n.busy == 0 {
			ids = append(ids, id)
		}
		return n.late == nil && n.busy == 0 && net && host && routes
	})
	slices.Sort(ids)
	return ids
}

// SaveReports commits delayed reports as soon as the limits of their nodes allow it, until
// ctx ends.
func (s *Clients) SaveReports(ctx context.Context) error {
	return periodic.Run(ctx, lateInterval, func() {
		for _, id := range s.late.waiting(time.Now()) {
			var refusal *Refusal // the node is gone, or has another key
			if _, err := s.saveReport(ctx, id, s.dropIfMoved(id)); err != nil && !errors.As(err, &refusal) {
				s.log.Debug("delayed node report not saved, retrying", "node", id, "error", err)
			}
		}
	})
}

// saveReport commits what a node reported, as far as its limits allow, unless drop says that it
// is outdated. It reports whether some of it is still waiting.
func (s *Clients) saveReport(ctx context.Context, id mesh.NodeID, drop func(*policy.World) bool) (waits bool, err error) {
	r, a, reports, ok := s.late.latest(id)
	if !ok {
		return false, nil
	}
	w := s.ledger.World()
	evs, err := decideReport(w, s.ledger.Now(), r)
	n, there := w.Nodes.ByKey(r.NodeKey)
	if err != nil || len(evs) == 0 || !there {
		s.late.committed(id, reports, parts{})
		return false, err
	}
	changes := partsOf(n, evs)
	may := s.late.admit(id, time.Now(), changes)
	rest := changes.without(may)
	if may.any() {
		err = s.commitReport(ctx, a, id, may, drop)
		s.late.done(id, may, err)
		if err == nil {
			s.late.committed(id, reports, rest)
		}
	}
	return rest.any(), err
}

// commitReport commits the parts in may of what a node has reported. It uses the newest report
// at the time of the commit, so that an older report never follows a newer one.
func (s *Clients) commitReport(ctx context.Context, a mesh.Actor, id mesh.NodeID, may parts, drop func(*policy.World) bool) error {
	facts, err := commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Facts, []mesh.Event, error) {
		latest, _, _, ok := s.late.latest(id)
		if !ok || drop(w) {
			return nil, nil, nil
		}
		r := latest.only(may)
		if n, ok := w.Nodes.ByKey(r.NodeKey); ok && r.Host != nil {
			h := r.Host.within(may, n)
			r.Host = &h
		}
		evs, err := decideReport(w, now, *r)
		return r.facts, evs, err
	})
	if err == nil && facts != nil {
		s.observations.seen.saved(observed{facts: []*mesh.Facts{facts}})
	}
	return err
}

// dropIfMoved returns a function that reports whether the reports of a node are outdated:
// it is now connected to another replica, which may have received something newer.
func (s *Clients) dropIfMoved(id mesh.NodeID) func(*policy.World) bool {
	self := string(s.ledger.Cluster().Self().ID)
	return func(w *policy.World) bool {
		n, ok := w.Nodes.Get(id)
		return ok && n.Presence.Online && n.Presence.Replica != self
	}
}

// SaveAllReports commits all waiting reports before the server stops.
func (s *Clients) SaveAllReports(ctx context.Context) error {
	for _, id := range s.late.waiting(time.Now()) {
		_, a, reports, ok := s.late.latest(id)
		if !ok {
			continue
		}
		var refusal *Refusal
		err := s.commitReport(ctx, a, id, parts{net: true, host: true, routes: 1}, s.dropIfMoved(id))
		if err != nil && !errors.As(err, &refusal) {
			return err
		}
		s.late.committed(id, reports, parts{})
	}
	return nil
}
