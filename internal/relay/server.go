package relay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/derp"
	"tailscale.com/derp/derpserver"
	"tailscale.com/net/wsconn"
	"tailscale.com/tstime/rate"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// ServerConfig is the configuration of a Server. Key, Log and Registerer are required.
type ServerConfig struct {
	// Key is the relay's identity towards clients.
	Key key.NodePrivate
	// Verify reports whether a key belongs to a node of this mesh; nil accepts every key. It is called when a
	// client connects, before the client has proved that it holds the key, and has a few seconds to return.
	Verify func(context.Context, key.NodePublic) bool
	// Known reports the same about a client that is connected, and must not wait, because it is called for one client after
	// the other. If it is nil, Verify is called instead.
	Known func(key.NodePublic) bool
	// ServeAll also serves clients that Verify does not know. They count as strangers, whose number of
	// connections is limited.
	ServeAll bool
	// VerifyEvery is how often connected clients are checked again; it defaults to a minute.
	VerifyEvery time.Duration
	// TrustedProxies may forward the address of a client, which is used in the log.
	TrustedProxies []netip.Prefix
	// STUNListenAddr is the address for STUN; empty disables it.
	STUNListenAddr string
	// MeshKey is what all relays of a region have in common; empty if there are no others.
	MeshKey    string
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Server is a relay. Handler serves its clients; Listen and Run do the rest.
type Server struct {
	config ServerConfig
	derp   *derpserver.Server
	stun   *net.UDPConn // nil until Listen
	counts counts
	// recheck has a value if connected clients must be checked again.
	recheck chan struct{}

	refused    prometheus.Counter
	refusals   atomic.Int64 // the same number, for Stats
	refusalLog *rate.Limiter

	serving sync.WaitGroup
	mu      sync.Mutex
	open    map[*client]struct{} // guarded by mu; nil once the server is closed
	// proven lists the connections of known nodes that have proved their keys, by node and oldest first. It
	// is guarded by mu.
	proven map[key.NodePublic][]*client
}

// maxNodeConns is how many connections one node may have. A client has one,
// and another while it reconnects.
const maxNodeConns = 16

// client is one connection.
type client struct {
	conn   derp.Conn
	cancel context.CancelFunc
	key    key.NodePublic // guarded by Server.mu; zero until Verify has accepted it
}

func (c *client) close() {
	c.cancel()
	_ = c.conn.Close()
}

const (
	verifyEvery = time.Minute
	// verifyTimeout is below the ten seconds that the DERP server gives a client to identify itself.
	verifyTimeout = 5 * time.Second
	// refusalEvery limits what refused clients, which retry forever, can write to the log.
	refusalEvery = 30 * time.Second
	refusalBurst = 5
)

// NewServer returns a relay that does not listen yet.
func NewServer(c ServerConfig) (*Server, error) {
	s := &Server{
		config:     c,
		recheck:    make(chan struct{}, 1),
		refusalLog: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst),
		open:       map[*client]struct{}{},
		proven:     map[key.NodePublic][]*client{},
	}
	// The DERP server logs single connections: who connected and disconnected, and what a stranger sent.
	s.derp = derpserver.New(c.Key, func(format string, args ...any) {
		if ctx := context.Background(); c.Log.Enabled(ctx, slog.LevelDebug) {
			c.Log.DebugContext(ctx, "relay connection event", "event", fmt.Sprintf(format, args...))
		}
	})
	if c.MeshKey != "" {
		if err := s.derp.SetMeshKey(c.MeshKey); err != nil {
			return nil, fmt.Errorf("mesh key: %w", err)
		}
	}
	counts, err := countsOf(s.derp)
	if err != nil {
		return nil, err
	}
	s.counts = counts
	s.refused, err = register(c.Registerer, counts)
	return s, err
}

