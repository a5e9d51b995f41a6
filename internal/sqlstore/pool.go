package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	acquireTimeout = 5 * time.Second
	// connectTimeout is shorter than acquireTimeout, so that a server which does not respond is not
	// mistaken for an exhausted pool.
	connectTimeout = 4 * time.Second
	// answerTimeout is the default of PostgresConfig.AnswerTimeout.
	answerTimeout = 15 * time.Second
	loadTimeout   = 5 * time.Minute
)

func (c PostgresConfig) answer() time.Duration { return cmp.Or(c.AnswerTimeout, answerTimeout) }

// servers returns the configured hosts and the port of each.
func (c PostgresConfig) servers() (hosts, ports []string) {
	for host := range strings.SplitSeq(c.Host, ",") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = host, strconv.Itoa(cmp.Or(c.Port, 5432))
		}
		hosts, ports = append(hosts, name), append(ports, port)
	}
	return hosts, ports
}

func (c PostgresConfig) pool() (*pgxpool.Config, error) {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	hosts, ports := c.servers()
	keys := map[string]string{
		"host": strings.Join(hosts, ","), "port": strings.Join(ports, ","), "dbname": c.Name, "user": c.User, "password": c.Pass,
		"sslmode": cmp.Or(c.SSLMode, "prefer"), "application_name": "fairlead",
	}
	if strings.Contains(c.Host, ",") {
		keys["target_session_attrs"] = "read-write" // after a failover, the new primary
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		words = append(words, k+"="+quote(keys[k]))
	}
	config, err := pgxpool.ParseConfig(strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("database.postgres: %w", err)
	}
	config.MaxConns = int32(cmp.Or(c.MaxOpenConns, 10))
	config.MaxConnIdleTime = cmp.Or(c.MaxIdleTime, time.Hour)
	config.HealthCheckPeriod = min(config.HealthCheckPeriod, config.MaxConnIdleTime)
	config.PingTimeout = time.Second
	config.ConnConfig.ConnectTimeout = connectTimeout
	// The listening connection may be idle for hours: only keepalives detect that the server is
	// gone.
	config.ConnConfig.DialFunc = dial(&net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	})
	config.ConnConfig.OnNotice = noteWarning
	// A replica that was stopped in the middle of a commit must not keep the head row locked.
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "3000"
	config.ConnConfig.RuntimeParams["lock_timeout"] = strconv.FormatInt(c.answer().Milliseconds()/3, 10)
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.answer().Milliseconds()*2/3, 10)
	config.ConnConfig.RuntimeParams["tcp_user_timeout"] = "5000"
	return config, nil
}

// use runs f with a connection of the pool and a context that ends after limit.
func (p *Postgres) use(ctx context.Context, limit time.Duration, f func(context.Context, *pgx.Conn) error) error {
	conn, err := p.acquire(ctx)
	if err != nil {
		return explain(err)
	}
	defer p.idle.release(conn, p.pool)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx, conn.Conn())
}

func (p *Postgres) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := p.pool.Acquire(limited)
	switch {
	case err == nil || limited.Err() == nil || ctx.Err() != nil:
		return conn, err
	case p.pool.Stat().ConstructingConns() > 0:
		return nil, unavailable("failed to connect to database: no response within %v", acquireTimeout)
	}
	return nil, errPoolExhausted
}

// idleLimit keeps a pool from holding more idle connections than it may. pgxpool itself has no such
// limit.
type idleLimit struct {
	most int32
	mu   sync.Mutex // if two are returned at once, the second one sees the first
}

func (l *idleLimit) release(conn *pgxpool.Conn, pool *pgxpool.Pool) {
	l.mu.Lock()
	keep := pool.Stat().IdleConns() < l.most
	if keep {
		conn.Release()
	}
	l.mu.Unlock()
	if !keep {
		closeConn(conn.Conn())
		conn.Release() // a closed connection no longer counts
	}
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the connection is closed even if it cannot send its final message
}
