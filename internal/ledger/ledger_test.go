package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var pg *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s }))
}

var (
	server   = mesh.Actor{Kind: mesh.ActorServer}
	errTaken = errors.New("taken")
	prefix4  = netip.MustParsePrefix("100.64.0.0/10")
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openPostgres(t testing.TB, s *pgtest.Server, database string) store.Store {
	t.Helper()
	st, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresConfig{
		Host: s.Host, Port: s.Port, Name: database, User: s.User, SSLMode: "disable",
	}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func openSQLite(t testing.TB) store.Store {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// durable starts a separate PostgreSQL server with fsync on.
func durable(t testing.TB) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run starts a ledger with all its loops until the test ends.
func run(t testing.TB, c ledger.Config) *ledger.Ledger {
	t.Helper()
	if c.Log == nil {
		c.Log = quiet()
	}
	c.Registerer = prometheus.NewRegistry()
	l, err := ledger.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context) error{l.Run, l.SendHeartbeats, c.Store.Watch} {
		wg.Go(func() {
			if err := loop(ctx); err != nil {
				t.Errorf("loop: %v", err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l
}

// engines runs a test on a ledger over each engine.
func engines(t *testing.T, test func(t *testing.T, l *ledger.Ledger, st store.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		st := openSQLite(t)
		test(t, run(t, ledger.Config{Store: st}), st)
	})
	t.Run("postgres", func(t *testing.T) {
		st := openPostgres(t, pg, pg.Database(t))
		test(t, run(t, ledger.Config{Store: st}), st)
	})
}

func commit(t testing.TB, l *ledger.Ledger, evs ...mesh.Event) mesh.Revision {
	t.Helper()
	rev, err := l.Commit(t.Context(), server, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil })
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func addUser(name string) ledger.Decide {
	return func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if _, ok := w.Users.ByName(name); ok {
			return nil, errTaken
		}
		return []mesh.Event{mesh.UserPut{User: &mesh.User{ID: w.Counters.User + 1, Name: name, CreatedAt: now}}}, nil
	}
}

// newNode returns a command that creates a node with the next address and a free name.
func newNode(seed uint64) ledger.Decide {
	return func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		id := w.Counters.Node + 1
		n := meshgen.Node(id, 1)
		n.MachineKey, n.NodeKey, n.Name = meshgen.MachineKey(seed), meshgen.NodeKey(seed), w.UniqueName("laptop", id)
		v4, err := w.NextAddr(prefix4, w.Counters.V4)
		if err != nil {
			return nil, err
		}
		n.IPv4, n.CreatedAt = v4, now
		return []mesh.Event{mesh.NodePut{Node: n}, mesh.AddressCursor{V4: v4, V6: n.IPv6}}, nil
	}
}

func report(id mesh.NodeID, n int) ledger.Decide {
	return func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
		if _, ok := w.Nodes.Get(id); !ok {
			return nil, errTaken
		}
		return []mesh.Event{mesh.NodeNet{ID: id, Net: meshgen.Net(n)}}, nil
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

func TestCallerReadsItsOwnWrite(t *testing.T) {
	engines(t, func(t *testing.T, l *ledger.Ledger, st store.Store) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				name := fmt.Sprint("user", i)
				rev, err := l.Commit(t.Context(), server, addUser(name))
				if err != nil {
					t.Error(err)
					return
				}
				if w := l.World(); w.Rev < rev {
					t.Errorf("committed %d, world is at %d", rev, w.Rev)
				} else if _, ok := w.Users.ByName(name); !ok {
					t.Errorf("%s not visible after its commit", name)
				}
			})
		}
		wg.Wait()
		loaded, err := st.Load(t.Context())
		if err != nil || loaded.Digest() != l.World().Digest() {
			t.Fatalf("the tables hold something else than the world (%v)", err)
		}
	})
}

func TestRefusalAndPanicHurtOnlyTheirCommand(t *testing.T) {
	engines(t, func(t *testing.T, l *ledger.Ledger, _ store.Store) {
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				switch i % 3 {
				case 0:
					if _, err := l.Commit(t.Context(), server, addUser(fmt.Sprint("user", i))); err != nil {
						t.Error(err)
					}
				case 1:
					_, err := l.Commit(t.Context(), server, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return nil, errTaken })
					if !errors.Is(err, errTaken) {
						t.Errorf("refusal came back as %v", err)
					}
				default:
					_, err := l.Commit(t.Context(), server, func(*policy.World, mesh.Time) ([]mesh.Event, error) { panic("boom") })
					if err == nil || !strings.Contains(err.Error(), "boom") {
						t.Errorf("panic came back as %v", err)
					}
				}
			})
		}
		wg.Wait()
		if n := l.World().Users.Len(); n != 20 {
			t.Fatalf("%d users, want 20", n)
		}
	})
}

