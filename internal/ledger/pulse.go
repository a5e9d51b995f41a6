package ledger

import (
	"time"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Pulse is how the beating of this replica goes.
type Pulse struct {
	// Last is when a beat last succeeded; before the first, when the ledger was
	// opened.
	Last time.Time
	// Successes and Failures count the latest beats of one outcome; one of them
	// is zero. A pause in which others took this replica for dead ends a row
	// of successes too.
	Successes, Failures int
	// Others says that another replica was alive at Last.
	Others bool
	// Follows says that the log could be read when it was last tried.
	Follows bool
}

const (
	// steadyBeats must succeed in a row before the silence of others says more
	// about them than about this replica.
	steadyBeats = 3
	// cutOffAfter is how long a replica keeps its streams without a heartbeat when
	// it cannot find out whether others have the database. It is long because most
	// outages affect all replicas, and then moving ten thousand clients helps
	// nobody.
	cutOffAfter = time.Minute
)

// Steady reports whether this replica may judge others by their silence.
func (p Pulse) Steady(now time.Time) bool {
	return p.Successes >= steadyBeats && now.Sub(p.Last) <= aliveAge
}

// CutOff reports whether clients are probably better off on another replica, when
// this is not certain: this replica has not reached the database for a long time,
// and other replicas were alive. A database that only rejects writes does so for
// all replicas.
func (p Pulse) CutOff(now time.Time) bool {
	return p.Others && !p.Follows && p.Failures >= steadyBeats && now.Sub(p.Last) >= cutOffAfter
}

// after is the pulse after one more beat.
func (p Pulse) after(now time.Time, ok, others bool) Pulse {
	if !ok {
		return Pulse{Last: p.Last, Failures: p.Failures + 1, Others: p.Others}
	}
	if now.Sub(p.Last) > aliveAge {
		p.Successes = 0
	}
	return Pulse{Last: now, Successes: p.Successes + 1, Others: others}
}

// Pulse tells how the beating of this replica goes.
func (c *Cluster) Pulse() Pulse {
	p := *c.pulse.Load()
	p.Follows = c.follows()
	return p
}

// felt records how a beat ended and what it brought.
func (l *Ledger) felt(reports []store.Report, err error) {
	if err == nil {
		l.cluster.reports.Store(&reports)
	}
	p := l.cluster.pulse.Load().after(time.Now(), err == nil, len(l.cluster.Replicas()) > 1)
	l.cluster.pulse.Store(&p)
}
