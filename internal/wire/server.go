package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/control/controlbase"
	"tailscale.com/derp/derpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/h2"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/passkey"
	"github.com/fairlead-mesh/fairlead/internal/stream"
)

// Streams sends maps to nodes.
type Streams interface {
	// Serve sends the map and every change to it until ctx ends or the node is no longer entitled to it.
	Serve(ctx context.Context, w http.ResponseWriter, r stream.Request) error
	// Once sends the map.
	Once(ctx context.Context, w http.ResponseWriter, r stream.Request) error
}

// Config configures a Server. Every field up to Secrets is required.
type Config struct {
	Joins        *control.Joins
	Logins       *control.Logins
	Sessions     *control.Sessions
	Rechecks     *control.Rechecks
	Clients      *control.Clients
	Observations *control.Observations
	SSH          *control.SSH
	Passkeys     *control.Passkeys
	Ledger       *ledger.Ledger
	Streams      Streams
	Log          *slog.Logger
	Registerer   prometheus.Registerer
	// Noise are the server's private keys. Clients know the public key of one of them, so they must be the same on
	// every replica. A client that meets a server without its key does not recover until it is restarted.
	Noise *identity.NoiseKeys
	// Secrets are the server's secrets, by which it recognizes its own links and cookies.
	Secrets *identity.ServerSecrets
	// Providers are the identity providers with which people can sign in.
	Providers []*oidc.Provider
	// ConsoleURLs are the URLs of the consoles to which people may sign in.
	ConsoleURLs []string
	// PasskeyVerifier lets people sign in with passkeys, unless it is nil.
	PasskeyVerifier *passkey.Verifier
	// ServerURL is shown to people who set up a client. Providers send browsers back to it.
	ServerURL string
	// TrustedProxies may set X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// Leave reports whether clients should move to another replica. By default it always returns false.
	Leave func() bool
	// Move returns how many clients to disconnect now, of those that connected before the given time, so that they
	// connect to other replicas. It is called every 100 ms. By default it always returns zero.
	Move func() (clients int, before time.Time)
	// Closed reports whether this replica must not serve its state: clients are
	// refused until it returns false again. By default it always returns false.
	Closed func() bool
	// Elsewhere reports whether new clients should rather connect to another replica. Then those are refused that a
	// load balancer connects to another replica at once. By default it always returns false.
	Elsewhere func() bool
	// Answered is called with the token of each ping that a node responds to; see PingURL.
	Answered func(token string, machine key.MachinePublic)
	// A connection that was silent for ReadIdleTimeout (default 10s) is pinged, and closed unless it responds
	// within PingTimeout (default 5s). With more than five hundred connections, a connection may be silent
	// for twice as long, and with more than fifteen hundred for three times as long.
	ReadIdleTimeout, PingTimeout time.Duration
	// WriteByteTimeout is how long a client may take to accept 16 kB of the data sent to it; it defaults to
	// 10s.
	WriteByteTimeout time.Duration
	// RequestTimeout limits how long it takes to read a request and to write its response; it defaults to 15s.
	// It does not apply to streams or to logins that wait.
	RequestTimeout time.Duration
	// HandshakeTimeout limits how long the server waits for a client between its
	// upgrade request and the first byte inside Noise; it defaults to 5s.
	HandshakeTimeout time.Duration
}

const (
	readIdleTimeout  = 10 * time.Second
	pingTimeout      = 5 * time.Second
	writeByteTimeout = 10 * time.Second
	requestTimeout   = 15 * time.Second
	handshakeTimeout = 5 * time.Second
	// idleTimeout is how long a connection without requests is kept open.
	idleTimeout = 3 * time.Minute
	// maxRequests is how many concurrent requests a client may have: its map, its reports and its login.
	maxRequests = 32
	// maxMachineConns is how many connections one machine may have. A client has one, and another while it
	// reconnects.
	maxMachineConns = 16
	// headerBytes is a hundred times the size of what clients send.
	headerBytes = 32 << 10
	// prefaceTimeout is how long a client may take to send its first frame. When thousands of clients reconnect at once, those that
	// share a machine or a link are slow too, and closing their connections would only make them start again.
	prefaceTimeout = 30 * time.Second
	// uploadBytes is how much of a body a client may send before it is read.
	uploadBytes = 64 << 10
)

// Server serves clients.
type Server struct {
	config   Config
	logins   *identity.LoginSealer
	refusals *identity.RefusalLog
	pages    *pages
	signIn   *signIn
	passkeys *passkeys
	latency  *latency
	early    []byte
	http2    *h2.Server
	records  sync.Pool // buffers of noiseConn
	turns    *handshakeLimiter
	// bodies counts the request bodies that unknown machines are sending.
	bodies bodies

	mu   sync.Mutex
	open map[*controlbase.Conn]opened // guarded by mu
	// proven lists the connections on which known machines have made a request, by machine and oldest first.
	// It is guarded by mu.
	proven map[key.MachinePublic][]*controlbase.Conn
	closed bool           // guarded by mu
	served sync.WaitGroup // the goroutines of the connections in open; grows under mu, and only while not closed
}

// opened is how a connection was opened: when, and with which of the server's keys.
type opened struct {
	at    time.Time
	noise int
}

