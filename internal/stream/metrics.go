package stream

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	full, delta, alive prometheus.Counter
	bytes              prometheus.Counter
	checks, violations prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, h *Hub) *metrics {
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_stream_messages_total", Help: "Messages sent to nodes, by kind: full, delta or keepalive.",
	}, []string{"kind"})
	m := &metrics{
		full: messages.WithLabelValues("full"), delta: messages.WithLabelValues("delta"), alive: messages.WithLabelValues("keepalive"),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "mesh_stream_sent_bytes_total", Help: "Bytes of messages sent to nodes."}),
		checks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_stream_checks_total",
			Help: "Sent messages that were checked against a newly rendered map.",
		}),
		violations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_stream_check_failures_total", Help: "Checked messages that differed from a newly rendered map. Must stay zero.",
		}),
	}
	reg.MustRegister(messages, m.bytes, m.checks, m.violations,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_streams_open", Help: "Open map streams on this replica."},
			func() float64 { return float64(h.Count()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_stream_worlds_pinned", Help: "Number of network revisions that open streams are at; 1 if all are up to date.",
		}, func() float64 { return float64(h.worlds()) }))
	return m
}

// rev returns the revision that a stream has reached. h.mu must be held.
func (h *Hub) rev(s *session) int64 {
	if rev := s.sending.Load(); rev != 0 {
		return rev
	}
	if behind := s.behind.Load(); behind != nil {
		return int64(behind.scene.Rev)
	}
	return int64(h.at.scene.Rev)
}

func (h *Hub) worlds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	revs := map[int64]bool{}
	for _, s := range h.open {
		revs[h.rev(s)] = true
	}
	return len(revs)
}
