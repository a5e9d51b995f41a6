package app

import "github.com/fairlead-mesh/fairlead/internal/api/openapi"

// ready reports whether this replica can serve maps. It does not depend on the database: during a database
// outage every replica still serves.
func (s *service) ready() openapi.Health {
	h := openapi.Health{Status: openapi.HealthStatusPass, Checks: map[string][]openapi.HealthCheck{}}
	fail := func(part, output string) {
		h.Status = openapi.HealthStatusFail
		h.Checks[part] = append(h.Checks[part], openapi.HealthCheck{Status: openapi.HealthCheckStatusFail, Output: output})
	}
	if s.draining.Load() {
		fail(checkService, stopping)
	}
	if p := s.parts.Load(); p != nil {
		if p.fence.Closed() {
			fail(checkReplicas, fenced)
		}
		// Without another replica, clients are better off here.
		if p.balancer.Draining() && p.balancer.Others() > 0 {
			fail(checkService, drained)
		}
	}
	return h
}

// leaving reports whether new clients should connect to another replica, although this one could serve them.
func (s *service) leaving() bool { return s.ready().Status != openapi.HealthStatusPass }
