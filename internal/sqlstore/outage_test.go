package sqlstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// Every test here provokes a real failure, both at startup and in an open store. It
// checks for the phrases of the specification, removes the cause and expects the same
// store to recover.

// openFails opens a store, expects that to fail quickly, and returns the error.
func openFails(t *testing.T, c sqlstore.PostgresConfig) error {
	t.Helper()
	start := time.Now()
	reg := prometheus.NewRegistry()
	s, err := sqlstore.OpenPostgres(t.Context(), c, reg)
	if err == nil {
		s.Close()
		t.Fatal("opened")
	}
	if took := time.Since(start); took > time.Minute {
		t.Fatalf("failed after %v", took)
	}
	if families, err := reg.Gather(); err != nil || len(families) != 0 {
		t.Fatalf("left %d metrics behind (%v)", len(families), err)
	}
	return err
}

// fails waits until s reports an outage whose error contains all phrases. The first
// errors may differ: idle connections may be found broken first.
func fails(t *testing.T, s store.Store, phrases ...string) {
	t.Helper()
	eventually(t, func() error {
		_, err := s.Tail(t.Context(), store.Point{Rev: 0})
		if err == nil {
			return errors.New("no failure")
		}
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
		}
		for _, p := range phrases {
			if !strings.Contains(err.Error(), p) {
				return err
			}
		}
		return nil
	})
}

// heals waits until s accepts commits again.
func heals(t *testing.T, s store.Store) {
	t.Helper()
	eventually(t, func() error {
		snap, err := s.Load(t.Context())
		if err != nil {
			return err
		}
		return appendUser(t.Context(), s, snap.Rev, storetest.Batch(), mesh.UserID(snap.Rev+1))
	})
}

// session opens a connection independent of the store.
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

const endOurs = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlead'"

func TestLogIsReadAtOnceAfterAllConnectionsBroke(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{})
	c := configOf(server, server.Database(t))
	s := openPostgres(t, c)
	storetest.Append(t, s, user(1))
	beside := session(t, server.URL(c.Name))
	for range 3 {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if _, err := s.Tail(t.Context(), store.Point{}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		run(t, beside, endOurs)
		if entries, err := s.Tail(t.Context(), store.Point{}); err != nil || len(entries) != 1 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
	}
}

func TestRefusedConnectionIsNamed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Durable: true})
	c := configOf(server, server.Database(t))
	s := openPostgres(t, c)
	storetest.Append(t, s, user(1))
	if err := server.Pause("fast"); err != nil {
		t.Fatal(err)
	}
	says(t, openFails(t, c), "failed to connect to database", "connection refused")
	fails(t, s, "failed to connect to database", "connection refused")
	_, err := s.Beat(t.Context(), store.Report{ID: "a"})
	says(t, err, "failed to connect to database", "connection refused")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	heals(t, s)
}

func TestWrongPasswordIsNamedAndNotShown(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Pass: "correct horse"})
	c := configOf(server, server.Database(t))
	s := openPostgres(t, c)
	beside := session(t, server.URL(c.Name))
	wrong := c
	wrong.Pass = `battery' \staple`
	err := openFails(t, wrong)
	says(t, err, "failed to connect to database", "check database.postgres.user and pass", "password authentication failed")
	if strings.Contains(err.Error(), wrong.Pass) {
		t.Fatalf("%q shows the password", err)
	}
	wrong.SSLMode = "neither"
	if err := openFails(t, wrong); !strings.Contains(err.Error(), "sslmode") || strings.Contains(err.Error(), wrong.Pass) {
		t.Fatalf("%q shows the password or not the fault", err)
	}
	run(t, beside, "ALTER ROLE fairlead PASSWORD 'changed'")
	run(t, beside, endOurs)
	fails(t, s, "failed to connect to database", "password authentication failed")
	run(t, beside, "ALTER ROLE fairlead PASSWORD 'correct horse'")
	heals(t, s)
}

func TestTooManyClientsAreNamed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Args: []string{"-c", "max_connections=12", "-c", "superuser_reserved_connections=3"}})
	c := configOf(server, server.Database(t))
	server.Exec(t, c.Name, "CREATE ROLE plain LOGIN")
	server.Exec(t, c.Name, "ALTER DATABASE "+c.Name+" OWNER TO plain")
	server.Exec(t, c.Name, "GRANT ALL ON SCHEMA public TO plain")
	plain := c
	plain.User = "plain"
	s := openPostgres(t, plain)
	storetest.Append(t, s, user(1))

	var others []*pgx.Conn
	// The store's own connections take up slots until they are terminated and their
	// server processes have exited.
	take := func(n int) {
		for range n {
			eventually(t, func() error {
				conn, err := pgx.Connect(t.Context(), server.URL(c.Name))
				if err != nil {
					run(t, others[0], endOurs)
					return err
				}
				t.Cleanup(func() { conn.Close(context.Background()) })
				others = append(others, conn)
				return nil
			})
		}
	}
	take(9)
	run(t, others[0], endOurs)
	says(t, openFails(t, plain), "failed to connect to database", "too many clients already") // the last three are reserved for superusers
	take(3)
	says(t, openFails(t, plain), "failed to connect to database", "too many clients already")
	fails(t, s, "failed to connect to database", "too many clients already")
	for _, o := range others {
		o.Close(t.Context())
	}
	heals(t, s)
}

