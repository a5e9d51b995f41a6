package app

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// metricsHandler returns the handler for metrics. It also registers metrics about the server as a whole.
func (s *service) metricsHandler() http.Handler {
	s.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_build_info", Help: "Always 1, with the version of the binary as a label.", ConstLabels: prometheus.Labels{"version": s.Build.Version},
		}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mesh_tls_certificate_expiry_timestamp_seconds", Help: "Expiry of the TLS certificate in use, as a Unix time in seconds; 0 without a certificate.",
		}, s.certificateExpiry),
		&healthMetrics{
			health:   s.health,
			ready:    s.ready,
			isReady:  prometheus.NewDesc("mesh_ready", "1 while /ready passes, 0 while it fails.", nil, nil),
			healthy:  prometheus.NewDesc("mesh_healthy", "1 while /health passes, 0 while it fails.", nil, nil),
			warnings: prometheus.NewDesc("mesh_health_warnings", "Warnings reported by /health, by check.", []string{"check"}, nil),
		},
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	return mux
}

// healthMetrics exports the result of /health as metrics.
type healthMetrics struct {
	health, ready              func() openapi.Health
	healthy, isReady, warnings *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (m *healthMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.healthy
	ch <- m.isReady
	ch <- m.warnings
}

// Collect implements prometheus.Collector.
func (m *healthMetrics) Collect(ch chan<- prometheus.Metric) {
	h := m.health()
	passes := func(h openapi.Health) float64 {
		if h.Status == openapi.HealthStatusPass {
			return 1
		}
		return 0
	}
	ch <- prometheus.MustNewConstMetric(m.healthy, prometheus.GaugeValue, passes(h))
	ch <- prometheus.MustNewConstMetric(m.isReady, prometheus.GaugeValue, passes(m.ready()))
	// List every part, so that each has a value even if it is zero.
	warnings := map[string]float64{checkDatabase: 0, checkClock: 0, checkRelay: 0, checkPolicy: 0, checkReplicas: 0, checkConns: 0, checkCert: 0, checkIdentity: 0}
	for check, found := range h.Checks {
		for _, c := range found {
			if c.Status == openapi.HealthCheckStatusWarn {
				warnings[check]++
			}
		}
	}
	for check, n := range warnings {
		ch <- prometheus.MustNewConstMetric(m.warnings, prometheus.GaugeValue, n, check)
	}
}
