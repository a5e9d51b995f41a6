package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// Without the check, a replica starts behind PgBouncer and seems to work: it hears of changes only when it polls, and its locks and
// limits apply to other replicas' sessions.
func TestDatabaseBehindAPoolerIsRefused(t *testing.T) {
	const ignore = "ignore_startup_parameters = idle_in_transaction_session_timeout, lock_timeout, statement_timeout, tcp_user_timeout\n"
	limits := map[string]string{"idle_in_transaction_session_timeout": "3000", "lock_timeout": "5000", "statement_timeout": "10000"}
	for name, test := range map[string]struct {
		settings string
		limits   map[string]string // of the database
		want     string            // empty if it is accepted
	}{
		"as installed":                   {settings: "pool_mode = session", want: "unsupported startup parameter"},
		"transactions, as installed":     {settings: "pool_mode = transaction", want: "unsupported startup parameter"},
		"without limits":                 {settings: ignore + "pool_mode = transaction", want: "idle_in_transaction_session_timeout is 0 instead of 3000"},
		"sessions without limits":        {settings: ignore + "pool_mode = session", want: "idle_in_transaction_session_timeout is 0 instead of 3000"},
		"transactions, with limits":      {settings: ignore + "pool_mode = transaction", limits: limits, want: "two clients share a session"},
		"transactions, in turn":          {settings: ignore + "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 3", limits: limits, want: "two clients share a session"},
		"sessions that belong to client": {settings: ignore + "pool_mode = session", limits: limits},
	} {
		t.Run(name, func(t *testing.T) {
			database := pg.Database(t)
			for setting, value := range test.limits {
				pg.Exec(t, database, fmt.Sprintf("ALTER DATABASE %s SET %s = %s", database, setting, value))
			}
			config := pgConfig(database)
			config.Port = pg.PgBouncer(t, test.settings)
			s, err := sqlstore.OpenPostgres(t.Context(), config, prometheus.NewRegistry())
			if err == nil {
				s.Close()
			}
			switch {
			case test.want == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "use the address of PostgreSQL itself"):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Containers often create databases with the locale C, whose encoding is SQL_ASCII.
func TestDatabaseWithoutUnicodeIsNotTakenForAPooler(t *testing.T) {
	database := pg.Database(t)
	pg.Exec(t, "postgres", "DROP DATABASE "+database)
	pg.Exec(t, "postgres", "CREATE DATABASE "+database+" ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	s, err := sqlstore.OpenPostgres(t.Context(), pgConfig(database), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
