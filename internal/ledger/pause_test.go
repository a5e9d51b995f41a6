package ledger_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// looks is a store that counts reads of the log.
type looks struct {
	weak
	count atomic.Int64
}

func (l *looks) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	l.count.Add(1)
	return l.weak.Tail(ctx, after)
}

// In a synctest bubble no goroutine runs while the clock moves, which looks like a pause
// to the ledger.
func TestPauseOfTheProcessHoldsReadersUntilTheLogWasRead(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		st := &looks{weak: weak{Store: openSQLite(t)}}
		l := run(t, ledger.Config{Store: st})
		commit(t, l, mesh.UserPut{User: &mesh.User{ID: 1, Name: "alice"}})
		verified := func() (took time.Duration, looked int64, err error) {
			start, before := time.Now(), st.count.Load()
			err = l.Verified(t.Context())
			synctest.Wait()
			return time.Since(start), st.count.Load() - before, err
		}
		l.ObserveAt(time.Now())
		if took, looked, err := verified(); err != nil || took != 0 || looked != 0 {
			t.Fatalf("without a pause: %v after %v and %d looks", err, took, looked)
		}
		l.ObserveAt(time.Now().Add(-3 * time.Second))
		if _, looked, err := verified(); err != nil || looked == 0 {
			t.Fatalf("after a pause: %v after %d looks at the log", err, looked)
		}
		if took, _, err := verified(); err != nil || took != 0 {
			t.Fatalf("when it has looked: %v after %v", err, took)
		}
		// Without the database, nobody waits longer than two seconds, but the state stays
		// unverified until the log is read.
		st.unread.Store(true)
		l.ObserveAt(time.Now().Add(-3 * time.Second))
		if took, _, err := verified(); !errors.Is(err, ledger.ErrUnavailable) || took < time.Second || took > 3*time.Second {
			t.Fatalf("after a pause and without the database: %v after %v", err, took)
		}
		for range 10 {
			pass(time.Second)
			l.ObserveAt(time.Now())
			if took, _, err := verified(); !errors.Is(err, ledger.ErrUnavailable) || took != 0 {
				t.Fatalf("long after a pause and without the database: %v after %v", err, took)
			}
			if f := l.Status().Freshness(); f.Paused.IsZero() || f.For(time.Now()) != 0 {
				t.Fatalf("long after a pause and without the database: %+v", f)
			}
		}
		st.unread.Store(false)
		pass(2 * time.Second) // without requests
		l.ObserveAt(time.Now())
		if took, looked, err := verified(); err != nil || took != 0 || looked != 0 || !l.Status().Freshness().Paused.IsZero() {
			t.Fatalf("when the database is back: %v after %v and %d looks", err, took, looked)
		}
	})
}
