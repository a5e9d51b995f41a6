package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	// newsEvery keeps an outage whose reason changes from filling the log.
	newsEvery = 2 * time.Second
	// slowAfter is how long a write may take before this replica is unhealthy.
	slowAfter = 5 * time.Second
)

// condition is what does not work at the moment.
type condition struct {
	mu      sync.Mutex
	faults  map[string]fault // guarded by mu; by what was tried
	writing time.Time        // guarded by mu; when the write under way began, or zero
}

type fault struct {
	err    error
	failed time.Time // the last time
	logged string    // the text in the log, without numbers
	at     time.Time // when it was logged
}

// recordOutcome records how the last try of something ended, and logs what is news: the
// first failure, another reason, and the recovery.
func (l *Ledger) recordOutcome(what string, err error) {
	c := &l.health
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		l.clear(what)
	} else {
		l.fail(what, err)
	}
}

// clear is called with the lock held.
func (l *Ledger) clear(what string) {
	c := &l.health
	if _, failing := c.faults[what]; !failing {
		return
	}
	delete(c.faults, what)
	if len(c.faults) == 0 {
		l.log.Info("database recovered")
	}
}

// fail is called with the lock held.
func (l *Ledger) fail(what string, err error) {
	c := &l.health
	if c.faults == nil {
		c.faults = map[string]fault{}
	}
	f := c.faults[what]
	f.err, f.failed = err, time.Now()
	if text := withoutNumbers(err.Error()); f.logged != text && time.Since(f.at) > newsEvery {
		f.logged, f.at = text, time.Now()
		l.log.Error("database trouble", "doing", what, "error", err)
	}
	c.faults[what] = f
}

// failing reports whether the last try of something failed.
func (l *Ledger) failing(what string) bool {
	l.health.mu.Lock()
	defer l.health.mu.Unlock()
	_, failing := l.health.faults[what]
	return failing
}

// probe learns whether writing works again after a write failed. That the
// database can be read, or takes a beat, is not enough: the head row or a table
// may be locked, or the disk full.
func (l *Ledger) probe(ctx context.Context) {
	if !l.failing("write") {
		return
	}
	begun := time.Now()
	err := l.store.Probe(ctx, l.cluster.self.ID)
	c := &l.health
	c.mu.Lock()
	defer c.mu.Unlock()
	f, failing := c.faults["write"]
	switch {
	case !failing: // a write has succeeded meanwhile, which counts for more
	case err == nil && f.failed.Before(begun):
		l.clear("write")
	case err == nil: // a write has failed meanwhile
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // says less than the write did
	default:
		l.fail("write", err)
	}
}

// write notes that a write begins, or with a zero time that it has ended.
func (c *condition) write(begun time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = begun
}

// slowWrite is an error while a write has been under way for too long.
func (c *condition) slowWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing.IsZero() || time.Since(c.writing) < slowAfter {
		return nil
	}
	return fmt.Errorf("%w: database too slow: a change has been waiting to be written for more than %v", store.ErrUnavailable, slowAfter)
}

// withoutNumbers makes errors equal that differ in a port or a file number.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// Status tells how a ledger is doing. Its methods only read what the loops met last.
type Status struct{ l *Ledger }

// Status returns how the ledger is doing.
func (l *Ledger) Status() Status { return Status{l} }

// Health is nil, or what keeps this replica from serving.
func (s Status) Health() error {
	c := &s.l.health
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range []string{"write", "slow write", "follow", "beat"} {
		if f, failing := c.faults[what]; failing {
			return f.err
		}
	}
	return nil
}
