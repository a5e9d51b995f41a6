package sqlstore_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
)

const nobody = 65534

func TestFullDiskOfSQLiteIsNamed(t *testing.T) {
	dir := disktest.Small(t, "1m")
	s := openSQLite(t, filepath.Join(dir, "db.sqlite"))
	storetest.Append(t, s, user(1))
	filler := disktest.Fill(t, dir)
	batch, rev := storetest.Batch(), mesh.Revision(1)
	err := error(nil)
	for ; err == nil; rev++ { // the files have some free space inside
		err = appendUser(t.Context(), s, rev, batch, 2)
	}
	rev--
	says(t, err, "database write failed", "no space left on device")
	if errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("got %v, want a plain failure", err)
	}
	for range 3 {
		says(t, s.Probe(t.Context(), "a"), "database write failed", "no space left on device")
	}
	_, err = sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "new.sqlite"), prometheus.NewRegistry())
	says(t, err, "no space left on device")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context(), "a"); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if logHolds(t, s, rev, batch) {
		t.Fatal("the batch is in the log")
	}
	heals(t, s)
}

func TestMalformedFileOfSQLiteIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db.sqlite")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	says(t, err, "database disk image is malformed", "restore a backup")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	openSQLite(t, path) // no lock is left over from the failure
}

func TestDamagedPageOfSQLiteIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db.sqlite")
	s := openSQLite(t, path)
	if err := appendLarge(t.Context(), s, 0, storetest.Batch()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // checkpoints all pages into the file
		t.Fatal(err)
	}
	s = openSQLite(t, path)
	root := rootPage(t, path, "users")
	repair := damage(t, path, (root-1)*4096, 4096)
	_, err := s.Load(t.Context())
	says(t, err, "database disk image is malformed", "restore a backup")
	repair()
	heals(t, s)
}

func TestUnwritableDirectoryOfSQLiteIsNamed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	dir := disktest.Open(t)
	path := filepath.Join(dir, "db.sqlite")
	const want = "failed to open database file: permission denied"
	if said := storetest.OpenElsewhere(t, "sqlite:"+path, nobody); !strings.Contains(said, want) {
		t.Errorf("directory of another user: got %q, want %q", said, want)
	}
	if said := storetest.OpenElsewhere(t, "sqlite:"+filepath.Join(dir, "below", "db.sqlite"), nobody); !strings.Contains(said, want) {
		t.Errorf("directory that cannot be made: got %q, want %q", said, want)
	}
	s := openSQLite(t, path)
	storetest.Append(t, s, user(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if said := storetest.OpenElsewhere(t, "sqlite:"+path, nobody); !strings.Contains(said, want) {
		t.Errorf("file of another user: got %q, want %q", said, want)
	}
	for _, name := range []string{path, path + ".lock"} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if said := storetest.OpenElsewhere(t, "sqlite:"+path, nobody); !strings.Contains(said, want) {
		t.Errorf("own file in a directory of another user: got %q, want %q", said, want)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if said := storetest.OpenElsewhere(t, "sqlite:"+path, nobody); said != "" {
		t.Errorf("own directory: %s", said)
	}
}

func TestSecondProcessOnSQLiteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db.sqlite")
	s := openSQLite(t, path)
	said := storetest.OpenElsewhere(t, "sqlite:"+path, os.Getuid())
	for _, want := range []string{path, "in use by another fairlead process", "stop it first, or use PostgreSQL"} {
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want it to say %q", said, want)
		}
	}
	if _, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a second time in one process: %v", err)
	}
	storetest.Append(t, s, user(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if said := storetest.OpenElsewhere(t, "sqlite:"+path, os.Getuid()); said != "" {
		t.Errorf("after the first one ended: %s", said)
	}
}

// rootPage returns the number of the root page of a table.
func rootPage(t *testing.T, path, table string) (n int64) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = ?", table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRemovedSQLiteFileIsNoticed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db.sqlite")
	s := openSQLite(t, path)
	storetest.Append(t, s, user(1))
	aside := path + ".aside"
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	err := s.Lock(t.Context(), 1, storetest.Batch(), func(tx store.Tx) error {
		_, err := tx.Append(store.Command{Events: user(2)})
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "removed or replaced") {
		t.Fatalf("a write into a file that is gone: %v", err)
	}
	if _, err := s.Beat(t.Context(), store.Report{ID: "a"}); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a beat over a file that is gone: %v", err)
	}
	if err := s.Probe(t.Context(), "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a probe of a file that is gone: %v", err)
	}
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), store.Report{ID: "a"}); err != nil {
		t.Fatalf("a beat over the file that is back: %v", err)
	}
}

func TestOrphanedLogOfSQLiteIsNotOverwritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db.sqlite")
	if err := os.WriteFile(path+"-wal", []byte("what is left of a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), "restore the database file") {
		t.Fatalf("opening beside an orphaned log: %v", err)
	}
}

// A process killed while creating the file leaves a journal that only a writer can
// roll back.
func TestFileOfSQLiteThatWasBeingMadeIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=cache_size(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"BEGIN", "CREATE TABLE t (a)",
		"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT randomblob(2000) FROM n",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(dir, "killed.sqlite")
	for _, suffix := range []string{"", "-journal"} {
		text, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(killed+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := sqlstore.OpenRaw(t.Context(), sqlstore.Location{SQLite: killed}, sqlstore.Look)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	says(t, raw.View(t.Context(), func(*sqlstore.View) error { return nil }), "the file is empty", "repeat the restore, or start the server")
	heals(t, openSQLite(t, killed))
}
