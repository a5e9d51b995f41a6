package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

func TestPrimaryAndItsStandbysAreDescribed(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{})
	standby, err := server.Standby(0)
	must(t, err)
	t.Cleanup(func() { must(t, standby.Stop()) })
	server.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '"+pgtest.StandbyName+"'")
	server.Exec(t, "postgres", "SELECT pg_reload_conf()")
	server.Exec(t, "postgres", "CREATE ROLE plain LOGIN PASSWORD 'plain'")
	config := configOf(server, server.Database(t))
	s := openPostgres(t, config)
	eventually(t, func() error {
		d, _, err := s.Describe(t.Context())
		must(t, err)
		host := fmt.Sprintf("%s:%d", server.Host, server.Port)
		if d.Engine != "postgres" || d.Version == "" || d.Host != host || d.Standby || d.Timeline != 1 || d.SyncCommit != "on" || d.Hidden != "" {
			t.Fatalf("got %+v", d)
		}
		if len(d.Standbys) != 1 || d.SyncNames == "" || d.Standbys[0].Sync != "sync" {
			return fmt.Errorf("got %+v", d)
		}
		if b := d.Standbys[0]; b.Name != pgtest.StandbyName || b.State != "streaming" || b.Addr == "" {
			t.Fatalf("got %+v", b)
		}
		return nil
	})

	server.Exec(t, config.Name, "GRANT ALL ON SCHEMA public TO plain")
	server.Exec(t, config.Name, "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
	config.User, config.Pass = "plain", "plain"
	plain := openPostgres(t, config)
	d, _, err := plain.Describe(t.Context())
	must(t, err)
	if len(d.Standbys) != 0 || !strings.Contains(d.Hidden, `GRANT pg_monitor TO "plain"`) {
		t.Errorf("without the privilege: %+v", d)
	}
	server.Exec(t, config.Name, "GRANT pg_monitor TO plain")
	eventually(t, func() error {
		if d, _, err := plain.Describe(t.Context()); err != nil || d.Hidden != "" || len(d.Standbys) != 1 || d.Standbys[0].State != "streaming" {
			return fmt.Errorf("with the privilege: %+v, %w", d, err)
		}
		return nil
	})
}

func TestReportsOfTheLastHourAreRead(t *testing.T) {
	t.Parallel()
	db := pg.Database(t)
	s := openPostgres(t, configOf(pg, db))
	for _, id := range []store.ReplicaID{"old", "dead", "here"} {
		_, err := s.Beat(t.Context(), store.Report{ID: id, Name: "mesh-1", Uptime: time.Minute, Stopped: id == "dead", Logins: []store.WaitingLogin{{Code: "a"}}})
		must(t, err)
	}
	pg.Exec(t, db, "UPDATE replicas SET at = at - 3000000000 WHERE id = 'dead'")
	pg.Exec(t, db, "UPDATE replicas SET at = at - 3601000000 WHERE id = 'old'")
	beaten, err := s.Beat(t.Context(), store.Report{ID: "here"})
	must(t, err)
	if len(beaten) != 1 {
		t.Errorf("a heartbeat returns %+v", beaten)
	}
	_, runs, err := s.Describe(t.Context())
	must(t, err)
	if len(runs) != 2 || runs[0].ID != "here" || runs[1].ID != "dead" || !runs[1].Stopped || runs[1].Uptime != time.Minute || runs[1].Name != "mesh-1" || runs[1].Logins != nil {
		t.Fatalf("got %+v", runs)
	}
	if age := runs[1].Age; age < 3000*time.Second || age > time.Hour {
		t.Errorf("it reported %v ago", age)
	}
}

func TestSQLiteIsDescribed(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/db.sqlite"
	s, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	must(t, err)
	d, runs, err := s.Describe(t.Context())
	if err := errors.Join(err, s.Close()); err != nil || d.Engine != "sqlite" || !strings.HasPrefix(d.Version, "3.") || d.Host != path || len(runs) != 0 {
		t.Errorf("got %+v, %v, %v", d, runs, err)
	}
}
