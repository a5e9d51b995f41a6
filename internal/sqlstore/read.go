package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Rows holds rows of another program's table, each by column name. A value has the type that the driver
// returns.
type Rows []map[string]any

// ReadTables reads tables of another program's database in one consistent view. It changes neither the
// database nor the files next to it. Tables that do not exist are left out.
func ReadTables(ctx context.Context, where Location, names ...string) (map[string]Rows, error) {
	db, closeDB, err := openForeign(ctx, where)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	opts, list := &sql.TxOptions{ReadOnly: true}, "SELECT name FROM sqlite_schema WHERE type = 'table'"
	if where.SQLite == "" {
		opts.Isolation, list = sql.LevelRepeatableRead, "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", where, explain(err))
	}
	defer func() { _ = tx.Rollback() }()
	existing, err := readRows(ctx, tx, list)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", where, explain(err))
	}
	tables := map[string]Rows{}
	for _, row := range existing {
		for _, column := range row {
			name := fmt.Sprint(column)
			if !slices.Contains(names, name) {
				continue
			}
			if tables[name], err = readRows(ctx, tx, `SELECT * FROM "`+name+`"`); err != nil { // one of names, which are constants
				return nil, fmt.Errorf("cannot read the table %s of %s: %w", name, where, explain(err))
			}
		}
	}
	return tables, nil
}

func readRows(ctx context.Context, tx *sql.Tx, query string) (Rows, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	all := Rows{}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make(map[string]any, len(columns))
		for i, name := range columns {
			row[name] = values[i]
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func openForeign(ctx context.Context, where Location) (*sql.DB, func(), error) {
	if where.SQLite != "" {
		return openForeignFile(where.SQLite)
	}
	r, err := openRawPostgres(ctx, where, Look)
	if err != nil {
		return nil, nil, explain(err)
	}
	return r.db, func() { _ = r.Close() }, nil
}

// walByte is the byte of a SQLite file that says whether changes are first written to a log. walMode is its value
// if they are.
const walByte, walMode = 18, 2

// openForeignFile opens a SQLite file that another program may be using. SQLite creates files next to a database
// with a log, which the other program could not open if they belonged to this user. So such a file is opened as
// immutable if no program uses it, and copied if a program was killed.
func openForeignFile(path string) (*sql.DB, func(), error) {
	head := make([]byte, walByte+1)
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the database: %w", err)
	}
	_, err = io.ReadFull(f, head)
	f.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not a SQLite database", path)
	}
	options, remove := "mode=ro", func() {}
	switch _, noIndex := os.Stat(path + "-shm"); {
	case exists(path + "-journal"):
		return nil, nil, fmt.Errorf("%s was not closed properly: start and stop the program that uses it, then try again", path)
	case head[walByte] != walMode:
	case !exists(path + "-wal"):
		options = "immutable=1"
	case errors.Is(noIndex, os.ErrNotExist):
		if path, remove, err = copyWithLog(path); err != nil {
			return nil, nil, err
		}
	}
	db, err := openFile(path, options)
	if err != nil {
		remove()
		return nil, nil, openError(path, err)
	}
	return db, func() { _ = db.Close(); remove() }, nil
}

// exists reports whether there is a file that is not empty.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// copyWithLog copies a database and its log to a temporary directory.
func copyWithLog(path string) (copied string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "fairlead-import-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	copied = filepath.Join(dir, "db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(path+suffix, copied+suffix); err != nil {
			remove()
			return "", nil, err
		}
	}
	return copied, remove, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
