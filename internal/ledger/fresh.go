package ledger

import (
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Freshness tells how current the world of this replica is.
type Freshness struct {
	// Last is a moment of which this replica has everything that was committed
	// before, on any replica.
	Last time.Time
	// Since is when it began to have that without an interruption that others
	// would have taken for its death.
	Since time.Time
}

// For is how long this replica has been following the database without an
// interruption, 0 if it does not follow now.
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

// caughtUp notes that everything committed before a moment is in the world.
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

// heard judges by the reports of a beat: a replica that is as far as all others
// misses nothing, though its own writes may be stuck. It proves nothing after an
// interruption: then only the log tells whether the history is still the same.
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

// Freshness tells how current the world is.
func (l *Ledger) Freshness() Freshness {
	l.fresh.mu.Lock()
	defer l.fresh.mu.Unlock()
	return l.fresh.now
}
