package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// blocked is a database in which another session can block the server's writes.
type blocked struct {
	store.Store
	block  func() (release func())
	probes atomic.Int64 // number of finished probes
}

func (b *blocked) Probe(ctx context.Context, self store.ReplicaID) error {
	defer b.probes.Add(1)
	return b.Store.Probe(ctx, self)
}

func blockedPostgres(t *testing.T, answer time.Duration, statement string) *blocked {
	t.Helper()
	db := pg.Database(t)
	st, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresConfig{
		Host: pg.Host, Port: pg.Port, Name: db, User: pg.User, SSLMode: "disable", AnswerTimeout: answer,
	}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &blocked{Store: st, block: func() func() {
		conn, err := pgx.Connect(t.Context(), pg.URL(db))
		if err == nil {
			_, err = conn.Exec(t.Context(), "BEGIN; "+statement)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { conn.Close(context.Background()) }
	}}
}

func blockedSQLite(t *testing.T) *blocked {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	st, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &blocked{Store: st, block: func() func() {
		db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			_ = tx.Rollback() // fails if the transaction was already rolled back
			db.Close()
		}
	}}
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(phrase string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), phrase)
}

func logTo(l *lines) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// recovers checks that l becomes healthy and accepts a commit, and that the log reports
// one recovery and at most a few failures.
func recovers(t *testing.T, l *ledger.Ledger, log *lines) {
	t.Helper()
	eventually(t, "health returns", func() bool { return l.Status().Health() == nil })
	if _, err := l.Commit(t.Context(), server, addUser("bob")); err != nil {
		t.Fatalf("a commit after the recovery: %v", err)
	}
	if n := log.count("database recovered"); n != 1 {
		t.Errorf("the log tells of %d recoveries, want 1:\n%s", n, log.text.String())
	}
	if n := log.count("database operation failed"); n == 0 || n > 3 {
		t.Errorf("the log tells of %d failures:\n%s", n, log.text.String())
	}
}

func TestUnhealthyUntilACommitSucceeds(t *testing.T) {
	const soon = 1500 * time.Millisecond
	for name, open := range map[string]func(*testing.T) *blocked{
		"PostgreSQL, head row locked": func(t *testing.T) *blocked { return blockedPostgres(t, soon, "SELECT FROM head FOR UPDATE") },
		"PostgreSQL, table locked":    func(t *testing.T) *blocked { return blockedPostgres(t, soon, "LOCK TABLE users") },
		"SQLite, file locked":         blockedSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, log := open(t), new(lines)
			l := run(t, ledger.Config{Store: st, Log: logTo(log)})
			release := st.block()
			defer release()
			if _, err := l.Commit(t.Context(), server, addUser("alice")); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("a commit while nothing can be written: %v", err)
			}
			eventually(t, "a heartbeat tries to write", func() bool {
				if l.Status().Health() == nil {
					t.Fatal("healthy while nothing can be written")
				}
				return st.probes.Load() >= 2
			})
			if l.Cluster().Heartbeats().Failures > 0 || log.count("database recovered") > 0 {
				t.Errorf("pulse %+v, log:\n%s", l.Cluster().Heartbeats(), log.text.String())
			}
			release()
			recovers(t, l, log)
		})
	}
}

// A write that neither succeeds nor fails is detected as well.
func TestUnhealthyWhileAWriteTakesTooLong(t *testing.T) {
	t.Parallel()
	st, log := blockedPostgres(t, time.Minute, "SELECT FROM head FOR UPDATE"), new(lines)
	l := run(t, ledger.Config{Store: st, Log: logTo(log)})
	release := st.block()
	defer release()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Commit(t.Context(), server, addUser("alice"))
		ended <- err
	}()
	eventually(t, "the server is unhealthy", func() bool { return l.Status().Health() != nil })
	select {
	case err := <-ended:
		t.Fatalf("the commit ended first: %v", err)
	default:
	}
	release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	recovers(t, l, log)
}
