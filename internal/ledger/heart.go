package ledger

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	beatEvery  = 2 * time.Second
	pruneEvery = time.Minute
	// logAge and logRows bound the log, which only feeds followers.
	logAge  = 15 * time.Minute
	logRows = 1_000_000
	// aliveAge is three missed beats: until then a replica counts as alive.
	aliveAge = 3 * beatEvery
)

// cluster is what this replica knows of the others.
type cluster struct {
	checkpoint atomic.Pointer[mesh.Snapshot]
	reports    atomic.Pointer[[]store.Report]
	pulse      atomic.Pointer[Pulse]
}

// What replicas say of themselves, for callers who may not know the store.
type (
	Report       = store.Report
	WaitingLogin = store.WaitingLogin
	WaitingSSH   = store.WaitingSSH
)

// Replicas returns the newest report of every replica that is alive, this one
// included, as of the last beat.
func (l *Ledger) Replicas() []store.Report {
	var alive []store.Report
	if all := l.cluster.reports.Load(); all != nil {
		for _, r := range *all {
			if r.Age.Abs() <= aliveAge {
				alive = append(alive, r)
			}
		}
	}
	return alive
}

// Announce makes the heart beat soon, because Config.Fill has something that the
// other replicas should not wait for.
func (l *Ledger) Announce() {
	select {
	case l.announce <- struct{}{}:
	default: // it will beat anyway
	}
}

// Heart beats until ctx ends: it tells the other replicas how far this one is,
// compares snapshots with them, and keeps the log short.
func (l *Ledger) Heart(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
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
		l.judge("beat", err)
		if !early { // the pulse counts beats as a measure of time
			l.felt(reports, err)
		}
		if err == nil {
			l.fresh.heard(begun, l.World().Rev, reports)
			l.compare(report, reports)
			l.judge("write", nil) // a beat writes too, or proves that writing works
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
		case <-l.announce:
			early = true
		}
	}
}

// report says where this replica is. Its digest is of the current snapshot when
// nothing has moved since the last beat, else of the last checkpoint: revisions
// at which replicas can be compared.
func (l *Ledger) report(quietAt mesh.Revision) store.Report {
	r := l.self
	s := l.World().Snapshot
	r.Rev = s.Rev
	if s.Rev != quietAt {
		s = l.cluster.checkpoint.Load()
	}
	if s != nil {
		r.DigestRev, r.Digest, r.DigestForm = s.Rev, s.Digest(), mesh.DigestForm
	}
	if l.fill != nil {
		l.fill(&r)
	}
	return r
}

// compare counts replicas that hold another snapshot at the same revision. It
// must never happen; if it does, each reads the tables anew and they agree.
func (l *Ledger) compare(self store.Report, reports []store.Report) {
	for _, r := range reports {
		if r.ID != self.ID && r.DigestForm == self.DigestForm && r.DigestRev == self.DigestRev && self.Digest != "" && r.Digest != "" && r.Digest != self.Digest {
			l.metrics.mismatches.Inc()
			l.log.Error("replicas disagree; keep this log and the database for a report", "rev", r.DigestRev, "replica", r.ID,
				"digest", self.Digest, "other", r.Digest)
			l.disagree.Store(true)
		}
	}
}

// prune never drops what a live replica has not seen.
func (l *Ledger) prune(ctx context.Context, reports []store.Report) {
	keep, newest := l.World().Rev, l.World().Rev
	for _, r := range reports {
		keep = min(keep, r.Rev)
	}
	if newest-logRows > 0 {
		if n, err := l.store.Prune(ctx, min(keep, newest-logRows), 0); err != nil || n > 0 {
			l.log.Debug("dropped the oldest of a million log entries", "entries", n, "error", err)
		}
	}
	n, err := l.store.Prune(ctx, keep, logAge)
	if err != nil && !errors.Is(err, context.Canceled) {
		l.log.Warn("cannot shorten the log; trying again in a minute", "error", err)
		return
	}
	l.log.Debug("shortened the log", "entries", n)
}

// forget drops what is older than people want to read.
func (l *Ledger) forget(ctx context.Context) {
	if l.history == nil {
		return
	}
	n, err := l.history.Forget(ctx, cmp.Or(l.retention, math.MaxInt64), store.PresenceAge)
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		l.log.Warn("cannot drop old history; trying again in a minute", "error", err)
	case n > 0:
		l.log.Debug("dropped old history", "rows", n)
	}
}

// condition is what does not work at the moment.
type condition struct {
	mu     sync.Mutex
	faults map[string]fault // guarded by mu; by what was tried
}

type fault struct {
	err    error
	logged string // the text in the log, without numbers
	at     time.Time
}

// newsEvery keeps an outage whose reason changes from filling the log.
const newsEvery = 2 * time.Second

// judge records how the last try of something ended, and logs what is news: the
// first failure, another reason, and that it works again.
func (l *Ledger) judge(what string, err error) {
	c := &l.health
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if _, failing := c.faults[what]; failing {
			delete(c.faults, what)
			if len(c.faults) == 0 {
				l.log.Info("database works again")
			}
		}
		return
	}
	if c.faults == nil {
		c.faults = map[string]fault{}
	}
	f := c.faults[what]
	f.err = err
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

// withoutNumbers makes errors equal that differ in a port or a file number.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// Health is nil, or what keeps this replica from serving.
func (l *Ledger) Health() error {
	c := &l.health
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range []string{"write", "follow", "beat"} {
		if f, failing := c.faults[what]; failing {
			return f.err
		}
	}
	return nil
}
