package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// statements returns operations that cover every method of a store, each with the
// number of statements it takes on SQLite.
func statements(t *testing.T, s store.Store) []operation {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	no := errors.New("no")
	return []operation{
		{"commit", 9, func(ctx context.Context) { // begin, head, tail, 2 users, 2 entries, head, commit
			check(s.Lock(ctx, 0, storetest.Batch(), func(tx store.Tx) error {
				_, err := tx.Append(store.Command{Events: user(1)})
				_, err2 := tx.Append(store.Command{Events: user(2)})
				return errors.Join(err, err2)
			}))
		}},
		{"refusal", 4, func(ctx context.Context) { // begin, head, tail, rollback
			if err := s.Lock(ctx, 2, storetest.Batch(), func(store.Tx) error { return no }); !errors.Is(err, no) {
				t.Fatal(err)
			}
		}},
		{"load", 27, func(ctx context.Context) { // begin, head, 24 tables, rollback
			_, err := s.Load(ctx)
			check(err)
		}},
		{"tail", 2, func(ctx context.Context) { // head, log
			_, err := s.Tail(ctx, store.Point{})
			check(err)
		}},
		{"audit", 1, func(ctx context.Context) {
			_, err := s.(history.Store).Audit(ctx, history.AuditQuery{Limit: 10})
			check(err)
		}},
		{"audit after a position", 2, func(ctx context.Context) { // rows, position reached
			_, err := s.(history.Store).Audit(ctx, history.AuditQuery{After: history.Position{Rev: 1}, Limit: 10})
			check(err)
		}},
		{"presence", 1, func(ctx context.Context) {
			_, err := s.(history.Store).Presence(ctx, nil, 1, 2)
			check(err)
		}},
		{"forget", 6, func(ctx context.Context) { // position and rows, twice; leaders; dead letters
			_, err := s.(history.Store).Forget(ctx, time.Hour, time.Hour)
			check(err)
		}},
		{"dead letters", 1, func(ctx context.Context) {
			_, err := s.(history.Store).DeadLetters(ctx, 1, 0, 10)
			check(err)
		}},
		{"policies", 1, func(ctx context.Context) {
			_, err := s.(history.Store).Policies(ctx, 0, 10)
			check(err)
		}},
		{"policy", 1, func(ctx context.Context) {
			if _, err := s.(history.Store).Policy(ctx, 1); !errors.Is(err, history.ErrNoPolicy) {
				t.Fatal(err)
			}
		}},
		{"beat", 1, func(ctx context.Context) {
			_, err := s.Beat(ctx, store.Report{ID: "a"})
			check(err)
		}},
		{"probe", 4, func(ctx context.Context) { // timeout, put, delete, timeout
			check(s.Probe(ctx, "a"))
		}},
		{"prune", 1, func(ctx context.Context) {
			_, err := s.Prune(ctx, 1, time.Hour)
			check(err)
		}},
	}
}

type operation struct {
	name  string
	count int
	do    func(context.Context)
}

// metric returns the value of a gauge or counter, or the number of samples of a histogram.
func metric(t *testing.T, reg *prometheus.Registry, name string) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			return int(h.GetSampleCount())
		}
		if c := f.GetMetric()[0].GetCounter(); c != nil {
			return int(c.GetValue())
		}
		return int(f.GetMetric()[0].GetGauge().GetValue())
	}
	t.Fatalf("no metric %s", name)
	return 0
}

const durations = "mesh_db_query_duration_seconds"

func TestEveryStatementOfSQLiteIsTimed(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db.sqlite"), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, op := range statements(t, s) {
		before := metric(t, reg, durations)
		op.do(t.Context())
		if got := metric(t, reg, durations) - before; got != op.count {
			t.Errorf("%s: %d statements timed, want %d", op.name, got, op.count)
		}
	}
	if open, most := metric(t, reg, "mesh_db_connections_open"), metric(t, reg, "mesh_db_max_open_connections"); open < 1 || open > most {
		t.Errorf("%d connections open, at most %d", open, most)
	}
}

