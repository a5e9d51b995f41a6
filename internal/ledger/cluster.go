package ledger

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	beatEvery  = 2 * time.Second
	pruneEvery = time.Minute
	// logAge and logRows limit the size of the log, which is needed only by replicas that
	// follow it.
	logAge  = 15 * time.Minute
	logRows = 1_000_000
	// aliveAge is how long a replica counts as alive: three missed heartbeats.
	aliveAge = 3 * beatEvery
)

// Cluster is this replica's view of itself and the other replicas.
type Cluster struct {
	self       store.Report
	started    time.Time
	announce   chan struct{} // requests an early heartbeat
	sends      atomic.Bool   // whether this replica sends heartbeats; commands on the database do not
	follows    func() bool   // whether the last attempt to read the log succeeded
	checkpoint atomic.Pointer[mesh.Snapshot]
	reports    atomic.Pointer[[]store.Report]
	heartbeats atomic.Pointer[Heartbeats]
}

// Cluster returns this replica's view of itself and the other replicas.
func (l *Ledger) Cluster() *Cluster { return &l.cluster }

// Self returns what this replica reports about itself.
func (c *Cluster) Self() store.Report { return c.self }

// The types that reports consist of, for callers that must not import package store.
type (
	Report       = store.Report
	WaitingLogin = store.WaitingLogin
	WaitingSSH   = store.WaitingSSH
	Database     = store.Database
	Standby      = store.Standby
)

// Replicas returns the newest report of every replica that is alive, this one
// included, as of the last heartbeat.
func (c *Cluster) Replicas() []store.Report {
	var alive []store.Report
	if all := c.reports.Load(); all != nil {
		for _, r := range *all {
			if Alive(r) {
				alive = append(alive, r)
			}
		}
	}
	return alive
}

// Status returns the heartbeats of this replica, and the reports of all live replicas, as Replicas does. The reports are at
// least as new as the heartbeats: they include everything that the last of these heartbeats received.
func (c *Cluster) Status() (Heartbeats, []store.Report) {
	beats := c.Heartbeats() // read before the reports, because a heartbeat may succeed in between
	return beats, c.Replicas()
}

// Reports returns the newest report of every replica that reported within the last minute, dead ones included, and when
// this replica received them.
func (c *Cluster) Reports() ([]store.Report, time.Time) {
	all := c.reports.Load()
	if all == nil {
		return nil, time.Time{}
	}
	return *all, c.heartbeats.Load().Last
}

// Alive reports whether a replica is alive, by the age of its newest report.
func Alive(r store.Report) bool { return r.Age.Abs() <= aliveAge }

// Announce sends a heartbeat soon, because Config.Fill has something new that other
// replicas should get quickly.
func (c *Cluster) Announce() {
	select {
	case c.announce <- struct{}{}:
	default: // one is already due
	}
}

// SendHeartbeats reports this replica's progress to the others every two seconds,
// compares snapshots with them and prunes the log, until ctx ends.
func (l *Ledger) SendHeartbeats(ctx context.Context) error {
	l.cluster.sends.Store(true)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	defer l.sendLast(ctx)
	var quietAt mesh.Revision
	var pruned time.Time
	early := false
	for {
		report := l.report(quietAt)
		quietAt = report.Rev
		begun := time.Now()
		reports, err := l.store.Beat(ctx, report)
		if ctx.Err() != nil {
			return nil
		}
		l.recordOutcome("beat", err)
		l.recordOutcome("slow write", l.health.slowWrite())
		if !early { // only regular heartbeats count, because their number is used as a measure of time
			l.recordHeartbeat(reports, err)
		}
		if err == nil {
			if l.pause.observe(time.Now()).IsZero() {
				l.fresh.heard(begun, l.World().Rev, reports)
			}
			l.compare(report, reports)
			l.probe(ctx)
			if time.Since(pruned) > pruneEvery {
				pruned = time.Now()
				l.prune(ctx, reports)
				l.forget(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			early = false
		case <-l.cluster.announce:
			early = true
		}
	}
}

// lastBeat limits how long the last heartbeat may delay the end of the process.
const lastBeat = time.Second

// sendLast tells the other replicas that this one was stopped on purpose, and did not die.
func (l *Ledger) sendLast(ctx context.Context) {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return // a part of the server has failed
	}
	r := l.report(0)
	r.Stopped, r.Held = true, 0
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBeat)
	defer cancel()
	if _, err := l.store.Beat(ctx, r); err != nil {
		l.log.Debug("cannot report that this replica stops", "error", err)
	}
}

// report returns what this replica reports. Its digest is that of the current snapshot if
// nothing changed since the last heartbeat, and otherwise that of the last checkpoint,
// because these are the revisions at which replicas can be compared.
func (l *Ledger) report(quietAt mesh.Revision) store.Report {
	r := l.cluster.self
	s := l.World().Snapshot
	r.Rev, r.Format = s.Rev, mesh.Format
	if s.Rev != quietAt {
		s = l.cluster.checkpoint.Load()
	}
	if s != nil {
		r.DigestRev, r.Digest, r.DigestForm = s.Rev, s.Digest(), mesh.DigestForm()
	}
	r.Uptime = time.Since(l.cluster.started)
	if lag := l.fresh.age(time.Now()); lag > 2*pollEvery { // less is normal: it reads the log every second
		r.Lag = lag
	}
	if l.fill != nil {
		l.fill(&r)
	}
	return r
}

// compare checks whether other replicas have a different snapshot at the same revision.
// This must never happen; if it does, each replica reloads its tables.
func (l *Ledger) compare(self store.Report, reports []store.Report) {
	for _, r := range reports {
		if r.ID != self.ID && r.DigestForm == self.DigestForm && r.DigestRev == self.DigestRev && self.Digest != "" && r.Digest != "" && r.Digest != self.Digest {
			l.metrics.mismatches.Inc()
			l.log.Error("replicas disagree; keep this log and the database for a bug report", "rev", r.DigestRev, "replica", r.ID,
				"digest", self.Digest, "other", r.Digest)
			l.disagree.Store(true)
		}
	}
}

// prune deletes old log entries, except those that a live replica has not seen.
func (l *Ledger) prune(ctx context.Context, reports []store.Report) {
	keep, newest := l.World().Rev, l.World().Rev
	for _, r := range reports {
		keep = min(keep, r.Rev)
	}
	if newest-logRows > 0 {
		if n, err := l.store.Prune(ctx, min(keep, newest-logRows), 0); err != nil || n > 0 {
			l.log.Debug("pruned log entries above the limit", "entries", n, "error", err)
		}
	}
	n, err := l.store.Prune(ctx, keep, logAge)
	if err != nil && !errors.Is(err, context.Canceled) {
		l.log.Warn("cannot prune the log, retrying in a minute", "error", err)
		return
	}
	l.log.Debug("pruned the log", "entries", n)
}

// forget deletes history that is older than the retention time.
func (l *Ledger) forget(ctx context.Context) {
	if l.history == nil {
		return
	}
	n, err := l.history.Forget(ctx, cmp.Or(l.retention, math.MaxInt64), history.PresenceAge)
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		l.log.Warn("cannot prune old history, retrying in a minute", "error", err)
	case n > 0:
		l.log.Debug("pruned old history", "rows", n)
	}
}
