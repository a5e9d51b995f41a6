package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var pg *pgtest.Server

func TestMain(m *testing.M) {
	storetest.Child(func(spec string) (store.Store, error) {
		if path, ok := strings.CutPrefix(spec, "sqlite:"); ok {
			return sqlstore.OpenSQLite(context.Background(), path, prometheus.NewRegistry())
		}
		u, err := url.Parse(spec)
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return nil, err
		}
		c := sqlstore.PostgresConfig{Host: u.Hostname(), Port: port, Name: strings.TrimPrefix(u.Path, "/"), User: u.User.Username(), SSLMode: "disable"}
		return sqlstore.OpenPostgres(context.Background(), c, prometheus.NewRegistry())
	})
	os.Exit(pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s }))
}

// All deployments use one version of PostgreSQL, and CI tests that one. Elsewhere the
// tests use the newest version installed.
func TestPostgresIsThatOfTheDeployments(t *testing.T) {
	text, err := os.ReadFile("../../deploy/compose/postgres.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`postgres:(\d+)-`).FindSubmatch(text)
	if image == nil {
		t.Fatal("the version of PostgreSQL is not found in deploy/compose/postgres.yaml")
	}
	var version string
	if err := session(t, pg.URL("postgres")).QueryRow(t.Context(), "SELECT (current_setting('server_version_num')::int / 10000)::text").Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Logf("tested with PostgreSQL %s, deployed with %s", version, image[1])
	if version != string(image[1]) && os.Getenv("CI") != "" {
		t.Error("CI tests another version than deployments have")
	}
}

func pgConfig(database string) sqlstore.PostgresConfig {
	return sqlstore.PostgresConfig{Host: pg.Host, Port: pg.Port, Name: database, User: pg.User, SSLMode: "disable"}
}

func openPostgres(t testing.TB, c sqlstore.PostgresConfig) *sqlstore.Postgres {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), c, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openSQLite(t testing.TB, path string) *sqlstore.SQLite {
	t.Helper()
	s, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestPostgresKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		name := pg.Database(t)
		return storetest.Engine{
			Open:   func(t testing.TB) store.Store { return openPostgres(t, pgConfig(name)) },
			Shared: true,
			Spec:   pg.URL(name),
			Exec:   func(t testing.TB, statement string) { pg.Exec(t, name, statement) },
		}
	})
}

func TestSQLiteKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		path := filepath.Join(t.TempDir(), "db.sqlite")
		return storetest.Engine{
			Open: func(t testing.TB) store.Store { return openSQLite(t, path) },
			Spec: "sqlite:" + path,
			Exec: func(t testing.TB, statement string) {
				db, err := sql.Open("sqlite", "file:"+path)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(fmt.Errorf("%s: %w", statement, err))
				}
			},
		}
	})
}
