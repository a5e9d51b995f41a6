package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// probes handles the operations for health checks and versions.
type probes struct {
	*core
	health, ready func() openapi.Health
	database      func() error
	version       openapi.Version
}

// Health implements GET /health. It reports the last background check and never queries the
// database.
func (s *probes) Health(w http.ResponseWriter, _ *http.Request) { writeHealth(w, s.health()) }

// Ready implements GET /ready. It does not depend on the database.
func (s *probes) Ready(w http.ResponseWriter, _ *http.Request) { writeHealth(w, s.ready()) }

func writeHealth(w http.ResponseWriter, h openapi.Health) {
	status := http.StatusOK
	if h.Status != openapi.HealthStatusPass {
		status = http.StatusServiceUnavailable
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
