package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// waiting lists the server processes that wait for a synchronous standby.
const waiting = "pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

// stalled is a server whose synchronous standby can be made unresponsive.
type stalled struct {
	*pgtest.Server
	t        *testing.T
	database string
}

func startStalled(t *testing.T) *stalled {
	t.Helper()
	s, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &stalled{s, t, s.Database(t)}
}

// stall sets the standby that commits wait for, one that never connects or none, and
// waits until the server has applied the setting.
func (s *stalled) stall(names string) {
	s.t.Helper()
	s.Exec(s.t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
	s.Exec(s.t, "postgres", "SELECT pg_reload_conf()")
	eventually(s.t, "the server reads its configuration", func() bool {
		return s.ask("SELECT current_setting('synchronous_standby_names')") == names
	})
	if names == "" {
		return
	}
	// Commits wait for the standby only after another server process has also read the
	// setting.
	eventually(s.t, "commits wait for the standby", s.holdsCommits)
}

// holdsCommits reports whether a commit waits for the standby.
func (s *stalled) holdsCommits() bool {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx, cancel := context.WithTimeout(s.t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = conn.Exec(ctx, "SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'probe', '')")
	return ctx.Err() != nil && err != nil
}

func (s *stalled) ask(query string) (answer string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(s.t.Context(), query).Scan(&answer); err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// release ends all waits for the standby.
func (s *stalled) release(function string) {
	s.t.Helper()
	s.Exec(s.t, "postgres", "SELECT "+function+"(pid) FROM (SELECT "+waiting+") w")
}

func (s *stalled) waits() bool {
	return s.ask("SELECT count(*)::text FROM (SELECT "+waiting+") w") != "0"
}

// replica starts a ledger with short timeouts.
func (s *stalled) replica() *ledger.Ledger {
	s.t.Helper()
	st, err := sqlstore.OpenPostgres(s.t.Context(), sqlstore.PostgresConfig{
		Host: s.Host, Port: s.Port, Name: s.database, User: s.User, SSLMode: "disable", AnswerTimeout: 1500 * time.Millisecond,
	}, prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { st.Close() })
	return run(s.t, ledger.Config{Store: st, ResolveFor: time.Second})
}

func once(name string) mesh.Actor {
	return mesh.Actor{Kind: mesh.ActorKey, ID: "1", Once: &mesh.Once{Owner: "key:1", Key: mesh.Secret{1}, Request: mesh.Secret([]byte(fmt.Sprintf("%-32.32s", name)))}}
}

func nothing(*policy.World, mesh.Time) ([]mesh.Event, error) { return nil, nil }

func hasUser(l *ledger.Ledger, name string) bool {
	_, ok := l.World().Users.ByName(name)
	return ok
}

// mustNotAcknowledge checks that no result of l depends on what the standby may not have:
// neither that a command was executed before, nor that there is nothing to do.
func mustNotAcknowledge(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	var wg sync.WaitGroup
	for what, c := range map[string]struct {
		actor  mesh.Actor
		decide ledger.Decide
	}{
		"the same command":        {once("bob"), addUser("bob")},
		"a command that is no-op": {mesh.Actor{Kind: mesh.ActorKey, ID: "1"}, nothing},
		"a name that is taken":    {mesh.Actor{Kind: mesh.ActorKey, ID: "1"}, addUser("bob")},
	} {
		wg.Go(func() {
			_, err := l.Commit(t.Context(), c.actor, c.decide)
			if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("%s is answered with %v", what, err)
			}
		})
	}
	wg.Wait()
	if bob, ok := l.World().Users.ByName("bob"); ok && (l.Confirm(t.Context(), l.World().Rev) == nil || l.ConfirmChange(t.Context(), l.World().Rev, l.World().At) == nil) {
		t.Errorf("%+v is said to be safe", bob)
	}
}

func TestNothingIsAcknowledgedThatTheSynchronousStandbyLacks(t *testing.T) {
	for _, function := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			s := startStalled(t)
			writer, reader := s.replica(), s.replica()
			if _, err := writer.Commit(t.Context(), server, addUser("alice")); err != nil {
				t.Fatal(err)
			}
			before := writer.World().At
			for _, l := range []*ledger.Ledger{reader, writer} {
				if _, err := l.Commit(t.Context(), server, func(*policy.World, mesh.Time) ([]mesh.Event, error) {
					return []mesh.Event{mesh.UserPut{User: &mesh.User{ID: 9, Name: "nine"}}}, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			s.stall("nosuch")
			if _, err := writer.Commit(t.Context(), once("bob"), addUser("bob")); !errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("a commit without the standby: %v", err)
			}
			if !s.waits() || hasUser(writer, "bob") || hasUser(reader, "bob") {
				t.Fatal("the wait for the standby was cancelled")
			}
			mustNotAcknowledge(t, writer)

			s.release(function) // as an administrator might; the server itself must never do this
			eventually(t, "the change is visible", func() bool { return hasUser(writer, "bob") && hasUser(reader, "bob") })
			mustNotAcknowledge(t, reader)
			mustNotAcknowledge(t, writer)
			if err := reader.ConfirmChange(t.Context(), reader.World().Rev, before); err != nil {
				t.Errorf("a change before the last commit of this replica: %v", err)
			}
			if writer.Status().Health() == nil {
				t.Error("nothing can be written, and the ledger is healthy")
			}

			s.stall("")
			for _, l := range []*ledger.Ledger{reader, writer} {
				var done *ledger.AlreadyDone
				eventually(t, "the change is acknowledged when it is safe", func() bool {
					_, err := l.Commit(t.Context(), once("bob"), addUser("bob"))
					return errors.As(err, &done)
				})
			}
		})
	}
}

// PostgreSQL reports success, with a warning, for a commit whose wait for the standby is
// cancelled.
func TestCancelledWaitForTheStandbyIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := startStalled(t)
	l := s.replica()
	s.stall("nosuch")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			s.release("pg_cancel_backend")
		}
	})
	_, err := l.Commit(t.Context(), server, addUser("alice"))
	stop()
	wg.Wait()
	if !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("a commit whose wait was cancelled: %v", err)
	}
	eventually(t, "the change is visible", func() bool { return hasUser(l, "alice") })
}