// Stats returns the work of the relay. Relays, for which isPeer returns true, do not count as clients.
func (s *Server) Stats(isPeer func(key.NodePublic) bool) Stats {
	clients := 0
	s.mu.Lock()
	for k, open := range s.proven {
		if !isPeer(k) {
			clients += len(open)
		}
	}
	s.mu.Unlock()
	return Stats{
		Clients: clients, BytesReceived: int64(s.counts.received()), BytesSent: int64(s.counts.sent()), Refused: s.refusals.Load(),
	}
}

// Routes returns the relay's HTTP handlers, by pattern: /derp, where clients connect by an upgrade to DERP or
// to a WebSocket, and /derp/probe and /derp/latency-check, with which clients without UDP measure the latency
// to the relay. They need HTTP/1.1 connections.
func (s *Server) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /derp":           s.serveDERP,
		"/derp/probe":         derpserver.ProbeHandler,
		"/derp/latency-check": derpserver.ProbeHandler,
	}
}

// NoContent responds to clients that look for captive portals.
func NoContent(w http.ResponseWriter, r *http.Request) { derpserver.ServeNoContent(w, r) }

// Handler returns a handler for Routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range s.Routes() {
		mux.HandleFunc(pattern, handler)
	}
	return mux
}

func (s *Server) serveDERP(w http.ResponseWriter, r *http.Request) {
	switch strings.ToLower(r.Header.Get("Upgrade")) {
	case "derp":
		s.upgrade(w, r)
	case "websocket":
		s.upgradeWebSocket(w, r)
	default:
		w.Header().Set("Upgrade", "DERP")
		w.Header().Set("Connection", "Upgrade")
		http.Error(w, "this is a relay for mesh clients: the request must upgrade the connection", http.StatusUpgradeRequired)
	}
}

func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the relay requires HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	// A client that knows the relay's key from its certificate already speaks DERP and expects no HTTP
	// response.
	if r.Header.Get(derp.FastStartHeader) != "1" {
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: DERP\r\nConnection: Upgrade\r\nDerp-Version: %d\r\nDerp-Public-Key: %s\r\n\r\n",
			derp.ProtocolVersion, s.derp.PublicKey().UntypedHexString()) //nolint:staticcheck // clients know the header only in this form
	}
	early, _ := buf.Peek(buf.Reader.Buffered())
	s.serve(r, conn, io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn), buf)
}

func (s *Server) upgradeWebSocket(w http.ResponseWriter, r *http.Request) {
	// A WebSocket without the right subprotocol would have to be closed again, and
	// the closing handshake lets the peer delay that.
	if !slices.Contains(strings.Fields(strings.ReplaceAll(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",", " ")), "derp") {
		http.Error(w, "the WebSocket subprotocol must be derp", http.StatusBadRequest)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:    []string{"derp"},
		OriginPatterns:  []string{"*"}, // a client in a browser is a page of another site
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has sent a response
	}
	ws.SetReadLimit(-1) // frames have their own limit, and messages are not frames
	conn := webSocket{wsconn.NetConn(r.Context(), ws, websocket.MessageBinary, r.RemoteAddr), ws}
	s.serve(r, conn, conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)))
}

// webSocket closes without the closing handshake, because a client could use it to delay a shutdown.
type webSocket struct {
	net.Conn
	ws *websocket.Conn
}

func (w webSocket) Close() error { return w.ws.CloseNow() }

// serve serves a client until the client or the server has closed conn. Data from the client is read from in,
// through the buffer.
func (s *Server) serve(r *http.Request, conn derp.Conn, in io.Reader, buf *bufio.ReadWriter) {
	ctx, cancel := context.WithCancel(r.Context())
	c := &client{conn: conn, cancel: cancel}
	defer c.close()
	if !s.enter(c) {
		return
	}
	defer s.leave(c)
	in = &admission{from: in, verify: func(k key.NodePublic) error {
		return s.admit(ctx, c, k, identity.ClientAddr(r, s.config.TrustedProxies))
	}}
	buf.Reader.Reset(in) // another buffer would cost 4 KiB per connection
	s.derp.Accept(ctx, &accepting{Conn: conn, accepted: func() { s.prove(ctx, c) }}, buf, r.RemoteAddr)
}

