package waittest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// In Go 1.26, this crashes the race detector without Bubble if there are two CPUs.
func TestTimersOfABubbleMayBeDueAtTheSameTime(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	Bubble(t, func(t *testing.T) {
		var wait sync.WaitGroup
		for range 16 {
			wait.Go(func() {
				for range 10_000 {
					due := time.NewTimer(0)
					select {
					case <-due.C:
					case <-t.Context().Done():
					}
				}
			})
		}
		wait.Wait()
	})
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("GOMAXPROCS is %d, was %d", after, before)
	}
}
