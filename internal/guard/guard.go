// Package guard limits unauthenticated connections, so that strangers can neither exhaust the server's
// file descriptors nor keep others from connecting. It knows nothing about keys: code that has verified a
// key calls Prove.
//
// A new connection is never rejected because of older ones: when a limit is reached, the connection that
// has been idle longest is closed.
package guard

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// Config configures a Guard. All fields except TrustedProxies are required.
type Config struct {
	// Unproven and UnprovenOfOne limit unauthenticated connections, in total and
	// from one network.
	Unproven, UnprovenOfOne int
	// Open limits all connections, so that descriptors are left for the database,
	// the local socket and metrics.
	Open int
	// TrustedProxies lists the proxies whose forwarding headers are accepted. Their connections count
	// against the network of the forwarded client.
	TrustedProxies []netip.Prefix
	Log            *slog.Logger
	Registerer     prometheus.Registerer
}

// Guard limits connections.
type Guard struct {
	config   Config
	closed   *prometheus.CounterVec
	failures prometheus.Counter

	mu        sync.Mutex
	open      int                   // guarded by mu, as are the fields below
	unproven  list.List             // elements are *Conn; the one idle longest is first
	networks  map[string]*list.List // the same connections, by network
	exhausted time.Time             // when running out of descriptors was last logged
	dropped   time.Time             // when a connection was last closed for a limit
	told      time.Time             // when the last such close was logged
}

// Reasons for closing a connection, as the metric's label shows them.
const (
	overTotal   = "total"
	overNetwork = "network"
	overFiles   = "files"
)

// New returns a guard.
func New(c Config) *Guard {
	g := &Guard{
		config: c, networks: map[string]*list.List{},
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_unauthenticated_connections_closed_total", Help: "Unauthenticated connections closed to make room for new ones, by the limit that was reached.",
		}, []string{"limit"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_accept_failures_total", Help: "Connections that could not be accepted because file descriptors ran out.",
		}),
	}
	for _, reason := range []string{overTotal, overNetwork, overFiles} {
		g.closed.WithLabelValues(reason)
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	c.Registerer.MustRegister(g.closed, g.failures,
		gauge("mesh_unauthenticated_connections", "Open unauthenticated connections.", func() float64 {
			g.mu.Lock()
			defer g.mu.Unlock()
			return float64(g.unproven.Len())
		}),
		gauge("mesh_unauthenticated_connections_limit", "Maximum number of open unauthenticated connections.", func() float64 { return float64(c.Unproven) }))
	return g
}

// Conn is a connection that is counted until it authenticates or is closed.
type Conn struct {
	net.Conn
	guard *Guard

	// All guarded by Guard.mu.
	network      string        // empty until a trusted proxy has named the client
	inAll, inOwn *list.Element // nil when it is not counted
	gone, proven bool
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.guard.mu.Lock()
	if !c.gone {
		c.gone = true
		c.guard.open--
		c.guard.uncount(c)
	}
	c.guard.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// WithConn returns a context in which Prove finds the connection.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if outer, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = outer.NetConn()
	}
	if guarded, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, guarded)
	}
	return ctx
}

// Prove marks the connection of ctx as authenticated, so that it no longer counts
// against the limits.
func Prove(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*Conn)
	if !ok {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	c.proven = true
	c.guard.uncount(c)
}

// Detach returns a context that never ends and in which Prove finds the
// connection of ctx.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.Background(), connKey{}, ctx.Value(connKey{}))
}

// enter counts a new connection and closes those that are over a limit.
func (g *Guard) enter(inner net.Conn) *Conn {
	c := &Conn{Conn: inner, guard: g}
	if host, _, err := net.SplitHostPort(inner.RemoteAddr().String()); err == nil && !g.trusted(host) {
		c.network = identity.Network(host)
	}
	g.mu.Lock()
	g.open++
	g.count(c)
	excess, reason := g.excess(c)
	g.mu.Unlock()
	g.drop(excess, reason)
	return c
}

func (g *Guard) trusted(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range g.config.TrustedProxies {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// Handler records when a connection is used, and for which client. It wraps all
// handlers of a guarded listener.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*Conn); ok {
			g.used(c, identity.Network(identity.ClientAddr(r, g.config.TrustedProxies)))
		}
		next.ServeHTTP(w, r)
	})
}

// used moves a connection to the end of the queue for closing. A proxy's
// connection then counts against the network of its current client.
func (g *Guard) used(c *Conn, network string) {
	g.mu.Lock()
	if c.gone {
		g.mu.Unlock()
		return
	}
	if c.network != network && c.proven {
		c.proven = false // the proxy now uses it for another client
	}
	g.uncount(c)
	c.network = network
	if !c.proven {
		g.count(c)
	}
	excess, reason := g.excess(c)
	g.mu.Unlock()
	g.drop(excess, reason)
}

// count adds a connection as the most recently used one.
func (g *Guard) count(c *Conn) {
	c.inAll = g.unproven.PushBack(c)
	if c.network == "" {
		return
	}
	own := g.networks[c.network]
	if own == nil {
		own = list.New()
		g.networks[c.network] = own
	}
	c.inOwn = own.PushBack(c)
}

func (g *Guard) uncount(c *Conn) {
	if c.inAll != nil {
		g.unproven.Remove(c.inAll)
		c.inAll = nil
	}
	if c.inOwn != nil {
		own := g.networks[c.network]
		own.Remove(c.inOwn)
		c.inOwn = nil
		if own.Len() == 0 {
			delete(g.networks, c.network)
		}
	}
}

// excess returns the connection that must be closed so that c fits within the limits, or nil. It returns c
// itself if there is no other.
func (g *Guard) excess(c *Conn) (*Conn, string) {
	switch own := g.networks[c.network]; {
	case own != nil && own.Len() > g.config.UnprovenOfOne:
		return own.Front().Value.(*Conn), overNetwork
	case g.unproven.Len() > g.config.Unproven:
		return g.unproven.Front().Value.(*Conn), overTotal
	case g.open > g.config.Open && g.unproven.Len() > 0:
		return g.unproven.Front().Value.(*Conn), overFiles
	}
	return nil, ""
}

// drop closes a connection to enforce a limit. It never waits for the peer,
// because it closes the connection below TLS.
func (g *Guard) drop(c *Conn, reason string) {
	if c == nil {
		return
	}
	_ = c.Close() // an error means that it was already closed
	g.closed.WithLabelValues(reason).Inc()
	g.mu.Lock()
	g.dropped = time.Now()
	tell := g.dropped.Sub(g.told) >= tellEvery
	if tell {
		g.told = g.dropped
	}
	g.mu.Unlock()
	if tell {
		g.config.Log.Warn("too many unauthenticated connections, closing the one that has been idle longest", "limit", reason, "addr", c.RemoteAddr())
	}
}
