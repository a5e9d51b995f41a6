package periodic_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestRunCallsOncePerIntervalUntilTheContextEnds(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		begun := time.Now()
		var calls []time.Duration
		if err := periodic.Run(ctx, time.Second, func() { calls = append(calls, time.Since(begun)) }); err != nil {
			t.Fatal(err)
		}
		if len(calls) != 3 || calls[0] != time.Second || calls[2] != 3*time.Second {
			t.Errorf("called after %v, want after 1s, 2s and 3s", calls)
		}
		if took := time.Since(begun); took != 3500*time.Millisecond {
			t.Errorf("ended after %v, want 3.5s", took)
		}
	})
}
