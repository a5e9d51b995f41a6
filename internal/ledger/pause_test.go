package ledger_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// looks counts how often the log is read.
type looks struct {
	weak
	count int
}

func (l *looks) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	l.count++
	return l.weak.Tail(ctx, after)
}

// In a bubble nobody runs while the clock is moved: to the ledger that is a pause.
func TestPauseOfTheProcessHoldsReadersUntilTheLogWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &looks{weak: weak{Store: openSQLite(t)}}
		l := run(t, ledger.Config{Store: st})
		commit(t, l, mesh.UserPut{User: &mesh.User{ID: 1, Name: "alice"}})
		verified := func() (took time.Duration, looked int, err error) {
			start, before := time.Now(), st.count
			err = l.Verified(t.Context())
			synctest.Wait()
			return time.Since(start), st.count - before, err
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
		// An outage is known after two seconds, and then holds nobody up.
		st.unread.Store(true)
		l.ObserveAt(time.Now().Add(-3 * time.Second))
		if took, _, err := verified(); err == nil || took < time.Second || took > 3*time.Second {
			t.Fatalf("after a pause and without the database: %v after %v", err, took)
		}
		l.ObserveAt(time.Now())
		if took, _, err := verified(); err != nil || took != 0 {
			t.Fatalf("in an outage that is known: %v after %v", err, took)
		}
	})
}