// The expected number comes from the server's own statement log.
func TestEveryStatementOfPostgresIsTimed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Args: []string{
		"-c", "log_statement=all", "-c", "log_min_messages=log", "-c", "log_line_prefix=%a|",
		"-c", "logging_collector=on", "-c", "log_directory=log", "-c", "log_filename=statements",
	}})
	reg := prometheus.NewRegistry()
	s, err := sqlstore.OpenPostgres(t.Context(), configOf(server, server.Database(t)), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	line := regexp.MustCompile(`(?m)^fairlead\|LOG:  (?:statement|execute [^:]*): (.*)$`)
	logged := func() (found []string) {
		text, err := os.ReadFile(filepath.Join(server.Dir, "data/log/statements"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			// The pool's liveness check and the check of a new connection are not timed.
			if m[1] != "-- ping" && !strings.HasPrefix(m[1], "SELECT current_setting('transaction_read_only')") {
				found = append(found, m[1])
			}
		}
		return found
	}
	// The server writes its log with a delay, so run a marker statement and wait until it appears.
	beside := session(t, server.URL("postgres")+"&application_name=fairlead")
	marker := 0
	settled := func() []string {
		marker++
		text := fmt.Sprintf("SELECT %d AS marker", marker)
		run(t, beside, text)
		var found []string
		eventually(t, func() error {
			if found = logged(); len(found) == 0 || found[len(found)-1] != text {
				return errors.New("the log of the server is not there yet")
			}
			return nil
		})
		return found
	}
	for _, op := range statements(t, s) {
		for range 2 { // the first run prepares the statements
			from, before := len(settled()), metric(t, reg, durations)
			op.do(t.Context())
			found := settled()
			found = found[from : len(found)-1]
			if got := metric(t, reg, durations) - before; got != len(found) || got == 0 {
				t.Errorf("%s: %d statements timed, want %d:\n%s", op.name, got, len(found), strings.Join(found, "\n"))
			}
		}
	}
}

func TestPoolGaugesAndLimitsHold(t *testing.T) {
	t.Parallel()
	c := pgConfig(pg.Database(t))
	c.MaxOpenConns, c.MaxIdleConns, c.MaxIdleTime = 10, 2, time.Second
	reg := prometheus.NewRegistry()
	s, err := sqlstore.OpenPostgres(t.Context(), c, reg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	beside, watcher := session(t, pg.URL(c.Name)), session(t, pg.URL(c.Name))
	truth := func() (open int) {
		if err := watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlead' AND datname = $1", c.Name).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open
	}
	gauges := func() [3]int {
		return [3]int{metric(t, reg, "mesh_db_connections_open"), metric(t, reg, "mesh_db_connections_idle"), truth()}
	}
	settles := func(what string, ok func(open, idle, truth int) bool) {
		t.Helper()
		eventually(t, func() error {
			if g := gauges(); !ok(g[0], g[1], g[2]) {
				return fmt.Errorf("%s: %d open and %d idle by the gauges, %d in the server", what, g[0], g[1], g[2])
			}
			return nil
		})
	}
	if most := metric(t, reg, "mesh_db_max_open_connections"); most != 10 {
		t.Errorf("the gauge says at most %d connections, want 10", most)
	}
	for range 3 {
		run(t, beside, "BEGIN; LOCK TABLE audit")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := s.Audit(t.Context(), history.AuditQuery{Limit: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		settles("in the burst", func(open, idle, truth int) bool { return open == 10 && idle == 0 && truth == 10 })
		run(t, beside, "COMMIT")
		wg.Wait()
		if idle := gauges()[1]; idle > 2 {
			t.Errorf("%d connections idle, at most 2", idle)
		}
		settles("after the burst", func(open, idle, truth int) bool { return open == idle && open == truth && open <= 2 })
	}
	settles("after the idle time", func(open, idle, truth int) bool { return open == 0 && idle == 0 && truth == 0 })
}

func TestEveryConnectionLimitsWhatItHolds(t *testing.T) {
	s := openPostgres(t, pgConfig(pg.Database(t)))
	want := map[string]string{
		"application_name": "fairlead", "idle_in_transaction_session_timeout": "3s", "lock_timeout": "5s",
		"statement_timeout": "10s", "tcp_user_timeout": "5000",
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	pooled, own, err := s.Settings(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, pooled); diff != "" {
		t.Errorf("connection of the pool:\n%s", diff)
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("connection for beating or listening:\n%s", diff)
	}
}
