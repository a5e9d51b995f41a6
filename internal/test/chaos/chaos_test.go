package chaos_test

import (
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var duration = flag.Duration("chaos", 0, "how long replicas and PostgreSQL are killed, and try the faults; zero: a few seconds, no faults")

const short = 6 * time.Second

// plan describes one run.
type plan struct {
	duration     time.Duration
	killEvery    time.Duration // interval between kills of a replica; zero means never
	restartEvery time.Duration // interval between restarts of PostgreSQL; zero means never
}

// carryOut runs a plan to its end and passes everything to the checker. It returns the number of replicas
// killed and of database restarts.
func (c *cluster) carryOut(p plan) (kills, restarts int) {
	c.t.Helper()
	following, stop := context.WithCancel(context.Background())
	f := follow(following, c)
	defer func() { stop(); <-f.gone }()
	for slot := range c.replicas {
		c.start(slot)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), p.duration)
	defer cancel()
	var restarting sync.WaitGroup
	restarting.Go(func() { restarts = repeat(ctx, p.restartEvery, c.restartDatabase) })
	kills = repeat(ctx, p.killEvery, c.replace)
	restarting.Wait()
	finals := c.settle(f)
	tables := c.tables()
	c.judge(func(k *chaos.Checker) { k.Finish(tables, finals) })
	return kills, restarts
}

// repeat calls do at an interval until ctx ends, and returns the number of calls.
func repeat(ctx context.Context, every time.Duration, do func(n int)) (n int) {
	if every == 0 {
		<-ctx.Done()
		return 0
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
			do(n)
			n++
		}
	}
}

func startPostgres(t *testing.T, o pgtest.Options) *pgtest.Server {
	t.Helper()
	pg, err := pgtest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

func TestReplicasKeepTheirPromisesWhileKilled(t *testing.T) {
	t.Parallel()
	p := plan{duration: max(short, *duration)}
	p.killEvery, p.restartEvery = min(3*time.Second, p.duration/4), min(40*time.Second, 2*p.duration/3)
	c := newCluster(t, startPostgres(t, pgtest.Options{Durable: true}), build(t), "", 3)
	kills, restarts := c.carryOut(p)
	if found := c.checker.Findings(); len(found) > 0 {
		t.Errorf("%d promises broken", len(found))
	}
	k := c.checker.Tally
	t.Logf("%d revisions, %d replicas killed, %d restarts of PostgreSQL, %+v", c.checker.Rev(), kills, restarts, k)

	// A run in which little happened proves little. On an idle machine, several times as much happens.
	seconds := int(p.duration.Seconds())
	for what, n := range map[string]struct{ got, want int }{
		"kills of a replica":     {kills, int(p.duration/p.killEvery) / 2},
		"restarts of PostgreSQL": {restarts, 1},
		"views of a replica":     {k.Views, 5 * seconds},
		"acknowledged commands":  {k.Answers[chaos.Done], 5 * seconds},
		"refused commands":       {k.Answers[chaos.Refused], seconds / 4},
		"joins, single-use key":  {k.Enrolments[false], seconds / 4},
		"joins, reusable key":    {k.Enrolments[true], seconds / 4},
		"commands already done":  {k.Repeated, seconds / 4},
	} {
		if n.got < n.want {
			t.Errorf("%s: %d, want at least %d", what, n.got, n.want)
		}
	}
	for _, kind := range []mesh.Kind{
		mesh.KindUserPut, mesh.KindUserGone, mesh.KindNodePut, mesh.KindNodeGone, mesh.KindNodeNet, mesh.KindOnline, mesh.KindOffline,
		mesh.KindPreAuthKeyPut, mesh.KindPreAuthKeyGone, mesh.KindAPIKeyPut, mesh.KindAPIKeyGone, mesh.KindAddressCursor,
	} {
		if k.Events[kind] == 0 {
			t.Errorf("no event of kind %s", kind)
		}
	}
}

func TestSeededFaultsAreFound(t *testing.T) {
	if *duration == 0 {
		t.Skip("runs with -chaos=60s")
	}
	t.Parallel()
	pg := startPostgres(t, pgtest.Options{Args: []string{"-c", "max_connections=200"}})
	program := build(t, "-tags", "chaosfault")
	for name, f := range map[string]struct {
		fault  string
		weaken string // a statement that removes a second line of defence
		want   chaos.Sort
	}{
		// The log's primary key stops the second of two writers: nothing is lost, but a command ends in an
		// error that callers do not expect.
		"head not locked":                          {chaos.FaultSkipHeadLock, "", chaos.Error},
		"head not locked and revisions not unique": {chaos.FaultSkipHeadLock, "ALTER TABLE log DROP CONSTRAINT log_pkey", chaos.Log},
		"acknowledged before commit":               {chaos.FaultEarlyAnswer, "", chaos.Lost},
		"entry dropped":                            {chaos.FaultDropEntry, "", chaos.Digest},
		"entries in the wrong order":               {chaos.FaultWrongOrder, "", chaos.Digest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, pg, program, f.fault, 2)
			if f.weaken != "" {
				c.tables() // creates the tables
				pg.Exec(t, c.database, f.weaken)
			}
			c.carryOut(plan{duration: 5 * time.Second})
			found := map[chaos.Sort]int{}
			first := map[chaos.Sort]chaos.Finding{}
			for _, finding := range slices.Backward(c.checker.Findings()) {
				found[finding.Sort]++
				first[finding.Sort] = finding
			}
			t.Logf("%d revisions, findings %v, such as %v", c.checker.Rev(), found, first[f.want])
			if found[f.want] == 0 {
				t.Errorf("no finding of sort %q in %v", f.want, found)
			}
		})
	}
}
