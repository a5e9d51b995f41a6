package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/postgres/*.sql migrations/sqlite/*.sql
var migrations embed.FS

// migratePostgres uses a connection without time limits and takes an advisory
// lock, so that replicas which start together migrate once.
func migratePostgres(ctx context.Context, config *pgx.ConnConfig) error {
	db := openDB(patient(config))
	defer db.Close()
	// Asked first, so that an unreachable server fails at once and not after
	// the tries for the lock.
	ping, cancel := context.WithTimeout(ctx, 2*connectTimeout) // the second host may be the one that answers
	defer cancel()
	if err := db.PingContext(ping); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return err
	}
	return migrate(ctx, goose.DialectPostgres, db, "migrations/postgres", goose.WithSessionLocker(locker))
}

func migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, dir string, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, db, files, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bringing the database up to date: %w", err)
	}
	return nil
}
