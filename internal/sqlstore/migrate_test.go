package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestReplicasThatStartTogetherMigrateOnce(t *testing.T) {
	t.Parallel()
	name := pg.Database(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if said := storetest.OpenElsewhere(t, pg.URL(name), os.Getuid()); said != "" {
				t.Errorf("process: %s", said)
			}
		})
	}
	stores := make([]*sqlstore.Postgres, 8)
	for i := range stores {
		wg.Go(func() { stores[i] = openPostgres(t, pgConfig(name)) })
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	var applied, twice int
	err := session(t, pg.URL(name)).QueryRow(t.Context(), "SELECT count(*), count(*) - count(DISTINCT version_id) FROM goose_db_version").Scan(&applied, &twice)
	if err != nil || applied < 2 || twice != 0 {
		t.Fatalf("%d migrations applied, %d of them twice (%v)", applied, twice, err)
	}
	for _, s := range stores {
		heals(t, s)
	}
}

// undoMigrations undoes the newest migrations of a database, up to and including one that changes a table, and
// returns the name of that table.
func undoMigrations(t *testing.T, database string) string {
	t.Helper()
	for _, file := range slices.Backward(migrationPaths(t, "postgres")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, down, _ := strings.Cut(string(text), "-- +goose Down")
		pg.Exec(t, database, down)
		pg.Exec(t, database, "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
		if table := regexp.MustCompile(`(?i)ALTER TABLE (\w+)`).FindStringSubmatch(down); table != nil {
			return table[1]
		}
	}
	t.Fatal("no migration changes a table")
	return ""
}

// A migration that waits for a foreign session must not block replicas that are still running.
func TestMigrationLetsOthersPassWhileATableIsInUse(t *testing.T) {
	t.Parallel()
	name := pg.Database(t)
	if err := openPostgres(t, pgConfig(name)).Close(); err != nil {
		t.Fatal(err)
	}
	table := undoMigrations(t, name)
	reader, err := session(t, pg.URL(name)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "LOCK TABLE "+table+" IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	var log waittest.Transcript
	config := pgConfig(name)
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	opened := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		openPostgres(t, config)
		close(opened)
	})
	waittest.Eventually(t, time.Minute, 10*time.Millisecond, func() error {
		if !strings.Contains(log.String(), "migration waits for a table") {
			return errors.New("no line in the log")
		}
		return nil
	})
	if _, err := session(t, pg.URL(name)).Exec(t.Context(), "SELECT count(*) FROM "+table); err != nil { // a running replica
		t.Errorf("another session: %v", err)
	}
	select {
	case <-opened:
		t.Error("the migration did not wait")
	default:
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-opened
}

// Both engines must end up with the same tables, column by column.
func TestSchemasOfBothEnginesAgree(t *testing.T) {
	name := pg.Database(t)
	openPostgres(t, pgConfig(name))
	path := filepath.Join(t.TempDir(), "db.sqlite")
	openSQLite(t, path)
	postgres, sqlite := postgresColumns(t, pg.URL(name)), sqliteColumns(t, path)
	if len(postgres) < 50 {
		t.Fatalf("found only %d columns", len(postgres))
	}
	if diff := cmp.Diff(postgres, sqlite); diff != "" {
		t.Fatalf("PostgreSQL (-) and SQLite (+) differ:\n%s", diff)
	}
}

// Audit rows written before the actor had its own columns can be found by actor.
func TestOldAuditRowsKnowTheirActors(t *testing.T) {
	name := pg.Database(t)
	path := filepath.Join(t.TempDir(), "db.sqlite")
	for engine, open := range map[string]func(t *testing.T) (store.Store, func(string)){
		"postgres": func(t *testing.T) (store.Store, func(string)) {
			return openPostgres(t, pgConfig(name)), func(statement string) { pg.Exec(t, name, statement) }
		},
		"sqlite": func(t *testing.T) (store.Store, func(string)) {
			s := openSQLite(t, path)
			return s, func(statement string) {
				db, err := sql.Open("sqlite", "file:"+path)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(engine, func(t *testing.T) {
			s, exec := open(t)
			for _, actor := range []mesh.Actor{{Kind: mesh.ActorServer}, {Kind: mesh.ActorKey, ID: "3", Name: "b\"ü"}} {
				err := s.Lock(t.Context(), 0, storetest.Batch(), func(tx store.Tx) error {
					_, err := tx.Append(store.Command{Actor: actor, Events: user(1), Audit: []history.AuditRow{{Kind: "user", Object: "1"}}})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			files := migrationPaths(t, engine)
			for _, file := range slices.Backward(files[4:]) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				_, down, _ := strings.Cut(string(text), "-- +goose Down")
				exec(down)
			}
			exec("DELETE FROM goose_db_version WHERE version_id >= 5")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, _ = open(t)
			for actor, want := range map[string]int{"server": 1, "key": 1, "key:3": 1, "key:b\"ü": 1, "key:4": 0, "user": 0} {
				rows, err := s.(history.Store).Audit(t.Context(), history.AuditQuery{Actor: actor, Limit: 10})
				if err != nil || len(rows) != want {
					t.Errorf("%d rows of %s, want %d (%v)", len(rows), actor, want, err)
				}
			}
		})
	}
}

// migrationPaths lists the files of one engine and those shared by both, ordered by number.
func migrationPaths(t *testing.T, engine string) []string {
	t.Helper()
	own, err := filepath.Glob(filepath.Join("migrations", engine, "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob(filepath.Join("migrations", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	files := slices.Concat(own, shared)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return files
}

// columnLine describes a column in terms that both engines share. Primary key columns
// are never null, whatever the engine reports about them.
func columnLine(table string, position int, column, typ string, notNull bool, key int, value string) string {
	family := map[string]string{"bigint": "integer", "INTEGER": "integer", "text": "text", "TEXT": "text", "bytea": "blob", "BLOB": "blob"}[typ]
	line := fmt.Sprintf("%s %d %s %s", table, position, column, family)
	if notNull || key > 0 {
		line += " not null"
	}
	if key > 0 {
		line += fmt.Sprintf(" key %d", key)
	}
	if value != "" {
		line += " default " + strings.TrimSuffix(value, "::text")
	}
	return line
}

func postgresColumns(t *testing.T, url string) []string {
	t.Helper()
	rows, err := session(t, url).Query(t.Context(), `
		SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, NULL), a.attnotnull,
			coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0), coalesce(pg_get_expr(d.adbin, d.adrelid), '')
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND c.relname NOT LIKE 'goose%'
		ORDER BY c.relname, a.attnum`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) { return scanColumn(row) })
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func sqliteColumns(t *testing.T, path string) (lines []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `
		SELECT s.name, c.cid + 1, c.name, c.type, c."notnull", c.pk, coalesce(c.dflt_value, '')
		FROM sqlite_schema s JOIN pragma_table_info(s.name) c
		WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite%' AND s.name NOT LIKE 'goose%'
		ORDER BY s.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		line, err := scanColumn(rows)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func scanColumn(row interface{ Scan(...any) error }) (string, error) {
	var table, column, typ, value string
	var position, key int
	var notNull bool
	err := row.Scan(&table, &position, &column, &typ, &notNull, &key, &value)
	return columnLine(table, position, column, typ, notNull, key, value), err
}
