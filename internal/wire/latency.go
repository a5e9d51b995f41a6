package wire

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"
)

// latency observes how far nodes are from their home relay: each once a minute,
// so that a node which reports often does not count for more.
type latency struct {
	seconds prometheus.Histogram

	mu     sync.Mutex
	minute int64                       // guarded by mu
	heard  map[key.NodePublic]struct{} // guarded by mu; within that minute
}

func newLatency(reg prometheus.Registerer) *latency {
	l := &latency{heard: map[key.NodePublic]struct{}{}, seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "mesh_connection_latency_seconds", Help: "Latency that nodes report to their home relay.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	})}
	reg.MustRegister(l.seconds)
	return l
}

// observe counts what a registered node says.
func (l *latency) observe(node key.NodePublic, seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := time.Now().Unix() / 60; minute != l.minute {
		l.minute = minute
		clear(l.heard)
	}
	if _, ok := l.heard[node]; !ok {
		l.heard[node] = struct{}{}
		l.seconds.Observe(seconds)
	}
}
