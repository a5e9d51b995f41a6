package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// A connection lost during COMMIT leaves the outcome unknown. The log shows whether the
// server committed: it either contains the batch or does not.
func TestLostCommitIsUnknownUntilTheLogTells(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict verdict
		written bool
	}{
		{"RequestLost", cut, false},
		{"AnswerLost", swallow, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			between := newProxy(t, pg)
			s := openPostgres(t, between.config(pgConfig(pg.Database(t))))
			storetest.Append(t, s, user(1))
			between.obey(func(kind byte, body []byte) verdict {
				if kind == 'Q' && string(bytes.TrimRight(body, "\x00")) == "COMMIT" {
					return c.verdict
				}
				return forward
			})
			batch := storetest.Batch()
			if err := appendUser(t.Context(), s, 1, batch, 2); !errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("got %v, want %v", err, store.ErrUnknownOutcome)
			}
			between.obey(nil)
			if written := logHolds(t, s, 1, batch); written != c.written {
				t.Fatalf("the batch is in the log: %t, want %t", written, c.written)
			}
			storetest.Append(t, s, user(3))
		})
	}
}

func TestConnectionLostBetweenRowsWritesNothing(t *testing.T) {
	for name, lose := range map[string]func(executed int, kind byte) verdict{
		"BeforeTheHead": func(executed int, kind byte) verdict {
			if executed == 2 {
				return cut
			}
			return forward
		},
		"AfterTheFirstRow": func(executed int, kind byte) verdict {
			if executed == 5 {
				return cut
			}
			return forward
		},
		"AfterTheLastRow": func(executed int, kind byte) verdict {
			if executed > 3 && kind == 'S' {
				return swallow
			}
			return forward
		},
	} {
		t.Run(name, func(t *testing.T) {
			between := newProxy(t, pg)
			s := openPostgres(t, between.config(pgConfig(pg.Database(t))))
			storetest.Append(t, s, user(1)) // from now on all statements are prepared
			executed := 0                   // the first three are BEGIN, head and log
			between.obey(func(kind byte, _ []byte) verdict {
				if kind == 'E' {
					executed++
				}
				return lose(executed, kind)
			})
			batch := storetest.Batch()
			err := appendUser(t.Context(), s, 1, batch, 2)
			if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("got %v, want %v alone", err, store.ErrUnavailable)
			}
			between.obey(nil)
			if logHolds(t, s, 1, batch) {
				t.Fatal("the batch is in the log")
			}
			snap, err := s.Load(t.Context())
			if err != nil || snap.Rev != 1 || snap.Users.Len() != 1 {
				t.Fatalf("found revision %d with %d users (%v)", snap.Rev, snap.Users.Len(), err)
			}
			storetest.Append(t, s, user(2))
		})
	}
}

func TestServerThatFallsSilentIsGivenUp(t *testing.T) {
	t.Parallel() // waits for a long timeout
	between := newProxy(t, pg)
	s := openPostgres(t, between.config(pgConfig(pg.Database(t))))
	storetest.Append(t, s, user(1))
	between.obey(func(byte, []byte) verdict { return silence })
	start := time.Now()
	err := appendUser(t.Context(), s, 1, storetest.Batch(), 2)
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
	}
	if waited := time.Since(start); waited > time.Minute {
		t.Fatalf("waited for %v", waited)
	}
	between.obey(nil)
	between.hangUp()
	storetest.Append(t, s, user(2))
}

func TestServerCrashInsideLockWritesNothingAndHeals(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Durable: true})
	s := openPostgres(t, configOf(server, server.Database(t)))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Watch(ctx); err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	defer wg.Wait()
	defer stop()
	<-s.Changed() // the store is listening now
	storetest.Append(t, s, user(1))
	if _, err := s.Beat(ctx, store.Report{ID: "a"}); err != nil {
		t.Fatal(err)
	}

	batch := storetest.Batch()
	err := s.Lock(ctx, 1, batch, func(tx store.Tx) error {
		if err := server.Pause("immediate"); err != nil {
			t.Error(err)
		}
		_, err := tx.Append(store.Command{Events: user(2)})
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("got %v, want %v alone", err, store.ErrUnavailable)
	}
	if _, err := s.Beat(ctx, store.Report{ID: "a"}); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("beat: got %v, want %v", err, store.ErrUnavailable)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := s.Beat(ctx, store.Report{ID: "a"})
		return err
	})
	eventually(t, func() error { return appendUser(ctx, s, 1, storetest.Batch(), 3) })
	if logHolds(t, s, 0, batch) {
		t.Fatal("the batch is in the log")
	}
	select {
	case <-s.Changed(): // listening again
	case <-time.After(time.Minute):
		t.Fatal("no hint after the server came back")
	}
}

// user returns the event that creates one user.
func user(id mesh.UserID) []mesh.Event { return []mesh.Event{mesh.UserPut{User: meshgen.User(id)}} }

func appendUser(ctx context.Context, s store.Store, after mesh.Revision, batch store.BatchID, id mesh.UserID) error {
	return s.Lock(ctx, after, batch, func(tx store.Tx) error {
		_, err := tx.Append(store.Command{Events: user(id)})
		return err
	})
}

// logHolds checks for the batch as the ledger would, in a Lock of its own. It retries,
// because the server may not have ended the severed connection yet.
func logHolds(t *testing.T, s store.Store, after mesh.Revision, batch store.BatchID) (held bool) {
	t.Helper()
	eventually(t, func() error {
		return s.Lock(t.Context(), after, storetest.Batch(), func(tx store.Tx) error {
			missed, err := tx.Missed()
			held = slices.ContainsFunc(missed, func(e store.Entry) bool { return e.Batch == batch })
			return err
		})
	})
	return held
}

// eventually polls until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, time.Minute, 20*time.Millisecond, try)
}

// says fails the test unless err is ErrUnavailable and its text contains all phrases.
func says(t *testing.T, err error, phrases ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
	}
	for _, p := range phrases {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("got %q, want it to say %q", err, p)
		}
	}
}

// startPostgres starts a server for one test.
func startPostgres(t *testing.T, opts pgtest.Options) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func configOf(server *pgtest.Server, database string) sqlstore.PostgresConfig {
	return sqlstore.PostgresConfig{
		Host: server.Host, Port: server.Port, Name: database, User: server.User, Pass: server.Pass, SSLMode: "disable",
	}
}
