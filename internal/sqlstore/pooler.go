package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler is the reason why this replica does not use a database behind a connection pooler.
var errPooler = errors.New("use the address of PostgreSQL itself in database.postgres.host: through a connection pooler like PgBouncer, " +
	"replicas would miss notifications, and a replica that hangs could lock out the others")

// sessionLimits returns the settings without which a replica that hangs keeps the head row locked. PgBouncer does not pass them
// on.
func sessionLimits() []string {
	return []string{"idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"}
}

// refusePooler returns an error if a session of the database is not what PostgreSQL itself offers: it has the settings with which
// it was opened, and belongs to one client until that closes it. LISTEN, prepared statements and the lock of migrations need such a
// session. Without this check, everything would seem to work, until replicas fall behind or wait for each other.
func (h *hosts) refusePooler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout) // allows for trying a second host
	defer cancel()
	first, err := h.connect(ctx)
	if err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "08P01" { // protocol_violation: PgBouncer knows only some startup parameters
			return fmt.Errorf("%w: %w", errPooler, err)
		}
		return err
	}
	defer closeConn(first)
	pid, err := sessionOf(ctx, first)
	if err != nil {
		return err
	}
	if uint32(pid) == first.PgConn().PID() { // a pooler invents this number for its clients
		return nil
	}
	second, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(second)
	for range 3 { // in case the pooler takes its connections in turn
		other, err := sessionOf(ctx, second)
		if err != nil {
			return err
		}
		again, err := sessionOf(ctx, first)
		if err != nil {
			return err
		}
		if other == pid || again != pid {
			return fmt.Errorf("%w: two clients share a session of the database", errPooler)
		}
	}
	return nil
}

// sessionOf returns the number of the database session that serves a connection now, if it has the settings of this connection.
func sessionOf(ctx context.Context, conn *pgx.Conn) (pid int32, err error) {
	// Without a prepared statement, because a pooler may not support them. The simple protocol would need a database in UTF-8.
	const query = "SELECT pg_backend_pid(), (SELECT setting FROM pg_settings WHERE name = $1)"
	for _, name := range sessionLimits() {
		var setting string
		if err := conn.QueryRow(ctx, query, pgx.QueryExecModeExec, name).Scan(&pid, &setting); err != nil {
			return 0, err
		}
		if want := conn.Config().RuntimeParams[name]; setting != want {
			return 0, fmt.Errorf("%w: %s is %s instead of %s", errPooler, name, setting, want)
		}
	}
	return pid, nil
}
