package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

// Column is a column of a table. Type is integer, text or blob, the three that both engines store the same
// way.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Table is a table with the same columns in both engines.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // the columns of its primary key, in order
}

// transient returns why the rows of a table must not be copied to another database, or "".
func transient(table string) (why string) {
	return map[string]string{
		"log":      "only replicas that follow it need it; after a restore they reload the tables",
		"replicas": "heartbeats of running servers",
	}[table]
}

// NewestSchema returns the newest schema version that this binary supports.
func NewestSchema() (int64, error) {
	files, err := migrationFiles(goose.DialectSQLite3)
	if err != nil {
		return 0, err
	}
	return files[len(files)-1].version, nil
}

// Tables returns the tables with data to keep when a database of a schema version is copied, ordered by name.
// They are read from the migrations, so that none can be missed.
func Tables(ctx context.Context, version int64) ([]Table, error) {
	all, err := allTables(ctx, version)
	return slices.DeleteFunc(all, func(t Table) bool { return transient(t.Name) != "" }), err
}

// allTables creates the tables of a schema version in memory and inspects them.
func allTables(ctx context.Context, version int64) ([]Table, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have its own in-memory database
	files, err := migrationFiles(goose.DialectSQLite3)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.version > version {
			break
		}
		if _, err := db.ExecContext(ctx, f.up); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return sqliteTables(ctx, db)
}

func sqliteTables(ctx context.Context, db *sql.DB) ([]Table, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT s.name, c.name, lower(c.type), c.pk
		FROM sqlite_schema s JOIN pragma_table_info(s.name) c
		WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite%' ORDER BY s.name, c.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tables []Table
	for rows.Next() {
		var name string
		var column Column
		var key int
		if err := rows.Scan(&name, &column.Name, &column.Type, &key); err != nil {
			return nil, err
		}
		if len(tables) == 0 || tables[len(tables)-1].Name != name {
			tables = append(tables, Table{Name: name})
		}
		t := &tables[len(tables)-1]
		t.Columns = append(t.Columns, column)
		if key > 0 { // its position in the key, from one
			t.Key = slices.Concat(t.Key, make([]string, max(0, key-len(t.Key))))
			t.Key[key-1] = column.Name
		}
	}
	return tables, rows.Err()
}

// migrationFile is the migration from one version to the next.
type migrationFile struct {
	name    string
	version int64
	up      string
}

// migrationFiles returns all migrations of an engine in order. Each can be executed as one text.
func migrationFiles(dialect goose.Dialect) ([]migrationFile, error) {
	files, err := readMigrations(migrations, "migrations", dialect)
	if err != nil {
		return nil, err
	}
	next, err := nextFiles(dialect)
	return append(files, next...), err
}

// readMigrations reads the migrations in the folder of an engine, and the common ones next to the folders,
// which use the type names of SQLite.
func readMigrations(all fs.FS, dir string, dialect goose.Dialect) ([]migrationFile, error) {
	var files []migrationFile
	for pattern, translate := range map[string]func(string) string{
		dir + "/*.sql":                         func(text string) string { return inDialect(dialect, text) },
		dir + "/" + folder(dialect) + "/*.sql": func(text string) string { return text },
	} {
		names, err := fs.Glob(all, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(all, name)
			if err != nil {
				return nil, err
			}
			number, _, _ := strings.Cut(path.Base(name), "_")
			version, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			up, _, _ := strings.Cut(string(text), "-- +goose Down")
			files = append(files, migrationFile{name: name, version: version, up: translate(up)})
		}
	}
	slices.SortFunc(files, func(a, b migrationFile) int { return int(a.version - b.version) })
	return files, nil
}

// inDialect replaces SQLite's type names with those of an engine.
func inDialect(dialect goose.Dialect, text string) string {
	if dialect == goose.DialectSQLite3 {
		return text
	}
	return strings.NewReplacer("INTEGER", "BIGINT", "BLOB", "BYTEA").Replace(text)
}

// folder returns the folder with the migrations of an engine.
func folder(dialect goose.Dialect) string {
	if dialect == goose.DialectSQLite3 {
		return "sqlite"
	}
	return "postgres"
}
