package main_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

// If the WAL is deleted under a running server, writes stop and /health fails.
func TestDeletedLogTurnsHealthRed(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "ada")
	if err := os.Remove(s["database.sqlite.path"] + "-wal"); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, "users", "create", "bob"); r.status == 0 {
		t.Error("a change was acknowledged that is nowhere")
	}
	eventually(t, func() error {
		status, body, err := p.client("").do("GET", "/health", "")
		if err == nil && status != http.StatusServiceUnavailable {
			err = errors.New(body)
		}
		return err
	})
	says(t, p.log.String(), "db.sqlite-wal was removed or replaced")
	p.kill(t)
	serve(t, s)
	if users := mustCommand(t, s, "users", "list"); !strings.Contains(users, "ada") {
		t.Errorf("an acknowledged change is lost: %s", users)
	}
}

// A server that was killed and has lost its WAL refuses to start from the remaining
// files.
func TestKilledWithoutItsLogDoesNotStart(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "ada")
	p.kill(t)
	if err := os.Remove(s["database.sqlite.path"] + "-wal"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		refuses(t, s, nil, "db.sqlite-wal was removed", "Restore the missing file or a backup", "db.sqlite.lock")
	}
}
