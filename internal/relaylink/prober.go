package relaylink

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/relay"
)

const (
	// probeEvery is how often a relay is probed, and probeAgain how soon after a first failure, which may have been a lost
	// packet.
	probeEvery = 30 * time.Second
	probeAgain = 4 * time.Second
	probeTick  = time.Second
	// maxProbes limits the probes at the same time.
	maxProbes = 16
)

// ProberConfig is the configuration of a Prober. All fields are required.
type ProberConfig struct {
	Relays     *control.Relays
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Prober checks periodically that clients can reach the relays that have joined. Each replica does so for itself: it costs four
// requests per relay and interval, and shows from where a relay cannot be reached.
type Prober struct {
	config  ProberConfig
	slots   chan struct{}
	passed  *prometheus.GaugeVec
	latency *prometheus.GaugeVec
	total   *prometheus.CounterVec

	mu    sync.Mutex
	known map[mesh.RelayID]*probed // guarded by mu
}

// probed is the state of one relay.
type probed struct {
	name     string
	place    mesh.RelayPlace
	due      time.Time
	running  bool
	failures int
}

// NewProber returns a Prober. It probes in Run.
func NewProber(c ProberConfig) *Prober {
	p := &Prober{
		config: c, slots: make(chan struct{}, maxProbes), known: map[mesh.RelayID]*probed{},
		passed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mesh_relay_check_passed", Help: "Whether a relay passed a check of its last probe.",
		}, []string{"relay", "check"}),
		latency: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mesh_relay_latency_seconds", Help: "How long a relay took to respond to the last probe.",
		}, []string{"relay"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_relay_probes_total", Help: "Probes of relays, by whether all checks passed.",
		}, []string{"result"}),
	}
	for _, result := range []string{"passed", "failed"} {
		p.total.WithLabelValues(result) // exported from the start
	}
	unreachable := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_relays_unreachable", Help: "Relays that nodes get, but whose last probes failed.",
	}, p.unreachable)
	c.Registerer.MustRegister(p.passed, p.latency, p.total, unreachable)
	return p
}

func (p *Prober) unreachable() (n float64) {
	for r := range p.config.Ledger.World().Relays.All() {
		if p.config.Relays.Unreachable(r) {
			n++
		}
	}
	return n
}

// Run probes relays until ctx ends, and waits for probes that are under way.
func (p *Prober) Run(ctx context.Context) error {
	var probes sync.WaitGroup
	defer probes.Wait()
	return periodic.Run(ctx, probeTick, func() {
		for id, t := range p.due(time.Now()) {
			select {
			case p.slots <- struct{}{}:
				probes.Go(func() {
					defer func() { <-p.slots }()
					p.probe(ctx, id, t)
				})
			default: // too many are running
				p.finish(id, t, func(s *probed) { s.due = time.Now() })
			}
		}
	})
}

// due returns the relays to probe now, and marks them as running.
func (p *Prober) due(now time.Time) map[mesh.RelayID]mesh.RelayPlace {
	w, list := p.config.Ledger.World(), map[mesh.RelayID]mesh.RelayPlace{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.known {
		if r, ok := w.Relays.Get(id); !ok || !r.Joined() {
			p.forget(s.name)
			delete(p.known, id)
		}
	}
	for r := range w.Relays.All() {
		if !r.Joined() {
			continue
		}
		s := p.known[r.ID]
		if s == nil || s.place != r.Place {
			s = &probed{name: r.Name, place: r.Place, due: now}
			p.known[r.ID] = s
		}
		if !s.running && !now.Before(s.due) {
			s.running = true
			list[r.ID] = r.Place
		}
	}
	return list
}

// forget removes the metrics of a relay.
func (p *Prober) forget(name string) {
	p.passed.DeletePartialMatch(prometheus.Labels{"relay": name})
	p.latency.DeletePartialMatch(prometheus.Labels{"relay": name})
}

// finish ends a probe and calls change, unless the relay is elsewhere now.
func (p *Prober) finish(id mesh.RelayID, place mesh.RelayPlace, change func(*probed)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.known[id]; s != nil && s.place == place {
		s.running = false
		change(s)
	}
}

func (p *Prober) probe(ctx context.Context, id mesh.RelayID, place mesh.RelayPlace) {
	target := relay.Target{URL: place.URL, STUNPort: place.STUNPort, Key: place.Key}
	for _, a := range []netip.Addr{place.IPv4, place.IPv6} {
		if a.IsValid() {
			target.Addrs = append(target.Addrs, a)
		}
	}
	checks := relay.Probe(ctx, target)
	if ctx.Err() != nil {
		return
	}
	result := control.RelayProbe{Place: place}
	for _, c := range checks {
		result.Checks = append(result.Checks, control.RelayCheck{Name: c.Name, Latency: c.Latency, Problem: c.Problem})
	}
	p.finish(id, place, func(s *probed) { p.record(id, s, result) })
}

// record stores and counts a result. It is called with the lock held.
func (p *Prober) record(id mesh.RelayID, s *probed, result control.RelayProbe) {
	before, failed := s.failures, len(result.Failed()) > 0
	outcome := "passed"
	if s.failures, s.due = 0, time.Now().Add(probeEvery); failed {
		outcome, s.failures = "failed", before+1
		if before == 0 {
			s.due = time.Now().Add(probeAgain)
		}
	}
	result.Failures = s.failures
	if !p.config.Relays.Probed(id, result) {
		return
	}
	p.total.WithLabelValues(outcome).Inc()
	p.forget(s.name) // a check that was not made has no value
	for _, c := range result.Checks {
		value := 1.0
		if c.Problem != "" {
			value = 0
		}
		p.passed.WithLabelValues(s.name, c.Name).Set(value)
	}
	if result.Latency() > 0 {
		p.latency.WithLabelValues(s.name).Set(result.Latency().Seconds())
	}
	switch {
	case before == 1 && failed:
		p.config.Log.Warn("relay fails checks", "relay", s.name, "problems", problems(result))
	case before > 1 && !failed:
		p.config.Log.Info("relay passes all checks again", "relay", s.name)
	}
}

func problems(p control.RelayProbe) string {
	var list []string
	for _, c := range p.Checks {
		if c.Problem != "" {
			list = append(list, c.Name+": "+c.Problem)
		}
	}
	return strings.Join(list, "; ")
}
