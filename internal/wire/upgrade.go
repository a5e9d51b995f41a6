package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"tailscale.com/control/controlbase"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// A load balancer that connects a client to another replica after a 503 says so in this header. Such a client can be refused
// without a delay while this replica is drained. A load balancer without health checks would otherwise choose exactly this
// replica, which has the fewest connections.
const balancerHeader, balancerRetries = "Fairlead-Balancer", "retries"

// key responds with the server's public key. The second key of the response belongs to an older protocol; a
// client that does not find it requests it again at every login.
func (s *Server) key(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, tailcfg.OverTLSPublicKeyResponse{PublicKey: s.config.Noise.Current().Private.Public()})
}

// upgrade turns a request into a Noise connection. The connection is served by
// another goroutine, because the request's goroutine holds buffers and a stack
// that would be expensive for ten thousand idle connections.
//
// The client sends its part of the handshake with the request, so the handshake is
// computed before the connection is hijacked. Invalid requests get a plain
// response, and nothing waits for the client while it has a turn.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	if s.mustRefuse(r.Context()) {
		refuseClosed(w)
		return
	}
	if r.Header.Get(balancerHeader) == balancerRetries && s.config.Elsewhere() {
		tryLater(w, http.StatusServiceUnavailable, "this replica is being drained or is shutting down; connect to another replica")
		return
	}
	p := peer{addr: identity.ClientAddr(r, s.config.TrustedProxies)}
	init, err := initiation(r)
	if err != nil {
		s.refuse(w, p, http.StatusBadRequest, err)
		return
	}
	late := &lazyConn{}
	conn, noise, err := s.handshake(r, late, init, p)
	switch {
	case errors.Is(err, errBusy) && r.Context().Err() != nil:
		s.gaveUp(p, err)
		return
	case errors.Is(err, errBusy):
		s.refused(p, err)
		tryLater(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		s.refuse(w, p, http.StatusBadRequest, fmt.Errorf("noise handshake failed: %w", err))
		return
	}
	switch err := late.open(w, r, time.Now().Add(s.config.HandshakeTimeout)); {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		s.gaveUp(p, err)
		return
	case err != nil:
		s.refused(p, err)
		return
	}
	p.machine, p.noise, p.conn, p.requests, p.proven = conn.Peer(), noise, conn, &atomic.Int32{}, &atomic.Bool{}
	if !s.begin(guard.Detach(r.Context()), conn, late, p) {
		_ = conn.Close() // nothing was sent on it
	}
}

// handshake computes the handshake when it is the network's turn, and returns the number of the server's key that the client
// uses. A client does not say which one that is, so all are tried. The response to the client is buffered in late.
func (s *Server) handshake(r *http.Request, late *lazyConn, init []byte, p peer) (conn *controlbase.Conn, noise int, err error) {
	done, err := s.turns.take(r.Context(), identity.Network(p.addr))
	if err != nil {
		return nil, 0, err
	}
	defer done()
	for _, k := range s.config.Noise.All() {
		late.kept = nil
		if conn, err = controlbase.Server(context.Background(), late, k.Private, init); err == nil {
			noise = k.Number
			break
		}
	}
	if err != nil || isWebSocket(r) { // a browser client expects no early payload
		return conn, noise, err
	}
	_, err = conn.Write(s.early)
	return conn, noise, err
}

// refuse sends an error to a client whose connection was not hijacked.
func (s *Server) refuse(w http.ResponseWriter, p peer, status int, err error) {
	s.refused(p, err)
	w.Header().Set("Connection", "close") // a refused client does not need the connection
	http.Error(w, err.Error(), status)
}

func (s *Server) refused(p peer, err error) {
	if s.refusals.Admit(p.addr) {
		s.config.Log.Warn("client connection rejected", "addr", p.addr, "error", err)
	}
}

// gaveUp logs a client that disconnected before it got a response. If thousands of clients connect at once, many do.
func (s *Server) gaveUp(p peer, err error) {
	s.config.Log.Debug("client disconnected before the handshake was complete", "addr", p.addr, "error", err)
}

// serve handles the requests on a connection until it ends.
func (s *Server) serve(ctx context.Context, conn *controlbase.Conn, below *lazyConn, p peer) {
	defer s.end(conn)
	defer func() {
		if fault := recover(); fault != nil {
			s.config.Log.Error("client connection panicked", "panic", fault, "machine", p.machine.ShortString(), "stack", string(debug.Stack()))
		}
	}()
	s.http2.Serve(context.WithValue(ctx, peerKey{}, p), noiseConn{conn, below, &s.records})
}

type peerKey struct{}

// peer is the client at the other end of a connection.
type peer struct {
	machine key.MachinePublic // authenticated by Noise
	noise   int               // the number of the server's key that the client uses
	addr    string
	// requests counts the concurrent requests of the connection while its machine
	// is unknown.
	requests *atomic.Int32
	conn     *controlbase.Conn
	proven   *atomic.Bool // whether conn is in Server.proven, or was
}

// peerOf returns the client that sent a request inside Noise.
func peerOf(r *http.Request) peer {
	p, _ := r.Context().Value(peerKey{}).(peer)
	return p
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "cannot encode the response", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client notices a truncated body
}
