package sqlstore_test

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// foreign returns databases created by other programs, with the error expected for each.
func foreign() map[string]struct{ statements, said string } {
	const headscale = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE nodes (id INTEGER PRIMARY KEY); CREATE TABLE routes (id INTEGER); " +
		"CREATE TABLE pre_auth_keys (id INTEGER); CREATE TABLE api_keys (id INTEGER); CREATE TABLE policies (id INTEGER); CREATE TABLE migrations (id TEXT PRIMARY KEY); INSERT INTO users VALUES (1, 'ada');"
	return map[string]struct{ statements, said string }{
		"Headscale's":             {headscale, "has tables of Headscale (api_keys, migrations, nodes, policies, pre_auth_keys and 2 more); nothing was changed"},
		"that uses goose as well": {"CREATE TABLE goose_db_version (id INTEGER); CREATE TABLE shops (id INTEGER);", "has tables of another program (shops); nothing was changed"},
		"with a table head":       {"CREATE TABLE head (id INTEGER);", "has tables of another program (head); nothing was changed"},
	}
}

func mustRefuse(t *testing.T, err error, said, setting string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), setting) {
		t.Errorf("opening it: %v, want %q and %q", err, said, setting)
	}
}

// Our tables must not be added: Headscale refuses to start on a database with unknown tables.
func TestDatabaseOfAnotherProgramIsLeftAloneOnSQLite(t *testing.T) {
	for name, c := range foreign() {
		for _, mode := range []string{"DELETE", "WAL"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "db.sqlite")
				db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode("+mode+")")
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close() // the other program still runs, and its last writes are in the WAL
				if _, err := db.ExecContext(t.Context(), c.statements); err != nil {
					t.Fatal(err)
				}
				before := contents(t, filepath.Dir(path))
				_, err = sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
				mustRefuse(t, err, c.said, "database.sqlite.path")
				for _, use := range []sqlstore.Use{sqlstore.Take, sqlstore.Fill} {
					_, err = sqlstore.OpenRaw(t.Context(), sqlstore.Location{SQLite: path}, use)
					mustRefuse(t, err, c.said, "database.sqlite.path")
				}
				if diff := cmp.Diff(before, contents(t, filepath.Dir(path))); diff != "" {
					t.Errorf("files changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// contents returns a digest of each file except the -shm file, SQLite's index of the
// WAL, in which readers register themselves.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "-shm") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name()] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return found
}

func TestDatabaseOfAnotherProgramIsLeftAloneOnPostgres(t *testing.T) {
	for name, c := range foreign() {
		t.Run(name, func(t *testing.T) {
			database := pg.Database(t)
			pg.Exec(t, database, c.statements)
			before := postgresTables(t, database)
			_, err := sqlstore.OpenPostgres(t.Context(), pgConfig(database), prometheus.NewRegistry())
			mustRefuse(t, err, c.said, "database.postgres.name")
			if after := postgresTables(t, database); after != before {
				t.Errorf("tables were %s, are %s", before, after)
			}
		})
	}
}

func postgresTables(t *testing.T, database string) (names string) {
	t.Helper()
	const query = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
	if err := session(t, pg.URL(database)).QueryRow(t.Context(), query).Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTablesInOtherSchemasAndOfExtensionsDoNotMatter(t *testing.T) {
	database := pg.Database(t)
	pg.Exec(t, database, "CREATE SCHEMA other; CREATE TABLE other.users (id INTEGER); CREATE TABLE made (id INTEGER); ALTER EXTENSION plpgsql ADD TABLE made")
	openPostgres(t, pgConfig(database))
}
