package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// overtaken is a store whose database a newer version uses from some time on.
type overtaken struct {
	store.Store
	by atomic.Bool
}

var errOvertaken = fmt.Errorf("%w: format 99", store.ErrTooOld)

func (o *overtaken) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	if o.by.Load() {
		return nil, errOvertaken
	}
	return o.Store.Tail(ctx, after)
}

func TestReplicaThatIsTooOldForTheDatabaseStops(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		st := &overtaken{Store: openSQLite(t)}
		l, err := ledger.Open(t.Context(), ledger.Config{Store: st, Log: quiet(), Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- l.Run(t.Context()) }()
		pass(10 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("it ended before: %v", err)
		default:
		}
		st.by.Store(true)
		if err := <-ended; !errors.Is(err, ledger.ErrTooOld) {
			t.Errorf("it ended with %v", err)
		}
		if _, err := l.Commit(t.Context(), server, addUser("late")); !errors.Is(err, ledger.ErrStopped) {
			t.Errorf("a command is answered with %v", err)
		}
	})
}
