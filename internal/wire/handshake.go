package wire

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"tailscale.com/control/controlhttp/controlhttpcommon"
	"tailscale.com/net/netutil"
	"tailscale.com/net/wsconn"
)

const (
	// turnTimeout bounds how long a request waits for its turn. Clients give up
	// 10 s after they begin to connect, and need part of that time to finish the handshake.
	turnTimeout = 8 * time.Second
	// handshakesAtOnce is enough to keep all processors busy, because a handshake is pure
	// computation. One network gets at most half of the turns, which is still enough.
	handshakesAtOnce  = 16
	handshakesOfOne   = handshakesAtOnce / 2
	maxInitiationText = 512 // the text of an initiation has 136 bytes
)

var errBusy = errors.New("too many clients are connecting; try again")

// initiation returns the client's part of the handshake, if the request can be
// upgraded.
func initiation(r *http.Request) ([]byte, error) {
	if r.ProtoMajor != 1 {
		return nil, errors.New("this connection cannot be upgraded; use HTTP/1.1")
	}
	var text string
	switch next := strings.ToLower(r.Header.Get("Upgrade")); next {
	case controlhttpcommon.UpgradeHeaderValue:
		text = r.Header.Get(controlhttpcommon.HandshakeHeaderName)
	case "websocket":
		if !offersProtocol(r.Header) {
			return nil, fmt.Errorf("the WebSocket subprotocol must be %s", controlhttpcommon.UpgradeHeaderValue)
		}
		text = r.URL.Query().Get(controlhttpcommon.HandshakeHeaderName)
	case "":
		return nil, errors.New("the request has no Upgrade header; a proxy may have removed it")
	default:
		return nil, fmt.Errorf("cannot upgrade to %.40q", next)
	}
	if text == "" || len(text) > maxInitiationText {
		return nil, fmt.Errorf("%s is missing or too long", controlhttpcommon.HandshakeHeaderName)
	}
	init, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64", controlhttpcommon.HandshakeHeaderName)
	}
	return init, nil
}

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func offersProtocol(h http.Header) bool {
	for _, line := range h.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(line, ","), func(p string) bool {
			return strings.EqualFold(strings.TrimSpace(p), controlhttpcommon.UpgradeHeaderValue)
		}) {
			return true
		}
	}
	return false
}

// lazyConn is a connection that is hijacked only after the handshake has been
// computed. Until then it buffers what is written to it, and again while several
// records are written as one.
type lazyConn struct {
	net.Conn // nil until open
	kept     []byte
	keep     bool // whether to buffer although Conn is open
}

// Write implements net.Conn.
func (c *lazyConn) Write(b []byte) (int, error) {
	if c.Conn == nil || c.keep {
		c.kept = append(c.kept, b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// open hijacks the connection of a request and sends what was buffered, within the deadline.
// If it fails, a response has been sent or the connection is closed.
func (c *lazyConn) open(w http.ResponseWriter, r *http.Request, deadline time.Time) (err error) {
	taken := &hijacker{ResponseWriter: w, deadline: deadline}
	if err := http.NewResponseController(w).SetWriteDeadline(deadline); err != nil { // the response is sent before it is hijacked
		return err
	}
	if isWebSocket(r) {
		err = c.openWebSocket(taken, r)
	} else {
		err = c.openPlain(taken)
	}
	if err == nil {
		_, err = c.Conn.Write(c.kept)
		c.kept = nil
	}
	if taken.conn == nil {
		return err
	}
	if err == nil {
		err = taken.conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = taken.conn.Close() // the connection is unusable
	}
	return err
}

func (c *lazyConn) openPlain(w *hijacker) error {
	w.Header().Set("Upgrade", controlhttpcommon.UpgradeHeaderValue)
	w.Header().Set("Connection", "upgrade")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buf, err := w.Hijack()
	if err != nil {
		return fmt.Errorf("hijacking the connection: %w", err)
	}
	c.Conn = netutil.NewDrainBufConn(conn, buf.Reader)
	return buf.Flush()
}

func (c *lazyConn) openWebSocket(w *hijacker, r *http.Request) error {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:    []string{controlhttpcommon.UpgradeHeaderValue},
		OriginPatterns:  []string{"*"}, // a client in a browser is a page of another site
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return err // Accept has sent a response
	}
	c.Conn = webSocket{wsconn.NetConn(context.Background(), ws, websocket.MessageBinary, r.RemoteAddr), ws}
	return nil
}

// webSocket closes without the closing handshake, because a peer could make the server
// wait for it forever.
type webSocket struct {
	net.Conn
	ws *websocket.Conn
}

func (w webSocket) Close() error { return w.ws.CloseNow() }

// hijacker is a response whose connection can be hijacked, even through wrapped
// writers, with a deadline for all reads and writes.
type hijacker struct {
	http.ResponseWriter
	deadline time.Time
	conn     net.Conn // nil until it is hijacked
}

// Hijack implements http.Hijacker.
func (t *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.conn = conn
	// The outer server removes its own deadlines from a hijacked connection. If the
	// connection is already closed, the next step fails.
	_ = conn.SetDeadline(t.deadline)
	return conn, buf, nil
}

// handshakeLimiter limits how many handshakes are computed at once, in total and per network. When
// all clients reconnect at once, those that got a turn must be served before they give up. So the
// others wait.
type handshakeLimiter struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*networkTurns // guarded by mu; only networks that have a turn or wait for one
}

type networkTurns struct {
	taken chan struct{}
	users int // guarded by handshakeLimiter.mu
}

func newHandshakeLimiter() *handshakeLimiter {
	return &handshakeLimiter{all: make(chan struct{}, handshakesAtOnce), of: map[string]*networkTurns{}}
}

// take waits for a turn of the network. The caller must call done soon after.
func (t *handshakeLimiter) take(ctx context.Context, network string) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	own := t.enter(network)
	if !acquire(ctx, own.taken) {
		t.leave(network, own)
		return nil, errBusy
	}
	if !acquire(ctx, t.all) {
		<-own.taken
		t.leave(network, own)
		return nil, errBusy
	}
	return func() {
		<-t.all
		<-own.taken
		t.leave(network, own)
	}, nil
}

func acquire(ctx context.Context, c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *handshakeLimiter) enter(network string) *networkTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[network]
	if own == nil {
		own = &networkTurns{taken: make(chan struct{}, handshakesOfOne)}
		t.of[network] = own
	}
	own.users++
	return own
}

func (t *handshakeLimiter) leave(network string, own *networkTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.of, network)
	}
}
