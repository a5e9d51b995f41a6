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

// How often reports of one node are committed on this replica. A client that roams
// changes its endpoints a few times within a minute, and its description hardly ever;
// routers may announce and withdraw routes by script. What comes faster is merged and
// committed later. Descriptions and routes leave a row in the audit, so their pace
// bounds what a node can add to it. A row is larger the more routes the node has, and
// costs more of the allowance.
const (
	netBurst, netEvery       = 60, time.Second
	hostBurst, hostEvery     = 30, 5 * time.Minute
	routesBurst, routesEvery = 30, 10 * time.Second
	routesPerCost            = 16

	lateLook = 500 * time.Millisecond // how late a due report may be committed
)

// bucket is an allowance that refills. The zero value is full.
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

// take takes cost of burst, if that much is left.
func (b *bucket) take(now time.Time, cost, burst float64, every time.Duration) bool {
	if b.refill(now, every); b.used+cost > burst {
		return false
	}
	b.used += cost
	return true
}

// refund gives back what was taken.
func (b *bucket) refund(cost float64) { b.used = max(0, b.used-cost) }

// reporter is what is kept of a node that reported lately.
type reporter struct {
	net, host, routes bucket
	// late is what the node said that is not known to be committed; nil when all is.
	late *Report
	// said counts the reports that are merged in late.
	said  int
	actor mesh.Actor
	busy  int // how many are committing it
}

// lateReports limits how often each node makes this replica commit.
type lateReports struct {
	mu    sync.Mutex
	nodes map[mesh.NodeID]*reporter // guarded by mu; those without an entry have their whole allowance
}

// merged returns r, completed with parts of an earlier report that r lacks.
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

// add keeps a report until it is committed, with what still waits of earlier ones.
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
	n.said++
}

// latest returns what waits of a node, and how much the node had said by then.
func (l *lateReports) latest(id mesh.NodeID) (r Report, a mesh.Actor, said int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok || n.late == nil {
		return Report{}, mesh.Actor{}, 0, false
	}
	return *n.late, n.actor, n.said, true
}

// committed says that only rest still waits of what the node had said by then. If it has
// said more since, all of it waits, and what is committed changes nothing.
func (l *lateReports) committed(id mesh.NodeID, said int, rest parts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok || n.late == nil || n.said != said {
		return
	}
	n.late = n.late.only(rest)
}

// parts says which parts of a node a report changes. Routes is what their change
// costs, and zero when they stay.
type parts struct {
	net, host bool
	routes    float64
}

func (p parts) any() bool { return p != parts{} }

// without is p without the parts of o.
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

// only is r without what p does not need, and nil when that is nothing.
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

// within is h as far as p allows it, and else what n is.
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

// admit takes what changes need from the allowance of a node and returns those that
// may be committed now. If there are some, done must be called.
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

// done ends a commit. One that the database could not take costs nothing.
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

// waiting returns the nodes of which something waits that nobody commits, and forgets
// those that have their whole allowance.
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

// SaveReports commits delayed reports when their nodes may commit again, until ctx
// ends.
func (s *Clients) SaveReports(ctx context.Context) error {
	return periodic.Run(ctx, lateLook, func() {
		for _, id := range s.late.waiting(time.Now()) {
			var refusal *Refusal // the node is gone, or has another key
			if _, err := s.saveReport(ctx, id, s.dropIfMoved(id)); err != nil && !errors.As(err, &refusal) {
				s.log.Debug("a late report waits for the database", "node", id, "error", err)
			}
		}
	})
}

// saveReport commits what a node said, as far as its pace allows, unless drop says that
// it no longer counts. It returns whether some of it waits.
func (s *Clients) saveReport(ctx context.Context, id mesh.NodeID, drop func(*policy.World) bool) (waits bool, err error) {
	r, a, said, ok := s.late.latest(id)
	if !ok {
		return false, nil
	}
	w := s.ledger.World()
	evs, err := decideReport(w, s.ledger.Now(), r)
	n, there := w.Nodes.ByKey(r.NodeKey)
	if err != nil || len(evs) == 0 || !there {
		s.late.committed(id, said, parts{})
		return false, err
	}
	changes := partsOf(n, evs)
	may := s.late.admit(id, time.Now(), changes)
	rest := changes.without(may)
	if may.any() {
		err = s.commitReport(ctx, a, id, may, drop)
		s.late.done(id, may, err)
		if err == nil {
			s.late.committed(id, said, rest)
		}
	}
	return rest.any(), err
}

// commitReport commits the parts of what a node said that may be. That is what it has
// said by the time of the commit: an older report never follows a newer one.
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
		s.observations.seen.saved([]*mesh.Facts{facts}, nil)
	}
	return err
}

// dropIfMoved drops what a node said if it has gone to another replica, which may
// have heard something newer.
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
		_, a, said, ok := s.late.latest(id)
		if !ok {
			continue
		}
		var refusal *Refusal
		err := s.commitReport(ctx, a, id, parts{net: true, host: true, routes: 1}, s.dropIfMoved(id))
		if err != nil && !errors.As(err, &refusal) {
			return err
		}
		s.late.committed(id, said, parts{})
	}
	return nil
}
