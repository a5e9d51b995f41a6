package sqlstore

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"
)

// Settings returns the server's values of the named settings, on a pooled connection
// and on a dedicated one as used for heartbeats and for listening.
func (p *Postgres) Settings(ctx context.Context, names ...string) (pooled, own map[string]string, err error) {
	pooled = map[string]string{}
	err = p.use(ctx, answerTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		return settings(ctx, conn, names, pooled)
	})
	if err != nil {
		return nil, nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, nil, err
	}
	defer closeConn(conn)
	own = maps.Clone(pooled)
	return pooled, own, settings(ctx, conn, names, own)
}

func settings(ctx context.Context, conn *pgx.Conn, names []string, into map[string]string) error {
	for _, name := range names {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return err
		}
		into[name] = value
	}
	return nil
}
