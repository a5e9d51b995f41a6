package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Restoring a backup under running replicas results in a log with the same revisions and
// different content. A replica that missed the change must notice it before it decides
// anything.
func TestReplacedHistoryIsNoticed(t *testing.T) {
	for name, more := range map[string]int{"at the same revision": 0, "further on": 3} {
		t.Run(name, func(t *testing.T) {
			db := pg.Database(t)
			st := &asleep{Store: openPostgres(t, pg, db)}
			stalled := run(t, ledger.Config{Store: st})
			other := run(t, ledger.Config{Store: openPostgres(t, pg, db)})
			commit(t, other, mesh.UserPut{User: meshgen.User(1)})
			for id := range mesh.UserID(3) {
				commit(t, other, mesh.UserPut{User: &mesh.User{ID: id + 2, Name: fmt.Sprint("before", id)}})
			}
			if err := stalled.WaitFor(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
			st.sleeping.Store(true)
			// The backup of revision 1 is restored, and work continues.
			pg.Exec(t, db, "DELETE FROM users WHERE id > 1")
			pg.Exec(t, db, "DELETE FROM log WHERE rev > 1")
			pg.Exec(t, db, `UPDATE head SET rev = 1, batch = (SELECT batch FROM log WHERE rev = 1), counters = '{"user":1,"node":0,"preAuth":0,"api":0,"v4":"","v6":""}'`)
			eventually(t, "the other replica reads the backup and begins a new epoch", func() bool { return other.World().Counters.Epoch.Number == 1 })
			if w := other.World(); w.Rev != 4+mesh.Skipped+1 || w.Counters.User != 4+mesh.SkippedIDs {
				t.Errorf("revision %d and user %d are not after those that were lost", w.Rev, w.Counters.User)
			}
			for id := range mesh.UserID(3 + more) {
				commit(t, other, mesh.UserPut{User: &mesh.User{ID: other.World().Counters.User + 1, Name: fmt.Sprint("after", id)}})
			}
			if r, ok := other.Status().Rewound(); !ok || r.Was != 4 || r.Common != 1 || r.AtLeast || r.Lost() != 3 {
				t.Fatalf("the other replica reports %+v (%v)", r, ok)
			}
			st.sleeping.Store(false)
			eventually(t, "the stalled replica reports what was lost, without being asked", func() bool {
				r, ok := stalled.Status().Rewound()
				return ok && r.Was == 4 && r.Common == 1 && !r.AtLeast
			})
			eventually(t, "a command of the stalled replica is decided on the new history", func() bool {
				_, err := stalled.Commit(t.Context(), server, addUser("after0"))
				return errors.Is(err, errTaken)
			})
			if e := stalled.World().Counters.Epoch; e.Number != 1 || e.Loss.From != 2 || e.Loss.To != 4 {
				t.Errorf("one loss results in %+v", e)
			}
			if err := other.Sync(t.Context()); err != nil {
				t.Error(err)
			}
			if stalled.World().Digest() != other.World().Digest() {
				t.Fatal("the replicas hold different snapshots")
			}
		})
	}
}

// A replica that had not seen the lost changes begins an epoch too when a standby was
// promoted, so that it does not assign the same ids again before the other replicas notice.
func TestPromotionBeginsAnEpoch(t *testing.T) {
	st := &promotable{Store: openSQLite(t)}
	st.timeline.Store(1)
	l := run(t, ledger.Config{Store: st})
	commit(t, l, mesh.UserPut{User: meshgen.User(1)})
	commit(t, l, mesh.UserPut{User: meshgen.User(2)})
	if rev := l.World().Rev; rev != 2 {
		t.Fatalf("at revision %d without a promotion", rev)
	}
	st.timeline.Store(2)
	for _, want := range []mesh.Revision{2 + mesh.Skipped + 2, 2 + mesh.Skipped + 3} {
		if rev, err := l.Commit(t.Context(), server, addUser(fmt.Sprint("user", want))); err != nil || rev != want {
			t.Fatalf("after the promotion: revision %d, want %d (%v)", rev, want, err)
		}
	}
	if _, lost := l.Status().Rewound(); lost {
		t.Error("a loss is reported, but nothing was lost")
	}
	// The log can be followed across the gap, and the tables hold the same state.
	again := run(t, ledger.Config{Store: st})
	if again.World().Digest() != l.World().Digest() {
		t.Error("the tables differ from the state")
	}
	entries, err := st.Tail(t.Context(), store.Point{Rev: 1})
	if err != nil || len(entries) != 4 {
		t.Errorf("%d entries after the first: %v", len(entries), err)
	}
}

// promotable is a store with a timeline.
type promotable struct {
	store.Store
	timeline atomic.Int64
}

func (p *promotable) Lock(ctx context.Context, after mesh.Revision, id store.BatchID, fn func(store.Tx) error) error {
	return p.Store.Lock(ctx, after, id, func(tx store.Tx) error { return fn(onTimeline{tx, p.timeline.Load()}) })
}

type onTimeline struct {
	store.Tx
	timeline int64
}

func (t onTimeline) Timeline() int64 { return t.timeline }

// asleep is a store whose log can be made unreadable, as if the replica were paused.
type asleep struct {
	store.Store
	sleeping atomic.Bool
}

func (a *asleep) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	if a.sleeping.Load() {
		return nil, fmt.Errorf("%w: asleep", store.ErrUnavailable)
	}
	return a.Store.Tail(ctx, after)
}

func TestUnknownOutcomeDoesNotHoldUpOthersForEver(t *testing.T) {
	st := &gone{Store: openSQLite(t)}
	l := run(t, ledger.Config{Store: st})
	st.away.Store(true)
	start := time.Now()
	if _, err := l.Commit(t.Context(), server, addUser("alice")); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("a commit whose answer never came: %v", err)
	}
	if waited := time.Since(start); waited > 15*time.Second {
		t.Fatalf("the caller waited for %v", waited)
	}
	st.away.Store(false)
	if _, err := l.Commit(t.Context(), server, addUser("bob")); err != nil {
		t.Fatalf("when the database is back: %v", err)
	}
}

// gone is a store whose first commit returns no result and which is unavailable after that.
type gone struct {
	store.Store
	away atomic.Bool
	lost atomic.Bool
}

func (g *gone) Lock(ctx context.Context, after mesh.Revision, id store.BatchID, fn func(store.Tx) error) error {
	switch {
	case !g.away.Load():
		return g.Store.Lock(ctx, after, id, fn)
	case g.lost.CompareAndSwap(false, true):
		return store.ErrUnknownOutcome
	}
	return store.ErrUnavailable
}

// If a batch cannot be written, all of its commands fail as unavailable. None is refused
// because of a name that only another command of the batch takes.
func TestRefusalOfALostBatchIsNotBelieved(t *testing.T) {
	st := &full{Store: openSQLite(t)}
	l := run(t, ledger.Config{Store: st})
	st.full.Store(true)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := l.Commit(t.Context(), server, addUser("alice")); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a command of a batch that was not written: %v", err)
			}
		})
	}
	wg.Wait()
}

// full is a store that can be locked but not written to.
type full struct {
	store.Store
	full atomic.Bool
}

func (f *full) Lock(ctx context.Context, after mesh.Revision, id store.BatchID, fn func(store.Tx) error) error {
	return f.Store.Lock(ctx, after, id, func(tx store.Tx) error {
		if err := fn(tx); err != nil || !f.full.Load() {
			return err
		}
		return fmt.Errorf("%w: no space left on device", store.ErrUnavailable)
	})
}
