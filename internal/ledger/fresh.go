package ledger

import (
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Freshness describes how up to date the state of this replica is.
type Freshness struct {
	// Last is the time up to which this replica is known to have every commit of every
	// replica.
	Last time.Time
	// Since is when it became up to date. Only an interruption long enough for
	// others to consider this replica dead resets it.
	Since time.Time
	// Paused is the end of a pause of this process since which it has not read the
	// log, or zero. What others have done in the meantime is unknown.
	Paused time.Time
}

// Age returns how long ago this replica last had every commit.
func (f Freshness) Age(now time.Time) time.Duration { return elapsed(f.Last, now) }

// For returns how long this replica has been up to date without interruption, or 0 if it
// is not up to date now.
func (f Freshness) For(now time.Time) time.Duration {
	if now.Sub(f.Last) > aliveAge || !f.Paused.IsZero() {
		return 0
	}
	return now.Sub(f.Since)
}

// freshness collects the evidence for Freshness.
type freshness struct {
	mu  sync.Mutex
	now Freshness // guarded by mu
}

// caughtUp records that the world contains everything committed before the given moment.
func (f *freshness) caughtUp(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.Sub(f.now.Last) > aliveAge {
		f.now.Since = at
	}
	if at.After(f.now.Last) {
		f.now.Last = at
	}
}

// heard uses the reports of a heartbeat as evidence: a replica at the same revision as
// all others is missing nothing, even if its own writes are blocked. After an
// interruption or a pause, this proves nothing, because only the log shows whether the
// history is still the same.
func (f *freshness) heard(at time.Time, rev mesh.Revision, reports []store.Report) {
	for _, r := range reports {
		if r.Rev > rev {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.After(f.now.Last) && at.Sub(f.now.Last) <= aliveAge {
		f.now.Last = at
	}
}

// age returns how long ago this replica last had every commit.
func (f *freshness) age(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now.Age(now)
}

// Freshness returns how up to date the world is.
func (s Status) Freshness() Freshness {
	paused := s.l.pause.observe(time.Now())
	s.l.fresh.mu.Lock()
	defer s.l.fresh.mu.Unlock()
	f := s.l.fresh.now
	f.Paused = paused
	return f
}

// caughtUp records that the log was read, or written to, in a transaction that began at
// the given moment.
func (l *Ledger) caughtUp(begun time.Time) {
	l.fresh.caughtUp(begun)
	l.pause.read(begun)
}

// State identifies the state of this replica. Replicas with the same history up to the
// same revision return the same value.
func (s Status) State() string {
	p := pointOf(s.l.World().Snapshot)
	return fmt.Sprintf("%d-%x", p.Rev, p.Batch)
}
