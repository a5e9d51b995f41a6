//go:build !race

package ledger_test

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// TestFigureSoftChangesAtSize checks that three replicas on one PostgreSQL handle a
// thousand changes of endpoints and presence per second in a network of 50,000 nodes, each
// of them durable and acknowledged quickly, and agree at the end.
func TestFigureSoftChangesAtSize(t *testing.T) {
	const nodes, perSecond, seconds = 50_000, 1000, 5
	own := durable(t)
	name := own.Database(t)
	seed := run(t, ledger.Config{Store: openPostgres(t, own, name)})
	commit(t, seed, mesh.UserPut{User: meshgen.User(1)})
	for from := mesh.NodeID(1); from < nodes; from += 1000 {
		var evs []mesh.Event
		for id := from; id < from+1000; id++ {
			evs = append(evs, mesh.NodePut{Node: meshgen.Node(id, 1)}, mesh.NodeNet{ID: id, Net: meshgen.Net(int(id))})
		}
		commit(t, seed, evs...)
	}
	replicas := []*ledger.Ledger{seed}
	for range 2 {
		replicas = append(replicas, run(t, ledger.Config{Store: openPostgres(t, own, name)}))
	}

	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	cpu, start := cpuTime(t), time.Now()
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := range perSecond * seconds {
		<-tick.C
		wg.Go(func() {
			began := time.Now()
			_, err := replicas[i%3].Commit(t.Context(), server, report(mesh.NodeID(1+i*37%nodes), i))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, time.Since(began))
		})
	}
	wg.Wait()
	took := time.Since(start)
	used := cpuTime(t) - cpu
	last := mesh.Revision(0)
	for _, l := range replicas {
		last = max(last, l.World().Rev)
	}
	for i, l := range replicas {
		if err := l.WaitFor(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if l.World().Digest() != seed.World().Digest() {
			t.Errorf("replica %d holds another world", i)
		}
	}
	slices.Sort(waits)
	p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]
	t.Logf("%d changes in %.1f s over 3 replicas at %d nodes: commit p50 %v, p99 %v; %.0f %% of one core for all three",
		len(waits), took.Seconds(), nodes, p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond), 100*used.Seconds()/took.Seconds())
	if took > (seconds+2)*time.Second || p99 > 250*time.Millisecond {
		t.Errorf("too slow: %v in all, p99 %v", took, p99)
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
