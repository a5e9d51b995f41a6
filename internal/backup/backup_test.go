package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var pg *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s }))
}

// engines holds functions that create an empty database of each engine.
var engines = map[string]func(t testing.TB) Database{
	"sqlite": func(t testing.TB) Database {
		return Database{SQLite: filepath.Join(t.TempDir(), "db.sqlite")}
	},
	"postgres": func(t testing.TB) Database {
		return Database{Postgres: Postgres{Host: pg.Host, Port: pg.Port, Name: pg.Database(t), User: pg.User, SSLMode: "disable"}}
	},
}

// eachPair runs a test for every combination of source and target engine.
func eachPair(t *testing.T, test func(t *testing.T, from, to Database)) {
	for a, from := range engines {
		for b, to := range engines {
			t.Run(a+" to "+b, func(t *testing.T) { test(t, from(t), to(t)) })
		}
	}
}

// database is an open store of either engine.
type database interface {
	store.Store
	history.Store
}

func openStore(t testing.TB, d Database) (s database) {
	t.Helper()
	var err error
	if d.SQLite != "" {
		s, err = sqlstore.OpenSQLite(t.Context(), d.SQLite, prometheus.NewRegistry())
	} else {
		s, err = sqlstore.OpenPostgres(t.Context(), d.Postgres, prometheus.NewRegistry())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t testing.TB, d Database) *mesh.Snapshot {
	t.Helper()
	s := openStore(t, d)
	defer s.Close()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// rebuild fills all tables of a schema version with generated rows. It relies only on
// column types, so it also covers tables added by later migrations. Long tables get more than one batch of inserts.
func rebuild(t testing.TB, d Database, version int64, rows int, long ...string) {
	t.Helper()
	raw, err := sqlstore.OpenRaw(t.Context(), d, sqlstore.Fill)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	err = raw.Rebuild(t.Context(), version, func(b *sqlstore.Rebuilding) error {
		for _, table := range b.Tables {
			n := rows
			switch {
			case table.Name == "head":
				n = 1
			case slices.Contains(long, table.Name):
				n = 600
			}
			var list [][]any
			for i := range n {
				list = append(list, anyRow(table, i))
			}
			if err := b.Insert(t.Context(), table, list); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func anyRow(table sqlstore.Table, i int) []any {
	texts := []string{"", "ä\n\"\\<&>\u2028 \U0001f600", "'; DROP TABLE users; --", strings.Repeat("long ", 300)}
	numbers := []int64{0, math.MaxInt64, math.MinInt64, 1<<53 + 1}
	blobs := [][]byte{{}, {0, 0xff, '\n'}, bytes.Repeat([]byte{7}, 1000)}
	row := make([]any, len(table.Columns))
	for j, c := range table.Columns {
		key := strings.Contains(","+strings.Join(table.Key, ",")+",", ","+c.Name+",")
		switch {
		case c.Name == "actor":
			row[j] = `{"kind":"server"}`
		case table.Name == "head" && c.Name == "counters":
			row[j] = `{"user":3,"later":9}`
		case c.Type == "text" && key:
			row[j] = fmt.Sprintf("%c-%d", "aZ_é."[i%5], i)
		case c.Type == "text":
			row[j] = texts[i%len(texts)]
		case c.Type == "blob":
			row[j] = blobs[i%len(blobs)]
		case key || table.Name == "head":
			row[j] = int64(i + 1)
		default:
			row[j] = numbers[i%len(numbers)]
		}
	}
	return row
}

func take(t testing.TB, d Database, o Options) ([]byte, *Summary) {
	t.Helper()
	var b bytes.Buffer
	s, err := Write(t.Context(), d, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

func restore(t testing.TB, backup []byte, to Target, identities ...age.Identity) *Summary {
	t.Helper()
	s, err := Restore(t.Context(), bytes.NewReader(backup), identities, to)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replace(Contents) error { return nil }

func newest(t testing.TB) int64 {
	t.Helper()
	v, err := sqlstore.NewestSchema()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEveryTableComesBackInEitherEngine(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to Database) {
		rebuild(t, from, newest(t), 40)
		backup, made := take(t, from, Options{Product: "1.2.3", Now: time.Unix(1_800_000_000, 5)})
		read, err := Verify(bytes.NewReader(backup), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made, read); diff != "" {
			t.Fatalf("written (-) and read (+):\n%s", diff)
		}
		restore(t, backup, Target{Database: to})
		_, again := take(t, to, Options{})
		if diff := cmp.Diff(made.Tables, again.Tables); diff != "" {
			t.Fatalf("backed up (-) and restored (+):\n%s", diff)
		}
		for name, sum := range again.Tables {
			if sum.Rows != 40 && name != "head" {
				t.Errorf("%s has %d rows", name, sum.Rows)
			}
		}
	})
}

// A backup taken under load is consistent: restoring it, into either engine, gives exactly
// the state of the mesh at one revision.
func TestBackupUnderLoadIsOfOneMoment(t *testing.T) {
	for name, fresh := range engines {
		t.Run(name, func(t *testing.T) {
			from := fresh(t)
			s := openStore(t, from)
			defer s.Close()
			digests := sync.Map{}
			commit := func(r *rand.Rand, now *mesh.Snapshot, n int) *mesh.Snapshot {
				events, next := meshgen.History(r, now, n)
				storetest.Append(t, s, events...)
				digests.Store(next.Rev, next.Digest())
				return next
			}
			r := rand.New(rand.NewPCG(1, 2))
			now := commit(r, mesh.Empty(), 1000)
			stop, stopped := context.WithCancel(t.Context())
			var writing sync.WaitGroup
			writing.Go(func() {
				for stop.Err() == nil {
					now = commit(r, now, 1)
				}
			})
			var backups [][]byte
			for first := mesh.Revision(0); len(backups) < 5; {
				backup, sum := take(t, from, Options{})
				if sum.Rev != first {
					backups, first = append(backups, backup), sum.Rev
				}
			}
			stopped()
			writing.Wait()
			for name, fresh := range engines {
				to := fresh(t)
				for _, backup := range backups {
					sum := restore(t, backup, Target{Database: to, Replace: replace})
					got := load(t, to)
					if want, _ := digests.Load(sum.Rev); got.Rev != sum.Rev || got.Digest() != want {
						t.Fatalf("%s: revision %d of a backup of %d has another digest than the network had", name, got.Rev, sum.Rev)
					}
				}
			}
		})
	}
}

// Each older version is restored into both engines. The source engine alternates, because
// TestEveryTableComesBackInEitherEngine shows that backups do not depend on it.
func TestBackupOfEveryOlderVersionIsRestored(t *testing.T) {
	sources := []string{"sqlite", "postgres"}
	for version := range newest(t) {
		from := engines[sources[version%2]](t)
		rebuild(t, from, version+1, 3)
		backup, _ := take(t, from, Options{})
		for name, fresh := range engines {
			t.Run(fmt.Sprintf("%d to %s", version+1, name), func(t *testing.T) {
				to := fresh(t)
				restore(t, backup, Target{Database: to})
				_, sum := take(t, to, Options{})
				if sum.Schema != newest(t) || sum.Tables["users"].Rows != 3 {
					t.Fatalf("restored: %+v", sum)
				}
				if err := openStore(t, to).Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestNewerBackupIsRefused(t *testing.T) {
	for what, header := range map[string]Header{
		"tables": {Format: formatName, Version: formatVersion, Product: "9.9", Schema: newest(t) + 1},
		"format": {Format: formatName, Version: formatVersion + 1, Product: "9.9", Schema: 1},
	} {
		to := engines["sqlite"](t)
		_, err := Restore(t.Context(), bytes.NewReader(compressed(t, lines(t, header))), nil, Target{Database: to})
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "fairlead 9.9") {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(to.SQLite); err == nil {
			t.Errorf("%s: a database was made", what)
		}
	}
}

func TestFullDatabaseIsNotReplacedUnasked(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to Database) {
		rebuild(t, from, newest(t), 3)
		rebuild(t, to, newest(t), 5)
		backup, _ := take(t, from, Options{})
		_, before := take(t, to, Options{})
		_, err := Restore(t.Context(), bytes.NewReader(backup), nil, Target{Database: to})
		if err == nil || !strings.Contains(err.Error(), "5 users and 5 nodes at revision 1") {
			t.Fatalf("got %v", err)
		}
		no := errors.New("no")
		_, err = Restore(t.Context(), bytes.NewReader(backup), nil, Target{Database: to, Replace: func(Contents) error { return no }})
		if !errors.Is(err, no) {
			t.Fatalf("got %v", err)
		}
		// A restore that fails halfway leaves the existing data in place.
		for _, cut := range []int{len(backup) / 2, len(backup) - 1} {
			_, err = Restore(t.Context(), bytes.NewReader(backup[:cut]), nil, Target{Database: to, Replace: replace})
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("got %v", err)
			}
		}
		_, after := take(t, to, Options{})
		if diff := cmp.Diff(before.Tables, after.Tables); diff != "" {
			t.Fatalf("it was changed:\n%s", diff)
		}
		restore(t, backup, Target{Database: to, Replace: replace})
	})
}

// A replica that was asleep during a restore finds a different batch at the revision it
// knows, and therefore reloads the tables.
func TestRestoredHistoryIsAnother(t *testing.T) {
	for name, fresh := range engines {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			s := openStore(t, d)
			events, _ := meshgen.History(rand.New(rand.NewPCG(3, 4)), mesh.Empty(), 100)
			storetest.Append(t, s, events...)
			s.Close()
			before := load(t, d)
			backup, _ := take(t, d, Options{})
			restore(t, backup, Target{Database: d, Replace: replace})
			after := load(t, d)
			if after.Rev != before.Rev || after.Digest() != before.Digest() {
				t.Fatalf("revision %d became %d", before.Rev, after.Rev)
			}
			if after.Batch == before.Batch {
				t.Fatal("the restored history has the batch of the old one")
			}
			s = openStore(t, d)
			defer s.Close()
			if _, err := s.Tail(t.Context(), store.Point{Rev: before.Rev - 1}); !errors.Is(err, store.ErrPruned) {
				t.Fatalf("the log of the old history is still there: %v", err)
			}
			storetest.Append(t, s, []mesh.Event{mesh.UserPut{User: meshgen.User(7)}})
		})
	}
}

// IDs assigned after a backup was taken are not assigned to something else after that
// backup is restored in the same place.
func TestRestoreGivesNothingAgain(t *testing.T) {
	for name, fresh := range engines {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			s := openStore(t, d)
			defer func() { s.Close() }()
			r := rand.New(rand.NewPCG(5, 6))
			events, now := meshgen.History(r, mesh.Empty(), 100)
			storetest.Append(t, s, events...)
			backup, _ := take(t, d, Options{})
			events, _ = meshgen.History(r, now, 200)
			storetest.Append(t, s, events...)
			s.Close()
			before := load(t, d)
			restore(t, backup, Target{Database: d, Replace: replace})
			after := load(t, d)
			if after.Rev != before.Rev || after.Counters != before.Counters {
				t.Errorf("from revision %d, %+v, back to %d, %+v", before.Rev, before.Counters, after.Rev, after.Counters)
			}
			s = openStore(t, d)
			storetest.Append(t, s, []mesh.Event{mesh.UserPut{User: meshgen.User(before.Counters.User + 1)}})
		})
	}
}

func TestDatabaseInUseIsNotFilledOrMoved(t *testing.T) {
	for name, fresh := range engines {
		t.Run(name, func(t *testing.T) {
			d, other := fresh(t), engines["sqlite"](t)
			rebuild(t, d, newest(t), 3)
			backup, _ := take(t, d, Options{})
			s := openStore(t, d)
			if _, err := s.Beat(t.Context(), store.Report{ID: "replica-1"}); err != nil {
				t.Fatal(err)
			}
			beating, rest := context.WithCancel(t.Context())
			var heartbeats sync.WaitGroup
			heartbeats.Go(func() {
				for beating.Err() == nil {
					_, _ = s.Beat(beating, store.Report{ID: "replica-1"})
					select {
					case <-beating.Done():
					case <-time.After(2 * time.Second):
					}
				}
			})
			_, restored := Restore(t.Context(), bytes.NewReader(backup), nil, Target{Database: d, Replace: replace})
			_, moved := Move(t.Context(), d, Target{Database: other})
			linked := restored
			if d.SQLite != "" {
				link := Database{SQLite: filepath.Join(t.TempDir(), "link.sqlite")}
				if err := os.Symlink(d.SQLite, link.SQLite); err != nil {
					t.Fatal(err)
				}
				_, linked = Restore(t.Context(), bytes.NewReader(backup), nil, Target{Database: link, Replace: replace})
			}
			for _, err := range []error{restored, moved, linked} {
				if err == nil || !strings.Contains(err.Error(), "in use by") {
					t.Errorf("got %v", err)
				}
			}
			if _, sum := take(t, d, Options{}); sum.Tables["users"].Rows != 3 {
				t.Error("a backup beside the server failed")
			}
			rest()
			heartbeats.Wait()
			s.Close()
			restore(t, backup, Target{Database: d, Replace: replace}) // works immediately after the server has stopped
		})
	}
}

func TestMoveLeavesTheSourceAndCopiesAll(t *testing.T) {
	eachPair(t, func(t *testing.T, from, to Database) {
		rebuild(t, from, newest(t), 40, "nodes", "users") // a wide table and a narrow one
		_, before := take(t, from, Options{})
		sum, err := Move(t.Context(), from, Target{Database: to})
		if err != nil {
			t.Fatal(err)
		}
		_, source := take(t, from, Options{})
		_, target := take(t, to, Options{})
		for what, got := range map[string]map[string]Sum{"source": source.Tables, "target": target.Tables, "summary": sum.Tables} {
			if diff := cmp.Diff(before.Tables, got); diff != "" {
				t.Errorf("%s:\n%s", what, diff)
			}
		}
		if _, err := Move(t.Context(), from, Target{Database: to}); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("moved over another: %v", err)
		}
		if _, err := Move(t.Context(), from, Target{Database: from, Replace: replace}); err == nil {
			t.Error("to itself")
		}
	})
}

func TestBackupOfNothingIsRefused(t *testing.T) {
	missing := engines["sqlite"](t)
	for _, d := range []Database{missing, engines["postgres"](t)} {
		if _, err := Write(t.Context(), d, &bytes.Buffer{}, Options{}); err == nil {
			t.Errorf("%s was backed up", d)
		}
	}
	if _, err := os.Stat(missing.SQLite); err == nil {
		t.Error("a database was made")
	}
}
