package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

// checkEvery limits how late a change of health is recorded.
const checkEvery = 5 * time.Second

// checkedParts returns the parts that /health reports on, in the order in which they are shown.
func checkedParts() []string {
	return []string{checkService, checkDatabase, checkRelay, checkPolicy, checkReplicas, checkConns, checkCert, checkIdentity, checkClock}
}

// checks records since when each part has had its status.
type checks struct {
	mu    sync.Mutex
	parts []openapi.ServerCheck // guarded by mu; in the order of checkedParts
}

// note records the result of a health check.
func (c *checks) note(h openapi.Health, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.parts
	c.parts = make([]openapi.ServerCheck, 0, len(before))
	for i, part := range checkedParts() {
		check := openapi.ServerCheck{Part: part, Status: openapi.ServerCheckPass, Since: now, Output: []string{}}
		for _, found := range h.Checks[part] {
			check.Output = append(check.Output, found.Output)
			if check.Status != openapi.ServerCheckFail {
				check.Status = openapi.ServerCheckStatus(found.Status)
			}
		}
		if i < len(before) && before[i].Status == check.Status {
			check.Since = before[i].Since
		}
		c.parts = append(c.parts, check)
	}
}

// checksNow runs a health check, records it and returns the status of each part.
func (s *service) checksNow() []openapi.ServerCheck {
	s.checks.note(s.health(), time.Now())
	s.checks.mu.Lock()
	defer s.checks.mu.Unlock()
	return slices.Clone(s.checks.parts)
}

// followHealth records when the health of a part changes, until ctx ends.
func (s *service) followHealth(ctx context.Context) error {
	note := func() { s.checks.note(s.health(), time.Now()) }
	note()
	return periodic.Run(ctx, checkEvery, note)
}
