package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

const (
	// migrationLock is how long a migration waits for a table that another session uses. Meanwhile, running replicas
	// wait behind it for the same table, so it is short. Then the migration lets them pass for migrationRetry, and
	// tries again.
	migrationLock  = 2 * time.Second
	migrationRetry = 3 * time.Second
	// migrationLimit limits how long all migrations take, including the time until tables are free.
	migrationLimit = 10 * time.Minute
)

// migratePostgres migrates the tables. It uses a connection that is limited only in waiting for locks, and takes an
// advisory lock, so that replicas that start together migrate once.
func migratePostgres(ctx context.Context, config *pgx.ConnConfig, log *slog.Logger) error {
	config = patient(config)
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(migrationLock.Milliseconds(), 10)
	db := openDB(config)
	defer db.Close()
	// Ping first, so that an unreachable server fails at once and not after all attempts to take the lock.
	ping, cancel := context.WithTimeout(ctx, 2*connectTimeout) // allows for trying a second host
	defer cancel()
	if err := db.PingContext(ping); err != nil {
		return err
	}
	if err := mustBeOurPostgres(ctx, db); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, migrationLimit)
	defer cancel()
	for {
		err := migrate(ctx, goose.DialectPostgres, db, goose.WithSessionLocker(locker))
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != lockNotAvailable {
			return err
		}
		log.Warn("migration waits for a table that another session uses; pg_stat_activity shows who", "error", err, "retry", migrationRetry)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(migrationRetry):
		}
	}
}

// lockNotAvailable is the code of PostgreSQL's error after lock_timeout.
const lockNotAvailable = "55P03"

// migrate migrates the tables with goose. It passes each file as a function to avoid goose's parser, which
// allocates 4 MiB for every statement of a file. No file needs parsing, because each can be executed as one
// text.
func migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, opts ...goose.ProviderOption) error {
	files, err := migrationFiles(dialect)
	if err != nil {
		return err
	}
	steps := make([]*goose.Migration, len(files))
	for i, f := range files {
		steps[i] = goose.NewGoMigration(f.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, f.up); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			return nil
		}}, nil)
	}
	provider, err := goose.NewProvider(dialect, db, nil, append(opts, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(steps...))...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrationLimit)
	defer cancel()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}
