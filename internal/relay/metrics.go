package relay

import (
	"expvar"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/derp/derpserver"
)

// counts holds the counters that the DERP server maintains itself.
type counts struct{ connections, received, sent func() float64 }

func countsOf(s *derpserver.Server) (counts, error) {
	var err error
	vars, _ := s.ExpVar(false).(interface{ Get(string) expvar.Var })
	number := func(name string) func() float64 {
		if vars != nil {
			if v, ok := vars.Get(name).(*expvar.Int); ok {
				return func() float64 { return float64(v.Value()) }
			}
		}
		err = fmt.Errorf("the DERP server has no metric %q: build with the version of tailscale.com in go.mod", name)
		return nil
	}
	c := counts{number("gauge_current_connections"), number("bytes_received"), number("bytes_sent")}
	return c, err
}

// RegisterZero registers the metrics of a Server in a process without a relay.
func RegisterZero(reg prometheus.Registerer) error {
	zero := func() float64 { return 0 }
	_, err := register(reg, counts{zero, zero, zero})
	return err
}

func register(reg prometheus.Registerer, c counts) (refused prometheus.Counter, err error) {
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	refused = prometheus.NewCounter(counter("mesh_relay_refusals_total", "Connections that the relay rejected because their key does not belong to a node."))
	for _, m := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_derp_connections_active", Help: "Open relay client connections."}, c.connections),
		prometheus.NewCounterFunc(counter("mesh_network_bytes_received_total", "Packet payload bytes that the relay received from clients."), c.received),
		prometheus.NewCounterFunc(counter("mesh_network_bytes_sent_total", "Packet payload bytes that the relay sent to clients."), c.sent),
		refused,
	} {
		if err := reg.Register(m); err != nil {
			return nil, fmt.Errorf("registering relay metrics: %w", err)
		}
	}
	return refused, nil
}