// Law 5: after any interleaving, all replicas at revision N have equal snapshots.
func TestReplicasAgreeAndGiveNothingTwice(t *testing.T) {
	name := pg.Database(t)
	var ls []*ledger.Ledger
	for range 3 {
		ls = append(ls, run(t, ledger.Config{Store: openPostgres(t, pg, name)}))
	}
	commit(t, ls[0], mesh.UserPut{User: meshgen.User(1)})
	var wg sync.WaitGroup
	for r, l := range ls {
		for i := range 60 {
			wg.Go(func() {
				if _, err := l.Commit(t.Context(), server, newNode(uint64(r*1000+i))); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				_, err := l.Commit(t.Context(), server, report(mesh.NodeID(1+i), r*1000+i))
				if err != nil && !errors.Is(err, errTaken) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	newest := mesh.Revision(0)
	for _, l := range ls {
		newest = max(newest, l.World().Rev)
	}
	addrs, names := map[netip.Addr]bool{}, map[string]bool{}
	for i, l := range ls {
		if err := l.WaitFor(t.Context(), newest); err != nil {
			t.Fatal(err)
		}
		if l.World().Digest() != ls[0].World().Digest() {
			t.Fatalf("replica %d differs", i)
		}
	}
	for n := range ls[0].World().Nodes.All() {
		if addrs[n.IPv4] || names[n.Name] {
			t.Fatalf("%s or %s was given twice", n.IPv4, n.Name)
		}
		addrs[n.IPv4], names[n.Name] = true, true
	}
	if len(addrs) != 180 {
		t.Fatalf("%d nodes, want 180", len(addrs))
	}
}

func TestReplicasSeeEachOther(t *testing.T) {
	name := pg.Database(t)
	a := run(t, ledger.Config{Store: openPostgres(t, pg, name), Self: store.Report{ID: "a", Version: "1"}})
	b := run(t, ledger.Config{Store: openPostgres(t, pg, name), Self: store.Report{ID: "b", Version: "2"}})
	eventually(t, "both replicas report", func() bool { return len(a.Cluster().Replicas()) == 2 && len(b.Cluster().Replicas()) == 2 })
	eventually(t, "both report the digest of a quiet world", func() bool {
		rs := a.Cluster().Replicas()
		return rs[0].Digest != "" && rs[0].Digest == rs[1].Digest
	})
}

// outcome wraps a store whose connection is lost during one commit.
type outcome struct {
	store.Store
	lose func(committed bool) // called once, then nil
	keep bool                 // whether the lost commit took place
}

func (o *outcome) Lock(ctx context.Context, after mesh.Revision, id store.BatchID, fn func(store.Tx) error) error {
	lose := o.lose
	if lose == nil {
		return o.Store.Lock(ctx, after, id, fn)
	}
	o.lose = nil
	lost := errors.New("cut")
	err := o.Store.Lock(ctx, after, id, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if !o.keep {
			return lost
		}
		return nil
	})
	lose(o.keep)
	if err == nil || errors.Is(err, lost) {
		return fmt.Errorf("%w: cut", store.ErrUnknownOutcome)
	}
	return err
}

func TestUnknownOutcomeIsLookedUpInTheLog(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed=%v", kept), func(t *testing.T) {
			name := pg.Database(t)
			other := run(t, ledger.Config{Store: openPostgres(t, pg, name)})
			st := &outcome{Store: openPostgres(t, pg, name), keep: kept}
			st.lose = func(bool) { commit(t, other, mesh.UserPut{User: meshgen.User(50)}) } // another replica commits in the meantime
			l := run(t, ledger.Config{Store: st})
			rev, err := l.Commit(t.Context(), server, addUser("alice"))
			_, found := l.World().Users.ByName("alice")
			switch {
			case kept && (err != nil || !found || rev != 1):
				t.Fatalf("committed, but the caller hears %v (revision %d, visible %v)", err, rev, found)
			case !kept && (!errors.Is(err, store.ErrUnavailable) || found):
				t.Fatalf("not committed, but the caller hears %v (visible %v)", err, found)
			}
			if _, err := l.Commit(t.Context(), server, addUser("bob")); err != nil {
				t.Fatalf("the next command: %v", err)
			}
		})
	}
}

func TestLedgerSurvivesAnOutage(t *testing.T) {
	own := durable(t)
	l := run(t, ledger.Config{Store: openPostgres(t, own, own.Database(t))})
	commit(t, l, mesh.UserPut{User: meshgen.User(1)})
	if err := own.Pause("immediate"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outage is noticed", func() bool {
		return l.Status().Health() != nil && strings.Contains(l.Status().Health().Error(), "failed to connect to database")
	})
	if _, err := l.Commit(t.Context(), server, addUser("alice")); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a commit during the outage: %v", err)
	}
	if l.World().Users.Len() != 1 {
		t.Fatal("reads must go on during an outage")
	}
	if err := own.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "health returns", func() bool { return l.Status().Health() == nil })
	if _, err := l.Commit(t.Context(), server, addUser("alice")); err != nil {
		t.Fatalf("a commit after the outage: %v", err)
	}
}

