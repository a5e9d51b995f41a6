package sqlstore_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
)

// A newer replica that uses a new kind of event raises the format in the head row.
const raiseFormat = `UPDATE head SET counters = '{"user":1,"format":99}'`

func TestDatabaseInANewerFormatIsNeitherReadNorWritten(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		name := pg.Database(t)
		s, conn := openPostgres(t, pgConfig(name)), session(t, pg.URL(name))
		refusesNewerFormat(t, s, func() { run(t, conn, raiseFormat) }, func() (entries int) {
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM log").Scan(&entries); err != nil {
				t.Fatal(err)
			}
			return entries
		})
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "db")
		s := openSQLite(t, path)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		refusesNewerFormat(t, s, func() {
			if _, err := db.ExecContext(t.Context(), raiseFormat); err != nil {
				t.Fatal(err)
			}
		}, func() (entries int) {
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM log").Scan(&entries); err != nil {
				t.Fatal(err)
			}
			return entries
		})
	})
}

func refusesNewerFormat(t *testing.T, s store.Store, raise func(), entries func() int) {
	t.Helper()
	if err := appendUser(t.Context(), s, 0, storetest.Batch(), 1); err != nil {
		t.Fatal(err)
	}
	raise()
	_, loading := s.Load(t.Context())
	_, reading := s.Tail(t.Context(), store.Point{})
	writing := appendUser(t.Context(), s, 1, storetest.Batch(), mesh.UserID(2))
	for what, err := range map[string]error{"Load": loading, "Tail": reading, "Lock": writing} {
		if !errors.Is(err, store.ErrTooOld) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := entries(); n != 1 {
		t.Errorf("the log has %d entries", n)
	}
}
