package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/apidocs"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

// Config of the API. All but Document and TrustedProxies are required.
type Config struct {
	Control    *control.Service
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Version    openapi.Version
	// Health is the state of the service as of the last background check.
	Health func() openapi.Health
	// Ready reports whether this replica can serve maps; like Health it only reads.
	Ready func() openapi.Health
	// Closed, if set, reports whether this replica must not serve its state, because
	// others may have revoked the API keys that it knows.
	Closed func() bool
	// Facts are what Server says of this replica and what does not change while
	// it runs, and Checks how well each part is.
	Facts    openapi.ServerState
	Checks   func() []openapi.ServerCheck
	Document []byte // openapi.yaml
	// TrustedProxies may say on whose behalf they ask.
	TrustedProxies []netip.Prefix
}

// Server implements the generated interface.
type Server struct {
	control        *control.Service
	ledger         *ledger.Ledger
	log            *slog.Logger
	version        openapi.Version
	health, ready  func() openapi.Health
	closed         func() bool
	facts          openapi.ServerState
	checks         func() []openapi.ServerCheck
	document       []byte
	docs           func() ([]byte, error) // the page made from document
	trustedProxies []netip.Prefix
	operations     map[string]operation

	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	users    atomic.Pointer[userList]
	nodes    nodeCache
	refusals *identity.RefusalLog
	streams  streams
	turns    *turns
	tail     *control.Tail[event]
}

var _ openapi.ServerInterface = (*Server)(nil)

// New returns a server; Handler makes it answer.
func New(c Config) *Server {
	s := &Server{
		control: c.Control, ledger: c.Ledger, log: c.Log, version: c.Version, health: c.Health, ready: c.Ready, closed: c.Closed,
		facts: c.Facts, checks: c.Checks, document: c.Document, trustedProxies: c.TrustedProxies,
		docs:     sync.OnceValues(func() ([]byte, error) { return apidocs.Render(c.Document) }),
		refusals: identity.NewRefusalLog(c.Log), operations: operations(), turns: newTurns(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_http_requests_total", Help: "Requests on the API listener and the local socket, by status.",
		}, []string{"code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_http_request_duration_seconds", Help: "Time to answer a request.",
			// With a bound at 10 ms and 50 ms, what we promise for /health and the API.
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5},
		}),
	}
	if s.closed == nil {
		s.closed = func() bool { return false }
	}
	s.tail = control.NewTail(c.Control.History, eventOf, func(e event) history.Position { return e.at })
	c.Registerer.MustRegister(s.requests, s.seconds)
	for _, failure := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
		s.requests.WithLabelValues(strconv.Itoa(failure)) // from zero, or nobody sees the first of them as an increase
	}
	return s
}

// Health implements GET /health. It reports the last background check and never
// asks the database.
func (s *Server) Health(w http.ResponseWriter, _ *http.Request) { writeHealth(w, s.health()) }

// Ready implements GET /ready. It does not depend on the database.
func (s *Server) Ready(w http.ResponseWriter, _ *http.Request) { writeHealth(w, s.ready()) }

func writeHealth(w http.ResponseWriter, h openapi.Health) {
	status := http.StatusOK
	if h.Status != openapi.HealthStatusPass {
		status = http.StatusServiceUnavailable
	}
	write(w, status, "application/health+json", encoded(h))
}

// Version implements GET /version.
func (s *Server) Version(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/json", encoded(s.version))
}

// DatabaseHealth implements GET /api/v1/health.
func (s *Server) DatabaseHealth(w http.ResponseWriter, _ *http.Request) {
	reply(w, s.ledger.World().Snapshot, openapi.DatabaseHealth{DatabaseConnectivity: s.ledger.Status().Health() == nil})
}

// OpenapiDocument implements GET /api/v1/openapi.yaml.
func (s *Server) OpenapiDocument(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/yaml", s.document)
}

// DocsPage implements GET /api/v1/docs.
func (s *Server) DocsPage(w http.ResponseWriter, r *http.Request) {
	page, err := s.docs()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	write(w, http.StatusOK, "text/html; charset=utf-8", page)
}

// DebugDigest implements GET /api/v1/debug/digest.
func (s *Server) DebugDigest(w http.ResponseWriter, _ *http.Request) {
	snap := s.ledger.World().Snapshot
	out := openapi.Digest{
		Replica: string(s.ledger.Cluster().Self().ID), Revision: revision(snap.Rev), Digest: snap.Digest(), Replicas: []openapi.ReplicaDigest{},
	}
	for _, r := range s.ledger.Cluster().Replicas() {
		out.Replicas = append(out.Replicas, openapi.ReplicaDigest{
			ID: string(r.ID), Version: r.Version, Revision: revision(r.Rev),
			DigestRevision: revision(r.DigestRev), Digest: r.Digest, AgeMillis: int(r.Age.Milliseconds()),
		})
	}
	reply(w, snap, out)
}
