package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Filling is a table to write: its rows, each by column name.
type Filling struct {
	Name string
	Rows Rows
	// Last is the last value that its automatic column has ever had, or zero if it has none.
	Last int64
}

// CreateFile creates a SQLite file for another program, which only the owner can read. The file appears when it is complete.
// One that exists is not replaced.
func CreateFile(ctx context.Context, path string, schema []string, tables []Filling) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot create %s: %w", path, errors.Join(err, fs.ErrExist))
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".fairlead-")
	if err != nil {
		return fmt.Errorf("cannot create %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	unfinished := filepath.Join(dir, "db")
	if err := os.WriteFile(unfinished, nil, 0o600); err != nil {
		return err
	}
	db, err := openFile(unfinished, "mode=rw&_pragma=foreign_keys(1)")
	if err != nil {
		return openError(unfinished, err)
	}
	err = fillFile(ctx, db, schema, tables)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return os.Link(unfinished, path) // unlike a rename, it fails if the file exists
}

func fillFile(ctx context.Context, db *sql.DB, schema []string, tables []Filling) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range schema {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for _, t := range tables {
		for _, row := range t.Rows {
			columns := slices.Sorted(maps.Keys(row))
			values := make([]any, len(columns))
			for i, c := range columns {
				values[i] = row[c]
			}
			insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", t.Name, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1))
			if _, err := tx.ExecContext(ctx, insert, values...); err != nil {
				return fmt.Errorf("table %s: %w", t.Name, err)
			}
		}
		if t.Last == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = ?", t.Name); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", t.Name, t.Last); err != nil {
			return err
		}
	}
	return tx.Commit()
}
