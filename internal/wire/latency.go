package wire

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"
)

// latency observes the latency of nodes to their home relay. Each node counts once a minute, so that a node
// which reports often does not distort the result.
type latency struct {
	seconds prometheus.Histogram

	mu     sync.Mutex
	minute int64                       // guarded by mu; the current minute
	heard  map[key.NodePublic]struct{} // guarded by mu; the nodes observed within that minute
}

func newLatency(reg prometheus.Registerer) *latency {
	l := &latency{heard: map[key.NodePublic]struct{}{}, seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "mesh_connection_latency_seconds", Help: "Latency to the home relay, as reported by nodes.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	})}
	reg.MustRegister(l.seconds)
	return l
}

// observe counts the latency that a registered node reports.
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
