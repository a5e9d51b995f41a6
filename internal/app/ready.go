package app

import "github.com/fairlead-mesh/fairlead/internal/api/openapi"

// ready tells whether this replica can serve maps. It does not depend on the
// database: while that is away for everyone, every replica still serves.
func (s *service) ready() openapi.Health {
	h := openapi.Health{Status: openapi.HealthStatusPass}
	if s.draining.Load() {
		h.Status = openapi.HealthStatusFail
		h.Checks = map[string][]openapi.HealthCheck{checkService: {{Status: openapi.HealthCheckStatusFail, Output: stopping}}}
	}
	return h
}
