//go:build !race

package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

const (
	ratioNodes   = 1000
	ratioCallers = 64
	ratioRounds  = 6
	ratioTime    = time.Second
)

// TestRatioGroupCommit checks, in one run with fsync on, that 64 callers commit at least
// ten times as fast together as one by one, and at least half as fast as a plain loop that
// writes the same rows in batches of 64.
func TestRatioGroupCommit(t *testing.T) {
	own := durable(t)
	name := own.Database(t)
	var evs []mesh.Event
	for id := range mesh.NodeID(ratioNodes) {
		evs = append(evs, mesh.NodePut{Node: meshgen.Node(id+1, 1)}, mesh.NodeNet{ID: id + 1, Net: meshgen.Net(1)})
	}
	t.Run("seed", func(t *testing.T) {
		seed := run(t, ledger.Config{Store: openPostgres(t, own, name)})
		commit(t, seed, mesh.UserPut{User: meshgen.User(1)})
		commit(t, seed, evs...)
	})
	// The three take turns, and the best round counts: other load on the machine can only
	// make a round slower.
	var overOne, overBare float64
	for round := 0; round < ratioRounds && (overOne < 10 || overBare < 0.5); round++ {
		var one, group, bare float64
		t.Run("one by one", func(t *testing.T) {
			one = rate(t, run(t, ledger.Config{Store: openPostgres(t, own, name), BatchLimit: 1}))
		})
		t.Run("together", func(t *testing.T) {
			group = rate(t, run(t, ledger.Config{Store: openPostgres(t, own, name)}))
		})
		t.Run("bare loop", func(t *testing.T) { bare = bareRate(t, own, name) })
		t.Logf("commits per second: one by one %.0f, together %.0f, bare loop %.0f; ratios %.1f and %.2f", one, group, bare, group/one, group/bare)
		overOne, overBare = max(overOne, group/one), max(overBare, group/bare)
	}
	if overOne < 10 {
		t.Errorf("group commit is only %.1f times as fast", overOne)
	}
	if overBare < 0.5 {
		t.Errorf("the ledger reaches only %.0f %% of a bare loop", 100*overBare)
	}
}

func rate(t *testing.T, l *ledger.Ledger) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ratioTime)
	defer cancel()
	var wg sync.WaitGroup
	done := make([]int, ratioCallers)
	start := time.Now()
	for i := range ratioCallers {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n += ratioCallers {
				if _, err := l.Commit(t.Context(), server, report(mesh.NodeID(1+n%ratioNodes), n)); err != nil {
					t.Error(err)
					return
				}
				done[i]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / time.Since(start).Seconds()
}

// bareRate writes the same rows with pgx alone and returns how many changes it writes per
// second.
func bareRate(t *testing.T, own *pgtest.Server, name string) float64 {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, own.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var rev int64
	if err := conn.QueryRow(ctx, "SELECT rev FROM head").Scan(&rev); err != nil {
		t.Fatal(err)
	}
	start, count := time.Now(), 0
	for time.Since(start) < ratioTime {
		var ids, relays, revs, ats []int64
		var endpoints, discos, actors []string
		var batches, events [][]byte
		for range ratioCallers {
			n := count
			count++
			rev++
			net := meshgen.Net(n)
			data, err := mesh.EncodeEvents([]mesh.Event{mesh.NodeNet{ID: mesh.NodeID(1 + n%ratioNodes), Net: net}})
			if err != nil {
				t.Fatal(err)
			}
			ids, relays = append(ids, int64(1+n%ratioNodes)), append(relays, int64(net.HomeRelay))
			endpoints, discos = append(endpoints, fmt.Sprint(net.Endpoints[0], ",", net.Endpoints[1])), append(discos, net.DiscoKey.String())
			revs, ats, actors = append(revs, rev), append(ats, start.UnixMicro()), append(actors, `{"kind":"server"}`)
			batches, events = append(batches, make([]byte, 16)), append(events, data)
		}
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(`INSERT INTO node_net (id, endpoints, disco_key, home_relay) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, disco_key = excluded.disco_key, home_relay = excluded.home_relay`, ids, endpoints, discos, relays)
		b.Queue("INSERT INTO log (rev, batch, prev, at, actor, events) SELECT * FROM unnest($1::bigint[], $2::bytea[], $2::bytea[], $3::bigint[], $4::text[], $5::bytea[])", revs, batches, ats, actors, events)
		b.Queue("UPDATE head SET rev = $1 WHERE id = 1", rev)
		b.Queue("COMMIT")
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	return float64(count) / time.Since(start).Seconds()
}
