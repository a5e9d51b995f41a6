package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"runtime/debug"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlbase"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// key tells clients by which key they know the service. The second key of the
// answer is from an older protocol; a client that finds none asks again at every
// login.
func (s *Server) key(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, tailcfg.OverTLSPublicKeyResponse{PublicKey: s.config.Noise.Public()})
}

// upgrade takes over a connection. It is served elsewhere: the goroutine that
// answers a request holds buffers and a stack that ten thousand quiet
// connections would pay for.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	// When all clients come back at once, those that were let in must be heard
	// within two seconds, or HTTP/2 gives them up: the others wait.
	select {
	case s.handshakes <- struct{}{}:
		defer func() { <-s.handshakes }()
	case <-r.Context().Done():
		return
	}
	p := peer{addr: identity.ClientAddr(r, s.config.TrustedProxies)}
	if r.ProtoMajor != 1 {
		http.Error(w, "this connection cannot be taken over; ask by HTTP/1.1", http.StatusBadRequest)
		return
	}
	// The context outlives the request. The outer server lifts its deadlines
	// from a connection that is taken over.
	conn, err := controlhttpserver.AcceptHTTP(context.WithoutCancel(r.Context()), hijackable{w}, r, s.config.Noise, s.writeEarly)
	if err != nil {
		if s.refusals.Admit(p.addr) {
			s.config.Log.Warn("client connection refused", "addr", p.addr, "error", err)
		}
		return
	}
	p.machine = conn.Peer()
	if !s.begin(conn, p) {
		_ = conn.Close() // nothing was said on it
	}
}

// serve answers on a connection until it ends.
func (s *Server) serve(conn *controlbase.Conn, p peer) {
	defer s.end(conn)
	defer func() {
		if fault := recover(); fault != nil {
			s.config.Log.Error("a client's connection panicked", "panic", fault, "machine", p.machine.ShortString(), "stack", string(debug.Stack()))
		}
	}()
	s.speaker().ServeConn(conn, &http2.ServeConnOpts{Context: context.WithValue(context.Background(), peerKey{}, p), BaseConfig: s.inner})
}

func (s *Server) writeEarly(_ int, w io.Writer) error {
	_, err := w.Write(s.early)
	return err
}

// hijackable finds the connection below writers that wrap others.
type hijackable struct{ http.ResponseWriter }

// Hijack takes the connection over.
func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController reach the connection.
func (w hijackable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type peerKey struct{}

// peer is the client at the other end of a connection.
type peer struct {
	machine key.MachinePublic // proven
	addr    string
}

// peerOf returns who asks; every request inside of Noise has one.
func peerOf(r *http.Request) peer {
	p, _ := r.Context().Value(peerKey{}).(peer)
	return p
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client notices what is missing
}
