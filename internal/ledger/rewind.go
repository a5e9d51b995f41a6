package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	// trailLength is how many batches are searched for the end of the common history.
	trailLength = 1024
	// rewindShown is how long /health reports that revisions were lost.
	rewindShown = 24 * time.Hour
)

// Rewind describes how the database went back to an earlier state and lost
// revisions that a replica had seen.
type Rewind struct {
	At     time.Time
	Common mesh.Revision // the newest revision that both histories have
	Was    mesh.Revision // the newest revision before the rewind
	// AtLeast means that the histories may have diverged before Common.
	AtLeast bool
}

// Lost returns how many revisions were lost.
func (r Rewind) Lost() int64 { return int64(r.Was - r.Common) }

func (r Rewind) String() string {
	many := ""
	if r.AtLeast {
		many = "at least "
	}
	return fmt.Sprintf("%s%d acknowledged revisions lost (%d to %d) at %s: the database went back to an earlier state, for example after a failover to a lagging standby; deleted nodes and revoked keys may be valid again",
		many, r.Lost(), r.Common+1, r.Was, r.At.UTC().Format(time.RFC3339))
}

// Rewound returns the last rewind that any replica noticed, for a day.
func (s Status) Rewound() (Rewind, bool) {
	r := s.l.rewind.Load()
	if r == nil {
		lost := s.l.World().Counters.Epoch.Loss
		if lost.To == 0 {
			return Rewind{}, false
		}
		r = &Rewind{At: lost.At.Time(), Common: lost.From - 1, Was: lost.To, AtLeast: lost.AtLeast}
	}
	return *r, time.Since(r.At) <= rewindShown
}

// loss is what this replica had seen of a history that the database no longer has.
type loss struct {
	Rewind
	counters mesh.Counters
}

// with returns the loss of both.
func (o *loss) with(p *loss) *loss {
	if o == nil {
		return p
	}
	return &loss{
		Rewind{At: p.At, Common: min(o.Common, p.Common), Was: max(o.Was, p.Was), AtLeast: o.AtLeast || p.AtLeast}, p.counters.AtLeast(o.counters),
	}
}

// recorded reports whether the database has recorded the loss: the revisions after s are
// newer than any that this replica had seen, and so are the ids.
func (o *loss) recorded(s *mesh.Snapshot) bool {
	c := s.Counters
	policies := max(c.Policy, c.LostPolicy) >= max(o.counters.Policy, o.counters.LostPolicy)
	most := c.AtLeast(o.counters)
	most.Policy, most.LostPolicy = c.Policy, c.LostPolicy
	return c.Epoch.Loss.Rev > o.Was && policies && most == c
}

// beginEpoch appends an event that begins a new epoch of the history, if this replica knows
// of a loss that is not recorded yet, or if a standby was promoted since its last
// transaction: another replica may then have seen changes that are lost. Revisions and ids
// of lost changes are not used again. It returns the timeline for which that is done.
func (l *Ledger) beginEpoch(tx store.Tx, id store.BatchID, f *follower) (timeline int64, _ error) {
	s, now := f.draft.Snapshot(), tx.Now()
	promoted := l.timeline != 0 && tx.Timeline() > l.timeline && s.Counters.Epoch.Timeline != tx.Timeline()
	lost := l.loss != nil && !l.loss.recorded(s)
	switch {
	case !promoted && !lost:
		return tx.Timeline(), nil
	case refuseClocks(tx) != nil:
		return l.timeline, nil
	}
	seen, counters, what := s.Rev, s.Counters, mesh.Loss{}
	if lost {
		seen, counters = l.loss.Was, l.loss.counters
		what = mesh.Loss{At: now, From: l.loss.Common + 1, To: l.loss.Was, AtLeast: l.loss.AtLeast}
	}
	e := mesh.NewEpoch(s, seen, counters, tx.Timeline(), what)
	evs, actor := []mesh.Event{e}, mesh.Actor{Kind: mesh.ActorServer}
	audit := l.before(s, now, evs)
	f.applyOne(e.Epoch.Rev, now, id, evs)
	audit = l.after(f.draft.Snapshot(), now, actor, evs, audit)
	_, err := tx.Append(store.Command{Actor: actor, Events: evs, Audit: audit})
	l.log.Warn("new epoch of the history: skipping revisions and IDs", "epoch", e.Epoch.Number, "rev", e.Epoch.Rev, "after", e.Epoch.After, "timeline", tx.Timeline())
	return tx.Timeline(), err
}

func pointOf(s *mesh.Snapshot) store.Point { return store.Point{Rev: s.Rev, Batch: s.Batch} }

// noteRewind reports the revisions that this replica had and the database no longer has.
// trail holds the last batches of this replica. The loss is reported before the database
// is queried for details.
func (l *Ledger) noteRewind(ctx context.Context, old *mesh.Snapshot, now mesh.Revision, trail []store.Point) {
	was := old.Rev
	r := Rewind{At: time.Now(), Was: was, Common: min(now, was-1), AtLeast: true}
	first := r
	l.rewind.Store(&first)
	l.metrics.rewinds.Inc()
	r.Common, r.AtLeast = l.common(ctx, trail, r.Common)
	l.rewind.Store(&r)
	l.loss = l.loss.with(&loss{r, old.Counters})
	l.metrics.lostRevisions.Add(float64(r.Lost()))
	l.log.Error("database went back to an earlier state, acknowledged changes are lost; see the runbook page FairleadHistoryRewound",
		"was", r.Was, "common", r.Common, "rev", now, "lost", r.Lost(), "at_least", r.AtLeast)
}

// common finds the newest revision that this replica and the database have in common. It
// returns at most the revision most, and exactly that if it cannot find out. Revisions
// older than the log are assumed to be common.
func (l *Ledger) common(ctx context.Context, trail []store.Point, most mesh.Revision) (rev mesh.Revision, atLeast bool) {
	var failed error
	n, _ := slices.BinarySearchFunc(trail, true, func(p store.Point, _ bool) int {
		if failed != nil {
			return -1
		}
		_, err := l.store.Tail(ctx, p)
		if errors.Is(err, store.ErrRewound) {
			return 1
		}
		if err != nil && !errors.Is(err, store.ErrPruned) && !errors.Is(err, mesh.ErrUnknownKind) {
			failed = err
		}
		return -1
	})
	if n == 0 || failed != nil {
		return most, true
	}
	return min(most, trail[n-1].Rev), false
}