// New returns a server. Its handlers are in Routes.
func New(c Config) *Server {
	orDefault := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	if c.Closed == nil {
		c.Closed = func() bool { return false }
	}
	if c.Elsewhere == nil {
		c.Elsewhere = func() bool { return false }
	}
	if c.Leave == nil {
		c.Leave = func() bool { return false }
	}
	if c.Move == nil {
		c.Move = func() (int, time.Time) { return 0, time.Time{} }
	}
	orDefault(&c.ReadIdleTimeout, readIdleTimeout)
	orDefault(&c.PingTimeout, pingTimeout)
	orDefault(&c.WriteByteTimeout, writeByteTimeout)
	orDefault(&c.RequestTimeout, requestTimeout)
	orDefault(&c.HandshakeTimeout, handshakeTimeout)
	s := &Server{
		config: c, logins: identity.NewLoginSealer(c.Secrets), refusals: identity.NewRefusalLog(c.Log), pages: newPages(c.ServerURL),
		latency: newLatency(c.Registerer), early: earlyPayload(), open: map[*controlbase.Conn]opened{},
		turns: newHandshakeLimiter(), proven: map[key.MachinePublic][]*controlbase.Conn{}, records: sync.Pool{New: newRecords},
	}
	s.signIn = newSignIn(s)
	s.passkeys = newPasskeys(s)
	s.http2 = h2.New(h2.Config{
		Handler: s.machineHandler(), Log: c.Log, MaxRequests: maxRequests, HeaderBytes: headerBytes, UploadBytes: uploadBytes,
		PrefaceTimeout: prefaceTimeout, RequestTimeout: c.RequestTimeout, WriteTimeout: c.WriteByteTimeout, IdleTimeout: idleTimeout,
		Silence: s.silence, PingTimeout: c.PingTimeout,
	})
	c.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_wire_connections", Help: "Open client connections.",
	}, func() float64 { return float64(s.connections()) }))
	return s
}

// earlyPayload returns what a client is sent before its first request: a challenge that the server never
// requires a response to.
func earlyPayload() []byte {
	text, err := json.Marshal(tailcfg.EarlyNoise{NodeKeyChallenge: key.NewChallenge().Public()})
	if err != nil {
		panic(err) // a key can always be encoded
	}
	// The client library exports this marker too, but importing it would pull in a whole client.
	const mark = "\xff\xff\xffTS"
	payload := binary.BigEndian.AppendUint32([]byte(mark), uint32(len(text)))
	return append(payload, text...)
}

// Routes returns the handlers for requests outside Noise, by pattern.
func (s *Server) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"GET /{$}":           s.pages.help("home"),
		"GET /bootstrap-dns": http.HandlerFunc(bootstrapDNS),
		"GET /generate_204":  http.HandlerFunc(derpserver.ServeNoContent),
		"GET /key":           http.HandlerFunc(s.key),
		"POST /ts2021":       http.HandlerFunc(s.upgrade),
		"GET /ts2021":        http.HandlerFunc(s.upgrade), // for clients in a browser
		"POST /verify":       http.HandlerFunc(s.verify),
		"GET /auth/{token}":  http.HandlerFunc(s.loginPage),
		// Tools and documentation of other servers use this path for the page.
		"GET /register/{token}": http.HandlerFunc(s.loginPage),
	}
	if len(s.config.Providers) > 0 || s.passkeys.verifier != nil {
		maps.Copy(routes, s.signIn.routes())
	}
	if s.passkeys.verifier != nil {
		maps.Copy(routes, s.passkeys.routes())
	}
	for _, name := range helpPages() {
		routes["GET /"+name] = s.pages.help(name)
	}
	return routes
}

// Close closes all connections and waits for the goroutines that serve them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeSome(math.MaxInt, time.Now())
	s.served.Wait()
}

// begin starts serving a connection, unless the server is closed or its key was retired meanwhile.
func (s *Server) begin(ctx context.Context, c *controlbase.Conn, below *lazyConn, p peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.accepts(p.noise) {
		return false
	}
	s.open[c] = opened{time.Now(), p.noise}
	s.served.Go(func() { s.serve(ctx, c, below, p) })
	return true
}

func (s *Server) end(c *controlbase.Conn) {
	_ = c.Close() // usually closed already
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	machine := c.Peer()
	left := slices.DeleteFunc(s.proven[machine], func(other *controlbase.Conn) bool { return other == c })
	if s.proven[machine] = left; len(left) == 0 {
		delete(s.proven, machine)
	}
}

// prove counts a connection for its machine, once, and closes the machine's
// oldest if it has too many. Connections that have authenticated have no other
// limit, so one device could keep all others from connecting.
//
// A handshake alone does not count: it can be a copy of another machine's, and
// would cost that machine its connections.
func (s *Server) prove(p peer) {
	if p.proven.Swap(true) {
		return
	}
	s.mu.Lock()
	own := append(s.proven[p.machine], p.conn)
	var oldest *controlbase.Conn
	if len(own) > maxMachineConns {
		oldest, own = own[0], own[1:]
	}
	s.proven[p.machine] = own
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // fails only if it is closed already
	}
}

// silence returns how long a connection may be silent before it is pinged. Pings are most of the work for ten thousand idle
// connections.
func (s *Server) silence(connections int) time.Duration {
	switch {
	case connections <= 500:
		return s.config.ReadIdleTimeout
	case connections <= 1500:
		return 2 * s.config.ReadIdleTimeout
	}
	return 3 * s.config.ReadIdleTimeout
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
