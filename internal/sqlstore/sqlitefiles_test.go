package sqlstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
)

func openFile(t *testing.T, path string) *sqlstore.SQLite {
	t.Helper()
	s, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func addUser(t *testing.T, s store.Store, id mesh.UserID) mesh.Revision {
	t.Helper()
	return storetest.Append(t, s, []mesh.Event{mesh.UserPut{User: &mesh.User{ID: id, Name: "user" + id.String()}}})
}

func revision(t *testing.T, s store.Store) mesh.Revision {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Rev
}

// If the WAL is deleted or replaced under a running server, writes and heartbeats
// fail, and nothing acknowledged before is lost.
func TestLogThatVanishesIsNoticed(t *testing.T) {
	for name, harm := range map[string]func(wal string) error{
		"deleted": os.Remove,
		"replaced": func(wal string) error {
			return errors.Join(os.Remove(wal), os.WriteFile(wal, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			s := openFile(t, path)
			saved := addUser(t, s, 1)
			if err := harm(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			err := s.Lock(t.Context(), saved, storetest.Batch(), func(tx store.Tx) error {
				_, err := tx.Append(store.Command{Events: []mesh.Event{mesh.UserGone{ID: 1}}})
				return err
			})
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "-wal was removed or replaced") {
				t.Errorf("a write: %v", err)
			}
			for range 2 {
				if _, err := s.Beat(t.Context(), store.Report{ID: "a"}); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("a beat: %v", err)
				}
			}
			main, err := os.ReadFile(path) // the file as a kill would leave it
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(copied, main, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := revision(t, openFile(t, copied)); got != saved {
				t.Errorf("after a restart revision %d of %d is there", got, saved)
			}
		})
	}
}

// A database that has lost its WAL is not mistaken for an older state of it.
func TestDatabaseWithoutItsLogDoesNotOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openFile(t, path)
	early, err := os.ReadFile(path) // everything that follows is in the WAL
	if err != nil {
		t.Fatal(err)
	}
	saved := addUser(t, s, 1)
	late, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Restore the file as a kill would leave it, without the WAL.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(early); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), path+"-wal was removed") {
			t.Fatalf("opened without its log: %v", err)
		}
		if raw, err := sqlstore.OpenRaw(t.Context(), sqlstore.Location{SQLite: path}, sqlstore.Take); err == nil {
			raw.Close()
			t.Error("copied without its log")
		}
	}
	if err := os.WriteFile(path+"-wal", late, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := revision(t, openFile(t, path)); got != saved {
		t.Errorf("revision %d of %d is there with the log", got, saved)
	}
}

// The main file on its own is a valid database from the start, and never much older
// than its WAL.
func TestCopyOfAYoungDatabaseIsADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openFile(t, path)
	for i, want := range []mesh.Revision{0, 3} {
		if i > 0 {
			for id := range mesh.UserID(3) {
				addUser(t, s, id+1)
			}
			if _, err := s.Prune(t.Context(), 0, time.Hour); err != nil { // runs every minute in production
				t.Fatal(err)
			}
		}
		main, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(copied, main, 0o600); err != nil {
			t.Fatal(err)
		}
		raw, err := sqlstore.OpenRaw(t.Context(), sqlstore.Location{SQLite: copied}, sqlstore.Take)
		if err != nil {
			t.Fatal(err)
		}
		err = raw.View(t.Context(), func(v *sqlstore.View) error {
			if v.Schema == 0 || v.Rev != want {
				t.Errorf("the copy has tables of version %d at revision %d, want revision %d", v.Schema, v.Rev, want)
			}
			return nil
		})
		if err = errors.Join(err, raw.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A new database in place of a deleted one is not checked against what the old one
// contained.
func TestNewDatabaseForgetsTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openFile(t, path)
	addUser(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := openFile(t, path)
		if got := revision(t, s); got != 0 {
			t.Errorf("a new database is at revision %d", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
