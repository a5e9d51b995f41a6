package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	awakeEvery = 250 * time.Millisecond
	// pausedAfter is longer than a process has to wait for the CPU on a busy machine.
	pausedAfter = 2 * time.Second
	// verifyFor is how long readers wait after a pause for the log to be read. It is
	// long enough for the fence to ask the other replicas in the meantime.
	verifyFor   = 2 * time.Second
	verifyEvery = 50 * time.Millisecond
)

// pause detects that this process did not run for a while, because it or its machine was
// paused. In the meantime, others may have changed anything, including which database
// server is in use.
type pause struct {
	mu    sync.Mutex
	awake time.Time // guarded by mu; when the process last ran; zero before start
	ended time.Time // guarded by mu; the end of a pause since which the log has not been read
}

// observe records that the process is running. It returns the end of a pause
// since which the log has not been read.
func (p *pause) observe(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake.IsZero() {
		return time.Time{}
	}
	gap := elapsed(p.awake, now)
	if p.awake = now; gap > pausedAfter {
		p.ended = now
	}
	return p.ended
}

// elapsed returns the time between from and to, including time in which the machine was
// suspended, when the monotonic clock stops. The wall clock alone is not enough, because
// it may have been adjusted.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// read records that the log was read, or written to, in a transaction that began at the
// given moment.
func (p *pause) read(begun time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !begun.Before(p.ended) {
		p.ended = time.Time{}
	}
}

func (p *pause) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awake = time.Now()
}

// DetectPauses detects pauses of the process until ctx ends. It waits for nothing else,
// so that an unresponsive database is not mistaken for a pause.
func (l *Ledger) DetectPauses(ctx context.Context) error {
	l.pause.start()
	return periodic.Run(ctx, awakeEvery, func() { l.pause.observe(time.Now()) })
}

// Verified returns at once unless this process was paused and has not read the log since.
// In that case it waits for the log to be read, so that nobody is served outdated state.
// Two seconds after the pause it gives up and returns an error; from then on it returns
// the error immediately. The caller must then ask the fence whether this replica may
// serve the state it has: it may if no other replica knows more.
func (l *Ledger) Verified(ctx context.Context) error {
	ended := l.pause.observe(time.Now())
	if ended.IsZero() {
		return nil
	}
	limited, cancel := context.WithDeadline(ctx, ended.Add(verifyFor))
	defer cancel()
	for {
		err := l.Sync(limited) // success ends the pause; see pause.read
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("%w: this process was paused and has not been able to read the log since: %w", ErrUnavailable, err)
		case <-time.After(verifyEvery):
		}
	}
}
