package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func TestChecksTellSinceWhenAPartIsAsItIs(t *testing.T) {
	var c checks
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 9, minute, 0, 0, time.UTC) }
	finds := func(status openapi.HealthCheckStatus, output string) openapi.Health {
		return openapi.Health{Checks: map[string][]openapi.HealthCheck{checkRelay: {{Status: status, Output: output}}}}
	}
	c.note(openapi.Health{}, at(0))
	c.note(finds(openapi.HealthCheckStatusWarn, "no relay"), at(1))
	c.note(finds(openapi.HealthCheckStatusWarn, "another reason"), at(2))
	want := []openapi.ServerCheck{}
	for _, part := range checkedParts() {
		check := openapi.ServerCheck{Part: part, Status: openapi.ServerCheckPass, Since: at(0), Output: []string{}}
		if part == checkRelay {
			check = openapi.ServerCheck{Part: part, Status: openapi.ServerCheckWarn, Since: at(1), Output: []string{"another reason"}}
		}
		want = append(want, check)
	}
	if diff := cmp.Diff(want, c.parts); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	c.note(openapi.Health{}, at(3))
	if got := c.parts[2]; got.Status != openapi.ServerCheckPass || got.Since != at(3) {
		t.Errorf("the relay has been healthy since %v (%s), want %v", got.Since, got.Status, at(3))
	}
}

func TestChecksTakeTheWorstOfAPart(t *testing.T) {
	var c checks
	c.note(openapi.Health{Checks: map[string][]openapi.HealthCheck{checkDatabase: {
		{Status: openapi.HealthCheckStatusFail, Output: "gone"}, {Status: openapi.HealthCheckStatusWarn, Output: "slow"},
	}}}, time.Now())
	if got := c.parts[1]; got.Status != openapi.ServerCheckFail || len(got.Output) != 2 {
		t.Errorf("database: %s with %q, want fail with both", got.Status, got.Output)
	}
}