func TestExhaustedPoolIsNamed(t *testing.T) {
	t.Parallel()
	c := pgConfig(pg.Database(t))
	c.MaxOpenConns = 1
	s := openPostgres(t, c)
	inside, done, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- s.Lock(t.Context(), 0, storetest.Batch(), func(tx store.Tx) error {
			close(inside)
			<-done
			_, err := tx.Append(store.Command{Events: user(1)})
			return err
		})
	}()
	<-inside
	start := time.Now()
	_, err := s.Tail(t.Context(), store.Point{Rev: 0})
	says(t, err, "database connection pool exhausted")
	if waited := time.Since(start); waited < 4*time.Second || waited > time.Minute {
		t.Errorf("waited for %v, want 5 s", waited)
	}
	if _, err := s.Beat(t.Context(), store.Report{ID: "a"}); err != nil {
		t.Errorf("a busy pool stopped the heartbeats: %v", err)
	}
	close(done)
	says(t, <-ended) // the transaction held the head row for too long
	heals(t, s)
}

func TestFullDiskOfPostgresIsNamed(t *testing.T) {
	t.Parallel()
	dir := disktest.Small(t, "120m")
	server := startPostgres(t, pgtest.Options{Dir: dir})
	s := openPostgres(t, configOf(server, server.Database(t)))
	storetest.Append(t, s, user(1))
	if err := s.Probe(t.Context(), "a"); err != nil { // each probe takes up space
		t.Fatal(err)
	}
	filler := disktest.Fill(t, dir)
	batch := storetest.Batch()
	err := appendLarge(t.Context(), s, 1, batch)
	says(t, err, "database write failed", "no space left on device")
	if errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("got %v, want a plain failure", err)
	}
	for range 3 {
		says(t, s.Probe(t.Context(), "a"), "database write failed", "no space left on device")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context(), "a"); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if logHolds(t, s, 1, batch) {
		t.Fatal("the batch is in the log")
	}
	heals(t, s)
}

// appendLarge creates users whose rows need far more space than is left in the files
// of either engine.
func appendLarge(ctx context.Context, s store.Store, after mesh.Revision, batch store.BatchID) error {
	var users []mesh.Event
	for id := range mesh.UserID(100) {
		u := meshgen.User(id + 2)
		u.ProfilePicURL = noise(8000)
		users = append(users, mesh.UserPut{User: u})
	}
	return s.Lock(ctx, after, batch, func(tx store.Tx) error {
		_, err := tx.Append(store.Command{Events: users})
		return err
	})
}

func TestDamagedPageOfPostgresIsNamed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Durable: true})
	c := configOf(server, server.Database(t))
	s := openPostgres(t, c)
	storetest.Append(t, s, user(1))
	var file string
	if err := session(t, server.URL(c.Name)).QueryRow(t.Context(), "SELECT pg_relation_filepath('users')").Scan(&file); err != nil {
		t.Fatal(err)
	}
	asleep := func(f func()) {
		t.Helper()
		if err := server.Pause("fast"); err != nil {
			t.Fatal(err)
		}
		f()
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	var repair func()
	asleep(func() { repair = damage(t, filepath.Join(server.Dir, "data", file), 0, 24) })
	eventually(t, func() error {
		_, err := s.Load(t.Context())
		if err == nil {
			t.Fatal("a damaged page was read")
		}
		if !strings.Contains(err.Error(), "invalid page header") {
			return err
		}
		says(t, err, "restore a backup")
		return nil
	})
	asleep(repair)
	heals(t, s)
}

// damage overwrites n bytes of a file and returns a function that undoes it.
func damage(t *testing.T, file string, offset int64, n int) (repair func()) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	before := make([]byte, n)
	if _, err := f.ReadAt(before, offset); err != nil {
		t.Fatal(err)
	}
	garbage := make([]byte, n)
	for i := range garbage {
		garbage[i] = ^before[i]
	}
	write := func(b []byte) {
		t.Helper()
		if _, err := f.WriteAt(b, offset); err != nil {
			t.Fatal(err)
		}
	}
	write(garbage)
	return func() { write(before) }
}

// noise returns text that does not compress.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()
}
