package sqlstore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// The other program could not open files that another user creates next to its database.
func TestReadingAnotherProgramsTablesLeavesItsFilesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		mode    string
		running bool
		killed  bool // with changes that are only in its log
	}{
		"running":                {mode: "WAL", running: true},
		"stopped":                {mode: "WAL"},
		"killed":                 {mode: "WAL", killed: true},
		"without a log, running": {mode: "DELETE", running: true},
		"without a log, stopped": {mode: "DELETE"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db.sqlite")
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode("+c.mode+")")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE other (id INTEGER); INSERT INTO users VALUES (1, 'ann')"); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.killed:
				copied := filepath.Join(t.TempDir(), "db.sqlite")
				for _, suffix := range []string{"", "-wal"} {
					text, err := os.ReadFile(path + suffix)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(copied+suffix, text, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				path = copied
			case !c.running:
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(t, filepath.Dir(path))
			tables, err := sqlstore.ReadTables(t.Context(), sqlstore.Location{SQLite: path}, "users", "nodes")
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]sqlstore.Rows{"users": {{"id": int64(1), "name": "ann"}}}
			if diff := cmp.Diff(want, tables); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
			after := contents(t, filepath.Dir(path))
			for file := range after {
				if c.running && strings.HasSuffix(file, "-shm") { // memory that the processes share
					after[file] = before[file]
				}
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestReadingWhatIsNotADatabaseFails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": strings.Repeat("no database ", 100)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.ReadTables(t.Context(), sqlstore.Location{SQLite: path}, "users"); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	if _, err := sqlstore.ReadTables(t.Context(), sqlstore.Location{SQLite: filepath.Join(dir, "missing")}, "users"); err == nil {
		t.Error("a missing file was read")
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("the file was created")
	}
}
