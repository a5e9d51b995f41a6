package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// CheckService is the check that fails while a replica is drained or shuts down.
const CheckService = "service"

// probes handles the operations for health checks and versions.
type probes struct {
	*core
	health, ready func() openapi.Health
	database      func() error
	version       openapi.Version
}

// Health implements GET /health. It reports the last background check and never queries the
// database.
func (s *probes) Health(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, s.health(), http.StatusServiceUnavailable)
}

// Ready implements GET /ready. It does not depend on the database.
func (s *probes) Ready(w http.ResponseWriter, _ *http.Request, p openapi.ReadyParams) {
	h, failed := s.ready(), http.StatusServiceUnavailable
	// A replica that is not ready for another reason should lose its open connections.
	if _, leaving := h.Checks[CheckService]; leaving && len(h.Checks) == 1 && or(p.Draining) == http.StatusNotFound {
		failed = http.StatusNotFound
	}
	writeHealth(w, h, failed)
}

// writeHealth writes the state of a probe, with a status for failure.
func writeHealth(w http.ResponseWriter, h openapi.Health, failed int) {
	status := http.StatusOK
	if h.Status != openapi.HealthStatusPass {
		status = failed
	}
	write(w, status, "application/health+json", encoded(h))
}

// Version implements GET /version.
func (s *probes) Version(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "application/json", encoded(s.version))
}

// DatabaseHealth implements GET /api/v1/health.
func (s *probes) DatabaseHealth(w http.ResponseWriter, _ *http.Request) {
	reply(w, s.ledger.World().Snapshot, openapi.DatabaseHealth{DatabaseConnectivity: s.database() == nil})
}
