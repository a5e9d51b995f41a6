package webhook

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	outcomeDelivered = "delivered"
	outcomeFailed    = "failed"
	outcomeDead      = "dead"
)

type metrics struct {
	deliveries *prometheus.CounterVec

	mu     sync.Mutex
	oldest map[mesh.WebhookID]mesh.Time // guarded by mu; when the event being delivered happened
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_webhook_deliveries_total", Help: "Webhook delivery attempts by this replica, and events that it gave up on, by outcome.",
		}, []string{"outcome"}),
		oldest: map[mesh.WebhookID]mesh.Time{},
	}
	for _, outcome := range []string{outcomeDelivered, outcomeFailed, outcomeDead} {
		m.deliveries.WithLabelValues(outcome) // exported from the start
	}
	reg.MustRegister(m.deliveries, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_webhook_lag_seconds", Help: "Age of the oldest webhook event that this replica has not delivered yet.",
	}, m.lag))
	return m
}

// waiting sets when the next event for a receiver happened; zero means that there is none.
func (m *metrics) waiting(id mesh.WebhookID, at mesh.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at == 0 {
		delete(m.oldest, id)
	} else {
		m.oldest[id] = at
	}
}

func (m *metrics) lag() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lag time.Duration
	for _, at := range m.oldest {
		lag = max(lag, time.Since(at.Time()))
	}
	return lag.Seconds()
}
