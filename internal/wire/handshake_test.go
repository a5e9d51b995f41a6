package wire_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/wire"
)

const (
	webSocketUpgrade = " HTTP/1.1\r\nHost: control\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	rightProtocol    = "Sec-WebSocket-Protocol: tailscale-control-protocol\r\n"
	endless          = "\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00" // the header of a binary frame of 1 GiB
)

// initiationText returns the client's first handshake message, encoded as it is sent.
func (s *service) initiationText() string {
	s.t.Helper()
	init, _ := s.initiation(key.NewMachine())
	return base64.StdEncoding.EncodeToString(init)
}

// A stranger that the server waits for must not hold anything others need to connect.
// Each attack opens three times as many connections as there are handshake turns.
func TestStrangersWhoAreWaitedForDelayNoHandshake(t *testing.T) {
	const many = 48
	s, _ := open(t, options{})
	query := func() string { return "GET /ts2021?X-Tailscale-Handshake=" + url.QueryEscape(s.initiationText()) }
	for name, request := range map[string]func() string{
		"upgrade without subprotocol": func() string { return "GET /ts2021" + webSocketUpgrade + "\r\n" },
		"frame that does not end":     func() string { return "GET /ts2021" + webSocketUpgrade + "\r\n" + endless },
		"upgrade with wrong subprotocol": func() string {
			return "GET /ts2021" + webSocketUpgrade + "Sec-WebSocket-Protocol: derp\r\n\r\n" + endless
		},
		"upgrade without handshake":       func() string { return "GET /ts2021" + webSocketUpgrade + rightProtocol + "\r\n" + endless },
		"half a handshake":                func() string { return query()[:80] + webSocketUpgrade + rightProtocol + "\r\n" + endless },
		"handshake and nothing more":      func() string { return query() + webSocketUpgrade + rightProtocol + "\r\n" },
		"handshake and an endless frame":  func() string { return query() + webSocketUpgrade + rightProtocol + "\r\n" + endless },
		"text frame where binary belongs": func() string { return query() + webSocketUpgrade + rightProtocol + "\r\n\x81" + endless[1:] },
		"plain handshake and then silence": func() string {
			return "POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: tailscale-control-protocol\r\nX-Tailscale-Handshake: " + s.initiationText() + "\r\n\r\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range many {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, request()); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Log(err) // already responded to and closed
				}
			}
			begin := time.Now()
			c := &client{s: s, machine: key.NewMachine(), node: key.NewNode()}
			c.connect()
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("a client got in after %v", took)
			}
		})
	}
}

// pipes accepts in-memory connections without buffers: a write blocks until the other
// end reads.
type pipes struct{ new, ended chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.new:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.ended); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func TestStrangersWhoDoNotReadDelayNoHandshakeAndAreCutOff(t *testing.T) {
	for name, request := range map[string]func(*service) string{
		"plain": func(s *service) string {
			return "POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: tailscale-control-protocol\r\nX-Tailscale-Handshake: " + s.initiationText() + "\r\n\r\n"
		},
		"WebSocket": func(s *service) string {
			return "GET /ts2021?X-Tailscale-Handshake=" + url.QueryEscape(s.initiationText()) + webSocketUpgrade + rightProtocol + "\r\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t, options{wire: func(c *wire.Config) { c.HandshakeTimeout = 2 * time.Second }})
			mux := http.NewServeMux()
			for pattern, h := range s.wire.Routes() {
				mux.Handle(pattern, wrapped(h))
			}
			l := pipes{make(chan net.Conn), make(chan net.Conn)}
			server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(l) }()
			defer server.Close()
			var all []net.Conn
			for range 48 {
				theirs, ours := net.Pipe()
				defer theirs.Close()
				l.new <- ours
				if _, err := io.WriteString(theirs, request(s)); err != nil {
					t.Fatal(err)
				}
				all = append(all, theirs)
			}
			begin := time.Now()
			s.client()
			if took := time.Since(begin); took > time.Second {
				t.Errorf("a client got in after %v", took)
			}
			for _, c := range all { // a write fails once the server has closed its end
				_ = c.SetWriteDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.WriteString(c, strings.Repeat("x", 1<<16)); !errors.Is(err, io.ErrClosedPipe) {
					t.Fatalf("still open: %v", err)
				}
			}
			if n, _ := s.metric("mesh_wire_connections"); n != 1 {
				t.Errorf("%v connections are served", n)
			}
		})
	}
}

// A network that floods the server with handshakes delays only itself.
func TestOneNetworkHasNotAllTurns(t *testing.T) {
	s, _ := open(t, options{})
	took := make(chan func(), wire.HandshakesAtOnce)
	for range wire.HandshakesAtOnce {
		go func() {
			if done, err := wire.TakeTurn(t.Context(), s.wire, "192.0.2.1"); err == nil {
				took <- done
			}
		}()
	}
	until(t, "one network has what it may have", func() bool { return len(took) == wire.HandshakesAtOnce/2 })
	done, err := wire.TakeTurn(t.Context(), s.wire, "2001:db8::/64")
	if err != nil {
		t.Fatal(err)
	}
	done()
	for range wire.HandshakesAtOnce {
		(<-took)()
	}
	if n := wire.NetworksWithTurns(s.wire); n != 0 {
		t.Errorf("%d networks are remembered", n)
	}
}
