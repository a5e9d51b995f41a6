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

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// How often reports of one node are committed on this replica. A client that roams
// changes its endpoints a few times within a minute, and its description hardly ever.
// What comes faster is merged and committed later. Only a description leaves a row in
// the audit, so its pace bounds what a node can add to it.
const (
	netBurst, netEvery   = 60, time.Second
	hostBurst, hostEvery = 30, 5 * time.Minute

	lateLook = 500 * time.Millisecond // how long what is due may wait
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

// take takes one of burst, if something is left.
func (b *bucket) take(now time.Time, burst float64, every time.Duration) bool {
	if b.refill(now, every); b.used+1 > burst {
		return false
	}
	b.used++
	return true
}

// reporter is what is kept of a node that reported lately.
type reporter struct {
	net, host bucket
	// late is what waits to be committed; nil when nothing does.
	late  *Report
	actor mesh.Actor
}

// lateReports bounds how often each node makes this replica commit.
type lateReports struct {
	mu    sync.Mutex
	nodes map[mesh.NodeID]*reporter // guarded by mu; those without an entry have their whole allowance
}

// merged is r, and of an earlier report what r does not say.
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

// withLate adds to a report what still waits of earlier ones.
func (l *lateReports) withLate(id mesh.NodeID, r Report) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.nodes[id]; ok {
		return r.merged(n.late)
	}
	return r
}

// settled says that nothing of a node waits any more.
func (l *lateReports) settled(id mesh.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.nodes[id]; ok {
		n.late = nil
	}
}

// parts says which parts of a node a report changes.
type parts struct{ net, host bool }

func partsOf(evs []mesh.Event) (p parts) {
	for _, e := range evs {
		if _, ok := e.(mesh.NodePut); ok {
			p.host = true
		} else {
			p.net = true
		}
	}
	return p
}

// only is r without the parts that p does not have.
func (r Report) only(p parts) Report {
	if !p.host {
		r.Host, r.CapVersion = nil, 0
	}
	if !p.net {
		r.Endpoints, r.DiscoKey, r.HomeRelay, r.facts = nil, key.DiscoPublic{}, 0, nil
	}
	return r
}

// admit takes what a report needs from the allowance of its node. It returns the part
// that is committed now, if there is one, and whether the rest waits.
func (l *lateReports) admit(id mesh.NodeID, a mesh.Actor, now time.Time, r Report, changes parts) (part Report, some, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok {
		n = &reporter{net: bucket{at: now}, host: bucket{at: now}}
		if l.nodes == nil {
			l.nodes = map[mesh.NodeID]*reporter{}
		}
		l.nodes[id] = n
	}
	may := parts{net: changes.net && n.net.take(now, netBurst, netEvery), host: changes.host && n.host.take(now, hostBurst, hostEvery)}
	rest := parts{net: changes.net && !may.net, host: changes.host && !may.host}
	n.late, n.actor = nil, a
	if waits = rest.net || rest.host; waits {
		late := r.only(rest)
		n.late = &late
	}
	return r.only(may), may.net || may.host, waits
}

// again keeps a late report that could not be committed. What the node has said since
// counts.
func (l *lateReports) again(id mesh.NodeID, r Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, ok := l.nodes[id]; ok {
		if n.late != nil {
			r = n.late.merged(&r)
		}
		n.late = &r
	}
}

// waiting returns the nodes of which something waits, and forgets those that have
// their whole allowance.
func (l *lateReports) waiting(now time.Time) (ids []mesh.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.nodes, func(id mesh.NodeID, n *reporter) bool {
		net, host := n.net.refill(now, netEvery), n.host.refill(now, hostEvery)
		if n.late != nil {
			ids = append(ids, id)
		}
		return n.late == nil && net && host
	})
	slices.Sort(ids)
	return ids
}

// take returns what waits of a node.
func (l *lateReports) take(id mesh.NodeID) (Report, mesh.Actor, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nodes[id]
	if !ok || n.late == nil {
		return Report{}, mesh.Actor{}, false
	}
	return *n.late, n.actor, true
}

// SaveReports commits reports that came too fast, when their nodes may commit again,
// until ctx ends.
func (s *Service) SaveReports(ctx context.Context) error {
	tick := time.NewTicker(lateLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, id := range s.late.waiting(time.Now()) {
			if err := s.saveReport(ctx, id); err != nil {
				s.log.Debug("a late report waits for the database", "node", id, "error", err)
			}
		}
	}
}

// saveReport commits what waits of a node, as far as it may.
func (s *Service) saveReport(ctx context.Context, id mesh.NodeID) error {
	r, a, ok := s.late.take(id)
	if !ok {
		return nil
	}
	part, some, _, err := s.admitReport(a, id, r)
	if err != nil || !some {
		return nil //nolint:nilerr // the node is gone, or has another key
	}
	return s.commitLate(ctx, a, id, part)
}

// commitLate commits a late report, unless the node has gone to another replica, which
// may have heard something newer.
func (s *Service) commitLate(ctx context.Context, a mesh.Actor, id mesh.NodeID, r Report) error {
	self := string(s.ledger.Self().ID)
	err := s.commitRoutes(ctx, a, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if n, ok := w.Node(id); ok && n.Presence.Online && n.Presence.Replica != self {
			return nil, nil
		}
		return decideReport(w, now, r)
	})
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		s.late.again(id, r)
		return err
	}
	return nil
}

// SaveAllReports commits what waits for its time, before the server stops.
func (s *Service) SaveAllReports(ctx context.Context) error {
	for _, id := range s.late.waiting(time.Now()) {
		if r, a, ok := s.late.take(id); ok {
			if err := s.commitLate(ctx, a, id, r); err != nil {
				return err
			}
		}
	}
	return nil
}
