package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"
)

// hostStagger is how long one host may be silent before the next is tried in parallel. A working primary
// responds within milliseconds.
const hostStagger = 300 * time.Millisecond

// hosts holds the configured servers, one of which is the primary. The driver itself would try them one
// after the other and wait the full timeout for each silent one.
type hosts struct {
	all  []*pgx.ConnConfig // one per host
	last atomic.Int32      // index of the host that accepted the last connection
}

// newHosts splits a configuration by host. A host may have two entries, with TLS
// and without.
func newHosts(config *pgx.ConnConfig) *hosts {
	h := &hosts{}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for i, way := range ways {
		if i > 0 && way.Host == ways[i-1].Host && way.Port == ways[i-1].Port {
			one := h.all[len(h.all)-1]
			one.Fallbacks = append(one.Fallbacks, way)
			continue
		}
		one := config.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks = way.Host, way.Port, way.TLSConfig, nil
		h.all = append(h.all, one)
	}
	return h
}

// connect returns a connection to the first host that accepts one, starting with
// the host that accepted the last one.
func (h *hosts) connect(ctx context.Context) (*pgx.Conn, error) {
	if len(h.all) == 1 {
		return pgx.ConnectConfig(ctx, h.all[0])
	}
	order := make([]int, len(h.all))
	for i := range order {
		order[i] = i
	}
	last := int(h.last.Load())
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bit(a != last), bit(b != last)) })
	return h.race(ctx, order)
}

// race returns a connection to the first host that accepts one. It tries the hosts in order: each as soon as
// the previous one has failed or has been silent for hostStagger.
func (h *hosts) race(ctx context.Context, order []int) (won *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	type try struct {
		host int
		conn *pgx.Conn
		err  error
	}
	tries := make(chan try, len(order))
	failed := make([]chan struct{}, len(order))
	var g errgroup.Group
	for i, host := range order {
		failed[i] = make(chan struct{})
		g.Go(func() error {
			defer close(failed[i])
			if i > 0 {
				timer := time.NewTimer(time.Duration(i) * hostStagger)
				defer timer.Stop()
				select {
				case <-failed[i-1]:
				case <-timer.C:
				case <-ctx.Done():
				}
			}
			conn, err := pgx.ConnectConfig(ctx, h.all[host])
			tries <- try{host, conn, err}
			return nil
		})
	}
	var errs []error
	for range order {
		t := <-tries
		switch {
		case t.err != nil:
			errs = append(errs, t.err)
		case won == nil:
			won = t.conn
			h.last.Store(int32(t.host))
			cancel()
		default:
			closeConn(t.conn)
		}
	}
	_ = g.Wait() // errors have been collected already
	if won != nil {
		return won, nil
	}
	return nil, errors.Join(errs...)
}

// choose sets a configuration to one host that accepts connections now. The pool, which connects by itself,
// then does not wait for the others.
func (h *hosts) choose(ctx context.Context, config *pgx.ConnConfig) error {
	if len(h.all) == 1 {
		return nil
	}
	conn, err := h.connect(ctx)
	if err != nil {
		return err
	}
	closeConn(conn)
	one := h.all[h.last.Load()]
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = one.Host, one.Port, one.TLSConfig, one.Fallbacks
	return nil
}

// openDB returns a database/sql pool that chooses a host for each connection.
func openDB(config *pgx.ConnConfig) *sql.DB {
	return stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(newHosts(config).choose))
}
