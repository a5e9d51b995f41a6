package ledger

import (
	"time"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Heartbeats describes the heartbeats of this replica.
type Heartbeats struct {
	// Last is when a heartbeat last succeeded or, before the first one, when the ledger was
	// opened.
	Last time.Time
	// Successes and Failures count the latest heartbeats with the same outcome; one of them
	// is zero. A pause so long that others considered this replica dead also resets
	// Successes.
	Successes, Failures int
	// Others reports whether another replica was alive at Last.
	Others bool
	// Follows reports whether the last attempt to read the log succeeded.
	Follows bool
}

const (
	// steadyBeats is how many heartbeats must succeed in a row before the silence of other
	// replicas is taken to mean that they are dead, rather than that this one is
	// disconnected.
	steadyBeats = 3
	// cutOffAfter is how long a replica keeps its streams without a heartbeat when it
	// cannot find out whether others can reach the database. It is long because most
	// outages affect all replicas, and then moving ten thousand clients would not help.
	cutOffAfter = time.Minute
)

// Steady reports whether this replica may conclude from the silence of others that they are
// dead.
func (p Heartbeats) Steady(now time.Time) bool {
	return p.Successes >= steadyBeats && now.Sub(p.Last) <= aliveAge
}

// CutOff reports whether clients are probably better off on another replica: this replica
// has not reached the database for a long time, and other replicas were alive. A database
// that only rejects writes does so for all replicas.
func (p Heartbeats) CutOff(now time.Time) bool {
	return p.Others && !p.Follows && p.Failures >= steadyBeats && now.Sub(p.Last) >= cutOffAfter
}

// after returns p after one more heartbeat.
func (p Heartbeats) after(now time.Time, ok, others bool) Heartbeats {
	if !ok {
		return Heartbeats{Last: p.Last, Failures: p.Failures + 1, Others: p.Others}
	}
	if now.Sub(p.Last) > aliveAge {
		p.Successes = 0
	}
	return Heartbeats{Last: now, Successes: p.Successes + 1, Others: others}
}

// Heartbeats describes the heartbeats of this replica.
func (c *Cluster) Heartbeats() Heartbeats {
	p := *c.heartbeats.Load()
	p.Follows = c.follows()
	return p
}

// recordHeartbeat records the outcome of a heartbeat and the reports it returned.
func (l *Ledger) recordHeartbeat(reports []store.Report, err error) {
	if err == nil {
		l.cluster.reports.Store(&reports)
	}
	p := l.cluster.heartbeats.Load().after(time.Now(), err == nil, len(l.cluster.Replicas()) > 1)
	l.cluster.heartbeats.Store(&p)
}
