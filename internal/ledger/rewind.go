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
// revisions that this replica had seen.
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

// Rewound returns the last rewind while it should be reported: for a day, or until
// this process ends.
func (s Status) Rewound() (Rewind, bool) {
	r := s.l.rewind.Load()
	if r == nil || time.Since(r.At) > rewindShown {
		return Rewind{}, false
	}
	return *r, true
}

func pointOf(s *mesh.Snapshot) store.Point { return store.Point{Rev: s.Rev, Batch: s.Batch} }

// noteRewind reports the revisions that this replica had and the database no longer has.
// trail holds the last batches of this replica. The loss is reported before the database
// is queried for details.
func (l *Ledger) noteRewind(ctx context.Context, was, now mesh.Revision, trail []store.Point) {
	r := Rewind{At: time.Now(), Was: was, Common: min(now, was-1), AtLeast: true}
	first := r
	l.rewind.Store(&first)
	l.metrics.rewinds.Inc()
	r.Common, r.AtLeast = l.common(ctx, trail, r.Common)
	l.rewind.Store(&r)
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
