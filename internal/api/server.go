package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/cluster"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/scim"
)

// Config configures the API. All fields except Document, SignIn and TrustedProxies are required.
type Config struct {
	Control    *control.Service
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Version    openapi.Version
	// Health returns the result of the last background check.
	Health func() openapi.Health
	// Ready reports whether this replica can serve maps; like Health, it does no I/O.
	Ready func() openapi.Health
	// Closed, if set, reports whether this replica must not serve its state, because
	// other replicas may have revoked API keys that it still considers valid.
	Closed   func() bool
	Balancer Balancer
	// Facts is the constant part of the response to GET /api/v1/server. Checks returns
	// the state of each part of this replica.
	Facts  openapi.ServerState
	Checks func() []openapi.ServerCheck
	// Cluster returns what is known of all replicas and the database. It does no I/O.
	Cluster  func() cluster.State
	Document []byte // openapi.yaml
	// SignIn is how people can sign in.
	SignIn openapi.SignIn
	// TrustedProxies lists the proxies whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
}

// Server authenticates and checks requests, and passes them to the handlers.
type Server struct {
	*core
	ledger         *ledger.Ledger // the whole ledger; core has only a reader
	observations   *control.Observations
	people         *control.Users
	keys           *control.APIKeys
	closed         func() bool
	trustedProxies []netip.Prefix
	handlers       *handlers
	scim           *scim.Server

	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// New returns a server. Its handlers are Handler and LocalHandler.
func New(c Config) *Server {
	if c.Closed == nil {
		c.Closed = func() bool { return false }
	}
	shared := &core{ledger: c.Ledger, log: c.Log, refusals: identity.NewRefusalLog(c.Log)}
	h := newHandlers(c, shared)
	shared.operations = h.operations()
	shared.current = map[string]current{"user": h.currentUser, "node": h.currentNode, "dns": h.currentDNS, "policy": h.currentPolicy}
	s := &Server{
		core: shared, ledger: c.Ledger, observations: c.Control.Observations, people: c.Control.Users, keys: c.Control.APIKeys, closed: c.Closed, trustedProxies: c.TrustedProxies, handlers: h,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_http_requests_total", Help: "HTTP requests on the API listener and the local socket, by status code.",
		}, []string{"code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_http_request_duration_seconds", Help: "Duration of HTTP requests, except streams and upgraded connections.",
			// With bounds at 10 ms and 50 ms, our targets for /health and the API.
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5},
		}),
	}
	s.scim = scim.New(scim.Config{Directory: c.Control.Directory, Ledger: c.Ledger, Log: c.Log, Actor: scimActor, ServerURL: strings.TrimSuffix(c.Facts.URL, "/")})
	c.Registerer.MustRegister(s.requests, s.seconds)
	for _, failure := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
		s.requests.WithLabelValues(strconv.Itoa(failure)) // starts at zero, so that the first failure shows as an increase
	}
	return s
}
