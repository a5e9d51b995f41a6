package main_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // SQLite driver
)

// setTime sets the time of the newest change in a database.
func setTime(t *testing.T, s settings, at time.Time) {
	t.Helper()
	statement := fmt.Sprintf("UPDATE head SET at = %d", at.UnixMicro())
	if s["database.type"] == "postgres" {
		pg.Exec(t, s["database.postgres.name"], statement)
		return
	}
	db, err := sql.Open("sqlite", "file:"+s["database.sqlite.path"])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// A single change made while the clock was a year ahead makes the server reject valid
// keys until db repair-clock is run. Until then, the server starts and explains why it
// does not write.
func TestClockThatWasAheadIsRepaired(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		key := strings.TrimSpace(mustCommand(t, s, "apikeys", "create", "--expiration", "90d"))
		p.client(key).must(t, http.StatusOK, "GET", "/api/v1/user", "")
		p.stop(t)
		setTime(t, s, time.Now().AddDate(1, 0, 0))

		p = serve(t, s)
		p.client(key).must(t, http.StatusUnauthorized, "GET", "/api/v1/user", "")
		health := p.client("").must(t, http.StatusServiceUnavailable, "GET", "/health", "")
		says(t, health, "clock", "fairlead db repair-clock")
		if r := command(t, s, "users", "create", "ada"); r.status == 0 || !strings.Contains(r.stderr, "fairlead db repair-clock") {
			t.Errorf("a user was created, or the refusal does not help: %+v", r)
		}
		second := p
		if s["database.type"] == "postgres" { // on PostgreSQL, two replicas keep running during the repair
			second = serve(t, s.with("unix_socket", s["unix_socket"]+"2"))
		} else {
			if r := command(t, s, "db", "repair-clock", "--force"); r.status == 0 || !strings.Contains(r.stderr, "in use by another") {
				t.Errorf("repaired under a running service: %+v", r)
			}
			p.stop(t)
		}
		out := mustCommand(t, s, "db", "repair-clock", "--force")
		says(t, out, "Set the database time back", "Valid again", "API key")
		if s["database.type"] != "postgres" {
			p = serve(t, s)
			second = p
		}
		for _, replica := range []*process{p, second} {
			eventually(t, func() error {
				status, body, err := replica.client(key).do("GET", "/api/v1/user", "")
				if err == nil && status != http.StatusOK {
					err = errors.New(body)
				}
				return err
			})
			replica.client("").must(t, http.StatusOK, "GET", "/health", "")
		}
		mustCommand(t, s, "users", "create", "ada")
		says(t, mustCommand(t, s, "audit", "list", "--kind", "clock"), "clock", "changed")
		if r := command(t, s, "db", "repair-clock", "--force"); r.status == 0 {
			t.Errorf("repaired what is right: %+v", r)
		}
	})
}
