package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

// errPoolExhausted means that no connection became free in time.
var errPoolExhausted = errors.New("database connection pool exhausted; raise database.postgres.max_open_conns, or find slow queries")

// explain turns an engine's error into the messages that operators search for, the same for both engines, and
// says what to do. Errors of the caller are returned unchanged.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var stale *staleError
	switch {
	case errors.As(err, &stale):
		return unavailable("no current primary found: %w", stale)
	case errors.Is(err, errPooler):
		return oneLine{err}
	case errors.Is(err, errPoolExhausted):
		return unavailable("%w", err)
	case errors.As(err, &pg): // more specific than the ConnectError that may wrap it
		return explainPostgres(pg, err)
	case errors.As(err, &connect):
		return unavailable("failed to connect to database: check that PostgreSQL is running at database.postgres.host and port: %w", err)
	case sqliteCode(err) != sqlite3.SQLITE_OK:
		return explainSQLite(err)
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("database too slow: %w", err)
	case lost(err):
		return unavailable("connection to database lost: %w", err)
	}
	return err
}

func lost(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

func unavailable(format string, args ...any) error {
	return oneLine{fmt.Errorf("%w: %w", store.ErrUnavailable, fmt.Errorf(format, args...))}
}

// oneLine is an error whose text fits on a log line: the driver lists every address it tried on a separate
// line.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e oneLine) Unwrap() error { return e.error }

func explainPostgres(pg *pgconn.PgError, err error) error {
	switch pg.Code {
	case "53100": // disk_full
		return unavailable("database write failed: no space left on device: free space on the disk of the PostgreSQL server: %w", err)
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return unavailable("invalid page header: a page of the database is damaged; restore a backup: %w", err)
	case "53300": // too_many_connections
		return unavailable("failed to connect to database: too many clients already: lower database.postgres.max_open_conns or raise max_connections: %w", err)
	case "55P03": // lock_not_available
		return unavailable("database is locked by another session: find it with pg_blocking_pids() in pg_stat_activity: %w", err)
	case "57014", "25P03": // query_canceled, idle_in_transaction_session_timeout
		return unavailable("database too slow: %w", err)
	case "42501": // insufficient_privilege
		return unavailable("failed to prepare the database: the role must own it: ALTER DATABASE … OWNER TO …: %w", err)
	case "3D000": // invalid_catalog_name
		return unavailable("failed to connect to database: create the database, or check database.postgres.name: %w", err)
	case "28P01", "28000": // wrong password, not authorized
		return unavailable("failed to connect to database: check database.postgres.user and pass: %w", err)
	}
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &connect), strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57P"), pg.Code == "25006": // connection, shutdown, standby
		return unavailable("failed to connect to database: %w", err)
	case strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "58"): // resources, system
		return unavailable("database write failed: %w", err)
	}
	return err
}

// sqliteCode returns SQLite's primary error code, or zero.
func sqliteCode(err error) int { return extendedCode(err) & 0xff }

func extendedCode(err error) int {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return sqlite3.SQLITE_OK
	}
	return lite.Code()
}

func explainSQLite(err error) error {
	// Until its first change, a database file has a rollback journal, which a read-only connection cannot
	// roll back. After that it has a write-ahead log.
	if extendedCode(err) == sqlite3.SQLITE_READONLY_ROLLBACK {
		return unavailable("the process that was creating the database file was interrupted, so the file is empty: repeat the restore, or start the server: %w", err)
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_FULL:
		return unavailable("database write failed: no space left on device: free disk space: %w", err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return unavailable("database disk image is malformed: restore a backup: %w", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return unavailable("failed to open database file: permission denied: the user that runs the server must own the file and its directory: %w", err)
	case sqlite3.SQLITE_IOERR:
		return unavailable("database write failed: %w", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return unavailable("database is locked by another process: %w", err)
	}
	return err
}

// openError explains why a database file could not be opened, and names the file.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unavailable("failed to open database file: permission denied: %s: the user that runs the server must own the file and its directory", path)
	case errors.Is(err, syscall.EROFS):
		return unavailable("failed to open database file: %s is on a read-only file system", path)
	case errors.Is(err, syscall.ENOSPC):
		return unavailable("failed to open database file: no space left on device: %s", path)
	}
	return unavailable("failed to open database file: %w", err)
}