func TestPrunedLogAndUnknownKindAreMetByLoading(t *testing.T) {
	for name, spoil := range map[string]string{
		"pruned":       "DELETE FROM log WHERE rev < 6",
		"unknown kind": `UPDATE log SET events = convert_to('[{"k":"moon.landed","d":{}}]', 'UTF8') WHERE rev = 6`,
	} {
		t.Run(name, func(t *testing.T) {
			db := pg.Database(t)
			writer := run(t, ledger.Config{Store: openPostgres(t, pg, db)})
			commit(t, writer, mesh.UserPut{User: meshgen.User(1)})
			st := openPostgres(t, pg, db)
			reader, err := ledger.Open(t.Context(), ledger.Config{Store: st, Log: quiet(), Registerer: prometheus.NewRegistry()})
			if err != nil {
				t.Fatal(err)
			}
			cursor := reader.Cursor()
			for id := range mesh.UserID(8) {
				commit(t, writer, mesh.UserPut{User: meshgen.User(id + 2)})
			}
			pg.Exec(t, db, spoil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { _ = reader.Run(ctx) })
			defer wg.Wait()
			defer cancel()
			if err := reader.WaitFor(t.Context(), 9); err != nil {
				t.Fatal(err)
			}
			if reader.World().Digest() != writer.World().Digest() {
				t.Fatal("the reader holds another world")
			}
			<-cursor.More()
			if touched := cursor.Skip(); touched != nil {
				t.Fatalf("after a load the touched nodes are unknown, not %v", touched)
			}
		})
	}
}

func TestCursorNamesEveryTouchedNode(t *testing.T) {
	l := run(t, ledger.Config{Store: openSQLite(t)})
	commit(t, l, mesh.UserPut{User: meshgen.User(1)})
	var evs []mesh.Event
	for id := range mesh.NodeID(400) {
		evs = append(evs, mesh.NodePut{Node: meshgen.Node(id+1, 1)})
	}
	last := commit(t, l, evs...)
	cursor := l.Cursor()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 300 {
			if _, err := l.Commit(t.Context(), server, report(mesh.NodeID(1+rand.IntN(40)), i)); err != nil {
				t.Error(err)
			}
		}
	})
	for cursor.World().Rev < last+300 {
		<-cursor.More()
		from := cursor.World()
		touched := cursor.Skip()
		if touched == nil {
			continue
		}
		for n := range cursor.World().Nodes.All() {
			if old, _ := from.Nodes.Get(n.ID); old != n && !slices.Contains(touched, n.ID) {
				t.Fatalf("node %d changed between %d and %d and is not named", n.ID, from.Rev, cursor.World().Rev)
			}
		}
	}
	wg.Wait()
}

// Nil would mean that any node may have changed.
func TestCursorKnowsThatNoNodeWasTouched(t *testing.T) {
	l := run(t, ledger.Config{Store: openSQLite(t)})
	cursor, latest := l.Cursor(), l.Cursor()
	for id := range mesh.UserID(2) {
		rev := commit(t, l, mesh.UserPut{User: meshgen.User(id + 1)})
		for latest.World().Rev < rev { // each commit is announced by itself
			<-latest.More()
			latest.Skip()
		}
	}
	if touched := cursor.Skip(); touched == nil || len(touched) > 0 {
		t.Errorf("touched nodes: %#v", touched)
	}
}

func TestCommitsAreAnnouncedWhileTheDatabaseIsBlocked(t *testing.T) {
	st := blockedSQLite(t)
	l := run(t, ledger.Config{Store: st, Pace: func() time.Duration { return time.Second }})
	commit(t, l, mesh.UserPut{User: meshgen.User(1)})
	cursor := l.Cursor()
	last := commit(t, l, mesh.UserPut{User: meshgen.User(2)}) // to be announced a second after the first one
	defer st.block()()
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() { _, _ = l.Commit(ctx, server, addUser("late")) }) // cancelled
	late := time.After(5 * time.Second)
	for cursor.World().Rev < last {
		select {
		case <-cursor.More():
			cursor.Skip()
		case <-late:
			t.Fatal("not announced")
		}
	}
}

func TestStoppedLedgerAnswersAndLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	st := openSQLite(t)
	l, err := ledger.Open(t.Context(), ledger.Config{Store: st, Log: quiet(), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	commit(t, l, mesh.UserPut{User: meshgen.User(1)})
	cancel()
	wg.Wait()
	if _, err := l.Commit(t.Context(), server, addUser("late")); !errors.Is(err, ledger.ErrStopped) {
		t.Fatalf("commit after stop: %v", err)
	}
	if err := l.WaitFor(t.Context(), 99); !errors.Is(err, ledger.ErrStopped) {
		t.Fatalf("wait after stop: %v", err)
	}
	if err := l.Sync(t.Context()); !errors.Is(err, ledger.ErrStopped) {
		t.Fatalf("sync after stop: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}
