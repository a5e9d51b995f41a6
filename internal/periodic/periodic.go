// Package periodic calls a function periodically. It is not a scheduler: there
// is one interval, and a call that takes longer delays the next.
package periodic

import (
	"context"
	"time"
)

// Run calls do once per interval until ctx ends, the first time after one interval.
// It always returns nil, so that a loop of the server can return what Run returns.
func Run(ctx context.Context, interval time.Duration, do func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do()
		}
	}
}
