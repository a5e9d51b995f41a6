package sqlstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

// commit commits the transaction of conn. The caller cannot cancel it, because that would
// only hide the outcome. It distinguishes a refused commit from one whose result is
// unknown.
//
// With a synchronous standby, PostgreSQL responds when the standby has the commit. A
// cancel request ends that wait and makes the commit visible without the standby, so none
// is ever sent, not even when the connection is abandoned. If somebody else ends the
// wait, PostgreSQL reports a warning.
func commit(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	s := socketOf(conn.PgConn())
	if s == nil {
		return errors.New("cannot commit on a connection that dial did not create")
	}
	s.warning = ""
	s.committing.Store(true)
	tag, err := conn.Exec(ctx, "COMMIT")
	var pg *pgconn.PgError
	switch {
	case err == nil && s.warning != "":
		return fmt.Errorf("%w: warning from PostgreSQL: %s", store.ErrUnknownOutcome, s.warning)
	case err == nil && tag.String() != "COMMIT":
		err = unavailable("PostgreSQL answered COMMIT with %s", tag)
	case err == nil:
	case errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR": // the server refused it
	default:
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
	}
	s.committing.Store(false)
	return err
}

// socket is a connection to PostgreSQL.
type socket struct {
	net.Conn
	committing atomic.Bool
	warning    string // the last warning; no lock needed, because only one goroutine uses a connection at a time
}

func dial(d *net.Dialer) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &socket{Conn: conn}, nil
	}
}

// RemoteAddr returns the address to which the driver sends cancel requests, which
// is its only use. During COMMIT it returns an address that cannot be dialled.
func (s *socket) RemoteAddr() net.Addr {
	if s.committing.Load() {
		return nowhere{}
	}
	return s.Conn.RemoteAddr()
}

type nowhere struct{}

func (nowhere) Network() string { return "nowhere" }
func (nowhere) String() string  { return "nowhere" }

func socketOf(conn *pgconn.PgConn) *socket {
	c := conn.Conn()
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, _ := c.(*socket)
	return s
}

// noteWarning records a warning from PostgreSQL.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if s := socketOf(conn); s != nil && n.SeverityUnlocalized == "WARNING" {
		s.warning = n.Message
	}
}
