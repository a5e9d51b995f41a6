package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// versionTable is the table in which goose records the applied migrations; firstTable is created by the first
// migration.
const versionTable, firstTable = "goose_db_version", "head"

// mustBeOurs fails if these are the tables of another program, because some programs refuse a database in
// which they find an unknown table. It must be called before anything is written. setting is the key that
// names the database.
func mustBeOurs(name string, tables []string, setting string) error {
	others := slices.DeleteFunc(slices.Clone(tables), func(t string) bool { return t == versionTable })
	switch {
	case len(others) == 0:
		return nil // the database is new, or the first migration failed
	case slices.Contains(tables, versionTable) && slices.Contains(tables, firstTable):
		return nil
	}
	whose := "of another program"
	if slices.Contains(others, "pre_auth_keys") {
		whose = "of Headscale"
	}
	const most = 5
	list := strings.Join(others[:min(most, len(others))], ", ")
	if more := len(others) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return unavailable("failed to open database: %s has tables %s (%s); nothing was changed. Set %s to a new database", name, whose, list, setting)
}

// mustBeOurFile fails if a file contains the tables of another program. It neither changes the file nor
// creates others.
func mustBeOurFile(ctx context.Context, path string) error {
	// If the file is damaged, opening it later reports that. After a process was killed while writing, only a
	// writer can read the file, and mustBeOurSQLite checks it later.
	if !exists(path) || exists(path+"-journal") {
		return nil
	}
	options := "immutable=1" // otherwise SQLite would create a log
	if exists(path + "-wal") {
		options = "mode=ro" // the newest tables may be in the log
	}
	db, err := openFile(path, options)
	if err != nil {
		return openError(path, err)
	}
	defer db.Close()
	return mustBeOurSQLite(ctx, db, path)
}

func mustBeOurSQLite(ctx context.Context, db *sql.DB, path string) error {
	tables, err := tableNames(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return explain(err)
	}
	return mustBeOurs(path, tables, "database.sqlite.path")
}

// mustBeOurPostgres fails if the schema in which the tables would be created contains those of another
// program. Tables of extensions are ignored.
func mustBeOurPostgres(ctx context.Context, db *sql.DB) error {
	var name string
	if err := db.QueryRowContext(ctx, "SELECT current_database()").Scan(&name); err != nil {
		return err
	}
	tables, err := tableNames(ctx, db, `
		SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p')
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
		ORDER BY c.relname`)
	if err != nil {
		return err
	}
	return mustBeOurs("the PostgreSQL database "+name, tables, "database.postgres.name")
}

func tableNames(ctx context.Context, db *sql.DB, query string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
