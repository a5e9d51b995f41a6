package ledger

import (
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Freshness describes how up to date the state of this replica is.
type Freshness struct {
	// Last is a time up to which this replica has every commit of every replica.
	Last time.Time
	// Since is when it became up to date. Only an interruption long enough for
	// others to consider this replica dead resets it.
	Since time.Time
}

// For returns how long this replica has had the database without interruption, 0
// if it does not have it now.
func (f Freshness) For(now time.Time) time.Duration {
	if now.Sub(f.Last) > aliveAge {
		return 0
	}
	return now.Sub(f.Since)
}

// freshness collects the evidence.
type freshness struct {
	mu  sync.Mutex
	now Freshness // guarded by mu
}

// caughtUp records that the world contains everything committed before a moment.
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

// heard uses the reports of a heartbeat as evidence: a replica at the same revision
// as all others misses nothing, even if its own writes are stuck. After an
// interruption this proves nothing, because only the log shows whether the history
// is still the same.
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

// Freshness returns how up to date the world is.
func (l *Ledger) Freshness() Freshness {
	l.fresh.mu.Lock()
	defer l.fresh.mu.Unlock()
	return l.fresh.now
}