// enter adds a client, or returns false if the server is closed.
func (s *Server) enter(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	s.open[c] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *Server) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if own := slices.DeleteFunc(s.proven[c.key], func(other *client) bool { return other == c }); len(own) > 0 {
		s.proven[c.key] = own
	} else {
		delete(s.proven, c.key)
	}
	s.serving.Done()
}

// accepting detects that the DERP server has accepted the client. The DERP server has then verified that the
// client holds its key, and removes its deadline, which is the only way to detect it.
type accepting struct {
	derp.Conn
	accepted func()
}

// SetDeadline implements derp.Conn.
func (a *accepting) SetDeadline(at time.Time) error {
	if at.IsZero() {
		a.accepted()
	}
	return a.Conn.SetDeadline(at)
}

// prove counts the connection of a known node that has proved its key, and closes the node's oldest if it has
// too many.
func (s *Server) prove(ctx context.Context, c *client) {
	s.mu.Lock()
	if c.key.IsZero() { // a stranger, served because of ServeAll
		s.mu.Unlock()
		return
	}
	own := append(s.proven[c.key], c)
	var oldest *client
	if len(own) > maxNodeConns {
		oldest, own = own[0], own[1:]
	}
	s.proven[c.key] = own
	s.mu.Unlock()
	guard.Prove(ctx)
	if oldest != nil {
		oldest.close()
	}
}

// admit checks the key of a new client.
func (s *Server) admit(ctx context.Context, c *client, k key.NodePublic, addr string) error {
	known := s.verify(ctx, k)
	if !known && s.config.ServeAll {
		return nil
	}
	if !known {
		s.refused.Inc()
		s.refusals.Add(1)
		if s.refusalLog.Allow() {
			s.config.Log.Info("relay rejected a client that is not a node of this mesh", "key", k.ShortString(), "addr", addr)
		}
		return errRefused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.key = k
	return nil
}

var errRefused = errors.New("the key does not belong to a node of this mesh")

func (s *Server) verify(ctx context.Context, k key.NodePublic) bool {
	if s.config.Verify == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return s.config.Verify(ctx, k)
}

// Recheck makes Run close the connections of nodes that are no longer known. It is called after a change, so that these need
// not wait for VerifyEvery. It returns at once.
func (s *Server) Recheck() {
	select {
	case s.recheck <- struct{}{}:
	default: // Run has not begun the previous one yet
	}
}

// verifyAgain closes the connections of nodes that were deleted. With ServeAll, such a client reconnects as a
// stranger.
func (s *Server) verifyAgain(ctx context.Context) {
	var admitted []*client
	s.mu.Lock()
	for c := range s.open {
		if !c.key.IsZero() {
			admitted = append(admitted, c)
		}
	}
	s.mu.Unlock()
	for _, c := range admitted {
		if !s.known(ctx, c.key) {
			c.close()
		}
	}
}

func (s *Server) known(ctx context.Context, k key.NodePublic) bool {
	if s.config.Known != nil {
		return s.config.Known(k)
	}
	return s.verify(ctx, k)
}

// Listen opens the socket for STUN. Run must be called afterwards.
func (s *Server) Listen() error {
	if s.config.STUNListenAddr == "" {
		return nil
	}
	conn, err := listenSTUN(s.config.STUNListenAddr)
	s.stun = conn
	return err
}

// Run serves STUN, and closes the connections of deleted nodes, until ctx ends. Then it closes all
// connections, so that clients switch to another relay, and waits until no client is being served.
func (s *Server) Run(ctx context.Context) error {
	if s.stun != nil {
		s.serving.Go(func() { serveSTUN(ctx, s.stun, s.config.Log) })
	}
	again := time.NewTicker(cmp.Or(s.config.VerifyEvery, verifyEvery))
	defer again.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-again.C:
			s.verifyAgain(ctx)
		case <-s.recheck:
			s.verifyAgain(ctx)
		}
	}
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		c.close()
	}
	s.serving.Wait()
	return nil
}
