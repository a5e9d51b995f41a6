package sqlstore_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// Every table of either engine is copied, except those named here.
func TestOnlyTheseTablesAreNotCopied(t *testing.T) {
	name := pg.Database(t)
	openPostgres(t, pgConfig(name))
	path := filepath.Join(t.TempDir(), "db.sqlite")
	openSQLite(t, path)
	newest, err := sqlstore.NewestSchema()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := sqlstore.Tables(t.Context(), newest)
	if err != nil {
		t.Fatal(err)
	}
	for engine, lines := range map[string][]string{"postgres": postgresColumns(t, pg.URL(name)), "sqlite": sqliteColumns(t, path)} {
		var left []string
		for _, line := range lines {
			table, _, _ := strings.Cut(line, " ")
			if !slices.ContainsFunc(tables, func(t sqlstore.Table) bool { return t.Name == table }) {
				left = append(left, table)
			}
		}
		if diff := cmp.Diff([]string{"log", "replicas"}, slices.Compact(left)); diff != "" {
			t.Errorf("%s:\n%s", engine, diff)
		}
	}
}

// Rebuild, which creates all tables in one transaction, must produce the same schema as the migrations.
func TestRebuiltTablesAreThoseOfTheMigrations(t *testing.T) {
	newest, err := sqlstore.NewestSchema()
	if err != nil {
		t.Fatal(err)
	}
	rebuild := func(t *testing.T, where sqlstore.Location) {
		t.Helper()
		raw, err := sqlstore.OpenRaw(t.Context(), where, sqlstore.Fill)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		err = raw.Rebuild(t.Context(), newest, func(b *sqlstore.Rebuilding) error {
			i := slices.IndexFunc(b.Tables, func(t sqlstore.Table) bool { return t.Name == "head" })
			return b.Insert(t.Context(), b.Tables[i], [][]any{{int64(1), int64(0), int64(0), []byte{}, ""}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		migrated, rebuilt := pg.Database(t), pg.Database(t)
		openPostgres(t, pgConfig(migrated))
		rebuild(t, sqlstore.Location{Postgres: pgConfig(rebuilt)})
		if diff := cmp.Diff(postgresColumns(t, pg.URL(migrated)), postgresColumns(t, pg.URL(rebuilt))); diff != "" {
			t.Fatal(diff)
		}
		heals(t, openPostgres(t, pgConfig(rebuilt)))
	})
	t.Run("sqlite", func(t *testing.T) {
		migrated, rebuilt := filepath.Join(t.TempDir(), "db.sqlite"), filepath.Join(t.TempDir(), "db.sqlite")
		openSQLite(t, migrated)
		rebuild(t, sqlstore.Location{SQLite: rebuilt})
		if diff := cmp.Diff(sqliteColumns(t, migrated), sqliteColumns(t, rebuilt)); diff != "" {
			t.Fatal(diff)
		}
		heals(t, openSQLite(t, rebuilt))
	})
}
