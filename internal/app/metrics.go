package app

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func metricsHandler(reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	return mux
}

// relayMetrics are zero: this replica is no relay. They exist so that
// dashboards and alerts that name them work on every replica.
func relayMetrics() []prometheus.Collector {
	counter := func(name, help string) prometheus.Collector {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return []prometheus.Collector{
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "mesh_derp_connections_active", Help: "Open connections of relay clients."}),
		counter("mesh_network_bytes_received_total", "Packet bytes that the relay took from clients."),
		counter("mesh_network_bytes_sent_total", "Packet bytes that the relay delivered to clients."),
		prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_connection_latency_seconds", Help: "Latency that nodes report to their home relay.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
}
