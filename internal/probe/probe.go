// Package probe checks whether routers that another node could replace still respond: a
// device can be cut off long before its connection ends.
package probe

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// After this many misses in a row a router counts as unhealthy.
	misses = 2
	tick   = 500 * time.Millisecond
)

// Config configures a Prober. All fields except Interval are required.
type Config struct {
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Interval is how often a router is probed; zero means never. It must respond within
	// Timeout.
	Interval, Timeout time.Duration
	// Ask makes a node send a token to Answered. It must not block, and returns
	// false if this replica does not have the node's stream.
	Ask func(node mesh.NodeID, token string) bool
}

// Prober sends requests to the routers that have their stream on this replica and that
// another node could replace.
type Prober struct {
	ledger *ledger.Ledger
	log    *slog.Logger
	ask    func(mesh.NodeID, string) bool
	probes *prometheus.CounterVec

	interval, timeout time.Duration

	mu     sync.Mutex
	asked  map[mesh.NodeID]*probe   // guarded by mu
	tokens map[string]mesh.NodeID   // guarded by mu
	heard  map[mesh.NodeID]struct{} // guarded by mu; responded since the last check
}

// probe is the state of one router.
type probe struct {
	token  string // the outstanding token; empty if there is none
	sent   time.Time
	next   time.Time
	misses int
}

// New returns a prober. It sends requests in Run.
func New(c Config) *Prober {
	p := &Prober{
		ledger: c.Ledger, log: c.Log, ask: c.Ask, interval: c.Interval, timeout: c.Timeout, asked: map[mesh.NodeID]*probe{}, tokens: map[string]mesh.NodeID{}, heard: map[mesh.NodeID]struct{}{},
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_route_probes_total", Help: "Probes of redundant routers, by whether they answered in time.",
		}, []string{"result"}),
	}
	for _, result := range []string{"answered", "silent"} {
		p.probes.WithLabelValues(result) // exported from the start
	}
	c.Registerer.MustRegister(p.probes)
	return p
}

// Answered records that a machine responded with a token.
func (p *Prober) Answered(token string, machine key.MachinePublic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := p.tokens[token]
	if !ok {
		return
	}
	if n, ok := p.ledger.World().Nodes.Get(id); !ok || n.MachineKey != machine {
		return
	}
	delete(p.tokens, token)
	if a := p.asked[id]; a != nil && a.token == token {
		a.token, a.misses, a.next = "", 0, a.sent.Add(p.interval)
		p.heard[id] = struct{}{}
	}
}

// Run probes routers until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	return periodic.Run(ctx, tick, func() { p.Look(ctx, time.Now()) })
}

// Look probes the routers that are due at the given time and commits changes of their
// health. Run calls it every tick.
func (p *Prober) Look(ctx context.Context, now time.Time) {
	for id, healthy := range p.look(now) {
		p.judge(ctx, id, healthy)
	}
}

// look probes the routers that are due, and returns those whose health changed.
func (p *Prober) look(now time.Time) (verdicts map[mesh.NodeID]bool) {
	w := p.ledger.World()
	verdicts = map[mesh.NodeID]bool{}
	if p.interval == 0 { // routers that an earlier configuration found unhealthy must not stay so
		for n := range w.Nodes.All() {
			if n.Unhealthy {
				verdicts[n.ID] = true
			}
		}
		return verdicts
	}
	routers := replaceable(w.Snapshot, string(p.ledger.Cluster().Self().ID))
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.heard {
		p.probes.WithLabelValues("answered").Inc()
		if n, ok := w.Nodes.Get(id); ok && n.Unhealthy {
			verdicts[id] = true
		}
	}
	clear(p.heard)
	for id, a := range p.asked {
		if _, ok := routers[id]; !ok {
			delete(p.tokens, a.token)
			delete(p.asked, id)
		}
	}
	for id := range routers {
		a := p.asked[id]
		if a == nil {
			a = &probe{}
			p.asked[id] = a
		}
		if a.token != "" && now.Sub(a.sent) >= p.timeout {
			p.probes.WithLabelValues("silent").Inc()
			delete(p.tokens, a.token)
			a.token, a.next, a.misses = "", now, a.misses+1
			if n, ok := w.Nodes.Get(id); ok && !n.Unhealthy && a.misses >= misses {
				verdicts[id] = false
			}
		}
		if a.token == "" && !now.Before(a.next) {
			a.token, a.sent = rand.Text(), now
			p.tokens[a.token] = id
			if !p.ask(id, a.token) { // the stream ended a moment ago
				delete(p.tokens, a.token)
				a.token, a.next = "", now.Add(p.interval)
			}
		}
	}
	return verdicts
}

// replaceable returns the nodes that have their stream on a replica and a
// route, other than an exit route, that another node has too.
func replaceable(s *mesh.Snapshot, replica string) map[mesh.NodeID]struct{} {
	found := map[mesh.NodeID]struct{}{}
	for p, routers := range s.Nodes.RedundantRoutes() {
		if mesh.Exit(p) {
			continue
		}
		for _, id := range routers {
			if n, ok := s.Nodes.Get(id); ok && n.Presence.Online && n.Presence.Replica == replica && !n.CutOff() {
				found[id] = struct{}{}
			}
		}
	}
	return found
}

// judge commits whether a router is healthy, which may move its routes to another one.
func (p *Prober) judge(ctx context.Context, id mesh.NodeID, healthy bool) {
	changed := false
	_, err := p.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
		n, ok := w.Nodes.Get(id)
		if !ok || n.Unhealthy == !healthy {
			return nil, nil
		}
		c := *n
		c.Unhealthy, changed = !healthy, true // clients of the API do not see this field, so UpdatedAt is unchanged
		return []mesh.Event{mesh.NodePut{Node: &c}}, nil
	})
	switch {
	case err != nil && ctx.Err() == nil:
		p.log.Error("router state not saved, retrying", "node", id, "error", err)
	case changed && healthy:
		p.log.Info("router recovered", "node", id)
	case changed:
		p.log.Warn("router does not answer, failing over its routes", "node", id)
	}
}
