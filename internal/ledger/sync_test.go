package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// deaf is a store that receives no notifications from other replicas.
type deaf struct{ store.Store }

func (deaf) Changed() <-chan struct{} { return nil }

func TestSyncSeesAllThatWasCommittedBefore(t *testing.T) {
	name := pg.Database(t)
	writer := run(t, ledger.Config{Store: openPostgres(t, pg, name)})
	reader := run(t, ledger.Config{Store: deaf{openPostgres(t, pg, name)}})
	for id := mesh.UserID(1); id <= 20; id++ {
		rev := commit(t, writer, mesh.UserPut{User: meshgen.User(id)})
		if err := reader.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := reader.World().Rev; got < rev {
			t.Fatalf("after Sync at %d, another replica had committed %d", got, rev)
		}
	}
}

func TestSyncSaysThatItCouldNotLook(t *testing.T) {
	st := openPostgres(t, pg, pg.Database(t))
	l := run(t, ledger.Config{Store: st})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(t.Context()); err == nil {
		t.Fatal("Sync without a database says that it saw everything")
	}
}

func TestReplicaThatMustLoadIsUnavailableMeanwhile(t *testing.T) {
	name := pg.Database(t)
	writer := run(t, ledger.Config{Store: openPostgres(t, pg, name)})
	late, err := ledger.Open(t.Context(), ledger.Config{Store: openPostgres(t, pg, name), Log: quiet(), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, writer, mesh.UserPut{User: meshgen.User(1)})
	pg.Exec(t, name, "DELETE FROM log")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = late.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	// The replica has just reloaded its state and may not do so again yet.
	if _, err := late.Commit(t.Context(), server, addUser("late")); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrPruned) {
		t.Fatalf("answered %v", err)
	}
}
