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
	// newsEvery limits the rate of log lines during an outage whose reason keeps changing.
	newsEvery = 2 * time.Second
	// slowAfter is how long a write may take before this replica is unhealthy.
	slowAfter = 5 * time.Second
)

// condition is the set of operations that currently fail.
type condition struct {
	mu      sync.Mutex
	faults  map[string]fault // guarded by mu; by operation
	writing time.Time        // guarded by mu; when the current write began, or zero
}

type fault struct {
	err    error
	failed time.Time // time of the last failure
	logged string    // the logged text, without numbers
	at     time.Time // when it was logged
}

// recordOutcome records the result of the last attempt of an operation. It logs the first
// failure, a new reason, and the recovery.
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

// clear records a success. The caller holds the lock.
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

// fail records a failure. The caller holds the lock.
func (l *Ledger) fail(what string, err error) {
	c := &l.health
	if c.faults == nil {
		c.faults = map[string]fault{}
	}
	f := c.faults[what]
	f.err, f.failed = err, time.Now()
	if text := withoutNumbers(err.Error()); f.logged != text && time.Since(f.at) > newsEvery {
		f.logged, f.at = text, time.Now()
		l.log.Error("database operation failed", "operation", what, "error", err)
	}
	c.faults[what] = f
}

// failing reports whether the last attempt of an operation failed.
func (l *Ledger) failing(what string) bool {
	l.health.mu.Lock()
	defer l.health.mu.Unlock()
	_, failing := l.health.faults[what]
	return failing
}

// probe checks whether writes succeed again after one has failed. It is not enough that the
// database can be read or accepts a heartbeat: the head row or a table may be locked, or
// the disk may be full.
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
	case !failing: // a write has succeeded in the meantime, which is better evidence
	case err == nil && f.failed.Before(begun):
		l.clear("write")
	case err == nil: // a write has failed in the meantime
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // the error of the failed write is more specific
	default:
		l.fail("write", err)
	}
}

// write records that a write begins, or, with a zero time, that it has ended.
func (c *condition) write(begun time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = begun
}

// slowWrite returns an error while a write has been running for too long.
func (c *condition) slowWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing.IsZero() || time.Since(c.writing) < slowAfter {
		return nil
	}
	return fmt.Errorf("%w: database too slow: a change has been waiting to be written for more than %v", store.ErrUnavailable, slowAfter)
}

// withoutNumbers removes all digits, so that errors that differ only in a port or a file
// number are equal.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// Status reports the health of a ledger. Its methods only return what the loops found last.
type Status struct{ l *Ledger }

// Status returns the status of the ledger.
func (l *Ledger) Status() Status { return Status{l} }

// Health returns why this replica cannot serve, or nil if it can.
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
