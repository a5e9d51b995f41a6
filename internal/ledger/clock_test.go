package ledger_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// shiftable creates a database role with its own clock, which shift moves. The role's
// search path makes PostgreSQL use a different clock_timestamp function.
func shiftable(t *testing.T, database string) (role string, shift func(by string)) {
	t.Helper()
	role = database + "_shifted"
	for _, statement := range []string{
		"CREATE SCHEMA shifted",
		"CREATE SCHEMA shift",
		"CREATE TABLE shift.by (by interval NOT NULL)",
		"INSERT INTO shift.by VALUES ('0')",
		"CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.clock_timestamp() + by FROM shift.by'",
		fmt.Sprintf("CREATE ROLE %s SUPERUSER LOGIN", role),
		fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET search_path = shifted, pg_catalog, public", role, database),
	} {
		pg.Exec(t, database, statement)
	}
	return role, func(by string) { pg.Exec(t, database, fmt.Sprintf("UPDATE shift.by SET by = '%s'", by)) }
}

func openAs(t *testing.T, database, role string) store.Store {
	t.Helper()
	st, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresConfig{
		Host: pg.Host, Port: pg.Port, Name: database, User: role, SSLMode: "disable",
	}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// refused makes a commit that must fail and returns the error.
func refused(t *testing.T, l *ledger.Ledger, name string) *ledger.ClockError {
	t.Helper()
	_, err := l.Commit(t.Context(), server, addUser(name))
	var clocks *ledger.ClockError
	if !errors.As(err, &clocks) || !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("commit while the clocks disagree: %v", err)
	}
	return clocks
}

func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	waittest.Eventually(t, 20*time.Second, 50*time.Millisecond, func() error {
		if !met() {
			return errors.New("waiting for " + what)
		}
		return nil
	})
}

// A replica whose clock differs from the database's stops writing, in either direction, and
// resumes by itself. The other replicas do not stop, and all use the database's clock.
func TestReplicaWithAWrongClockDoesNotWrite(t *testing.T) {
	database := pg.Database(t)
	right := run(t, ledger.Config{Store: openPostgres(t, pg, database)})
	role, shift := shiftable(t, database)
	wrong := run(t, ledger.Config{Store: openAs(t, database, role)})
	if _, err := wrong.Commit(t.Context(), server, addUser("before")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, says string }{{"1 year", "behind"}, {"-1 hour", "ahead of"}, {"6 minutes", "behind"}} {
		shift(c.by)
		if e := refused(t, wrong, "refused"); !strings.Contains(e.Error(), c.says) || !e.Refuses() {
			t.Errorf("by %s: %v", c.by, e)
		}
		if _, err := wrong.Commit(t.Context(), server, addUser("before")); !errors.Is(err, errTaken) {
			t.Errorf("what is not written is refused for its own reason: %v", err)
		}
		if e := wrong.Status().Clocks(); e == nil || !e.Refuses() {
			t.Errorf("by %s: clocks: %v", c.by, e)
		}
		if _, err := right.Commit(t.Context(), server, addUser("right "+c.by)); err != nil {
			t.Errorf("the other replica is stopped too: %v", err)
		}
	}
	shift("2 minutes")
	await(t, "a warning", func() bool { e := wrong.Status().Clocks(); return e != nil && !e.Refuses() })
	if _, err := wrong.Commit(t.Context(), server, addUser("slightly late")); err != nil {
		t.Error(err)
	}
	shift("0")
	await(t, "that the clocks agree", func() bool { return wrong.Status().Clocks() == nil || wrong.Status().Clocks().Lead > 0 })
}

// This machine's clock does not decide what has expired.
func TestExpiryIsJudgedByTheClockOfTheDatabase(t *testing.T) {
	database := pg.Database(t)
	role, shift := shiftable(t, database)
	shift("-30 minutes") // this machine is half an hour ahead
	l := run(t, ledger.Config{Store: openAs(t, database, role)})
	if by := l.Now().Sub(mesh.TimeOf(time.Now())) + 30*time.Minute; by.Abs() > 20*time.Second {
		t.Errorf("judged by a clock that is %v from the database's", by)
	}
}

// A change dated ahead of the clocks stops all writes. Setting the time back makes them
// possible again, on all replicas and after a restart.
func TestTimeIsSetBack(t *testing.T) {
	year := 365 * 24 * time.Hour
	for name, open := range map[string]func(t *testing.T) (sts []store.Store, exec func(string)){
		"sqlite": func(t *testing.T) ([]store.Store, func(string)) {
			path := filepath.Join(t.TempDir(), "db")
			st, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return []store.Store{st}, func(statement string) {
				db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		},
		"postgres": func(t *testing.T) ([]store.Store, func(string)) {
			database := pg.Database(t)
			return []store.Store{openPostgres(t, pg, database), openPostgres(t, pg, database)}, func(s string) { pg.Exec(t, database, s) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			sts, exec := open(t)
			first := run(t, ledger.Config{Store: sts[0]})
			commit(t, first, mesh.UserPut{User: &mesh.User{ID: 1, Name: "ada"}})
			ahead := mesh.TimeOf(time.Now().Add(year))
			exec(fmt.Sprintf("UPDATE head SET at = %d", ahead))
			var ls []*ledger.Ledger
			for _, st := range sts {
				ls = append(ls, run(t, ledger.Config{Store: st}))
			}
			for _, l := range ls {
				if e := refused(t, l, "bob"); e.Lead < year-time.Hour || !strings.Contains(e.Error(), "fairlead db repair-clock") {
					t.Errorf("refused: %v", e)
				}
				if l.Status().Clocks() == nil || l.Now() < ahead {
					t.Errorf("before the repair: clocks %v, now %v", l.Status().Clocks(), l.Now().Time())
				}
			}
			rev, err := ls[0].CommitBack(t.Context(), server, func(_ *policy.World, now mesh.Time) ([]mesh.Event, error) {
				if now.Sub(mesh.TimeOf(time.Now())).Abs() > time.Minute {
					t.Errorf("set back to %v", now.Time())
				}
				return []mesh.Event{mesh.ClockSet{Was: ahead}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			ls = append(ls, run(t, ledger.Config{Store: sts[0]})) // as after a restart
			for i, l := range ls {
				if err := l.WaitFor(t.Context(), rev); err != nil {
					t.Fatal(err)
				}
				if _, err := l.Commit(t.Context(), server, addUser(fmt.Sprint("user ", i))); err != nil {
					t.Errorf("ledger %d after the repair: %v", i, err)
				}
				if l.Status().Clocks() != nil || l.Now() > mesh.TimeOf(time.Now().Add(time.Minute)) {
					t.Errorf("ledger %d after the repair: clocks %v, now %v", i, l.Status().Clocks(), l.Now().Time())
				}
			}
			if _, err := sts[0].Prune(t.Context(), rev, time.Hour); err != nil {
				t.Fatal(err)
			}
		})
	}
}
