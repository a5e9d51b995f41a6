package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// A standby is promoted, and then the old primary comes back and accepts writes. Nothing may be written to
// it, although it is the first host, and even while the new primary does not respond.
func TestOldPrimaryThatReturnsIsRefused(t *testing.T) {
	t.Parallel()
	old := startPostgres(t, pgtest.Options{})
	database := old.Database(t)
	promoted, err := old.Standby(0)
	must(t, err)
	t.Cleanup(func() { must(t, promoted.Stop()) })
	config := sqlstore.PostgresConfig{
		Host: fmt.Sprintf("%s:%d,%s:%d", old.Host, old.Port, promoted.Host, promoted.Port), Name: database, User: old.User, SSLMode: "disable",
	}
	reg := prometheus.NewRegistry()
	s, err := sqlstore.OpenPostgres(t.Context(), config, reg)
	must(t, err)
	defer s.Close()
	must(t, appendUser(t.Context(), s, 0, storetest.Batch(), 1))
	must(t, promoted.Detach())
	must(t, old.Pause("immediate"))
	must(t, promoted.Promote())
	eventually(t, func() error { return appendUser(t.Context(), s, 1, storetest.Batch(), 2) })
	if text := s.Stale(); text != "" {
		t.Errorf("before the old primary returns: %s", text)
	}

	must(t, old.Resume())
	later := openPostgres(t, config) // it has seen no promotion, but asks all hosts
	must(t, appendUser(t.Context(), later, 2, storetest.Batch(), 3))
	if _, err := s.Risks(t.Context()); err != nil {
		t.Error(err)
	}
	refused(t, s.Stale(), old.Host, "timeline 1", "timeline 2", "pg_rewind")

	must(t, promoted.Pause("fast"))
	eventually(t, func() error {
		err := appendUser(t.Context(), s, 3, storetest.Batch(), 4)
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "old primary") {
			return fmt.Errorf("while the new primary is down, a commit returns %w", err)
		}
		return nil
	})
	_, err = s.Beat(t.Context(), store.Report{ID: "a"})
	refused(t, fmt.Sprint(err), "old primary")
	if n := metric(t, reg, "mesh_db_stale_primary_refusals_total"); n < 1 {
		t.Errorf("%v refusals are counted", n)
	}

	must(t, promoted.Resume())
	eventually(t, func() error { return appendUser(t.Context(), s, 3, storetest.Batch(), 4) })
	if _, err := s.Tail(t.Context(), store.Point{Rev: 4}); err != nil {
		t.Error(err)
	}
}

// After a deliberate return to an older timeline, restarted replicas accept it.
func TestOnlyServerIsAcceptedAfterARestart(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{})
	standby, err := server.Standby(0)
	must(t, err)
	t.Cleanup(func() { must(t, standby.Stop()) })
	config := sqlstore.PostgresConfig{Host: fmt.Sprintf("%s:%d", standby.Host, standby.Port), Name: "postgres", User: server.User, SSLMode: "disable"}
	if _, err := sqlstore.OpenPostgres(t.Context(), config, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), "standby or read-only") {
		t.Errorf("a standby is opened: %v", err)
	}
	must(t, server.Pause("immediate"))
	must(t, standby.Promote())
	must(t, openPostgres(t, config).Close())
	must(t, standby.Pause("fast"))
	must(t, server.Resume())
	config.Host = fmt.Sprintf("%s,%s:%d", config.Host, server.Host, server.Port)
	must(t, appendUser(t.Context(), openPostgres(t, config), 0, storetest.Batch(), 1))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q lacks %q", text, word)
		}
	}
}
