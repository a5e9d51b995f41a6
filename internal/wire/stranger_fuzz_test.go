package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlbase"
	"tailscale.com/net/netutil"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// fuzzPatience is far longer than the server's timeout for a silent peer.
const fuzzPatience = 20 * time.Second

// during returns the service for one input of a fuzz target, because the fuzz function
// must use its own t, not the target's f.
func (s *service) during(t *testing.T) *service {
	c := *s
	c.t = t
	return &c
}

// dialAsStranger connects from a random loopback address, so that neither local ports nor
// per-network limits run out.
func (s *service) dialAsStranger() *net.TCPConn {
	t := s.t
	t.Helper()
	from := net.IPv4(127, byte(1+rand.N(250)), byte(rand.N(256)), byte(1+rand.N(250)))
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(fuzzPatience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// mustEnd sends the rest of a stranger's input, closes the sending direction, and fails
// unless the server then closes the connection without a panic.
func (s *service) mustEnd(conn *net.TCPConn, w io.Writer, rest []byte) {
	s.t.Helper()
	_, _ = w.Write(rest) // the server may have closed the connection already
	_ = conn.CloseWrite()
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Fatal("the server keeps a connection whose peer is gone")
	}
	s.mustNotPanic()
}

func (s *service) mustNotPanic() {
	s.t.Helper()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if text := s.log.buf.String(); strings.Contains(text, "panicked") {
		s.t.Fatal(text)
	}
}

// encodedInitiation returns the first message of a new machine, encoded for the header.
func (s *service) encodedInitiation() (init string, finish controlbase.HandshakeContinuation) {
	message, finish := s.initiation(key.NewMachine())
	return base64.StdEncoding.EncodeToString(message), finish
}

// headerSafe drops characters that would end a header line: net/http parses those.
func headerSafe(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

func upgradeRequest(method, protocol, subprotocol, init string) string {
	return fmt.Sprintf("%s /ts2021 HTTP/1.1\r\nHost: control\r\nUpgrade: %s\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\nX-Tailscale-Handshake: %s\r\nContent-Length: 0\r\n\r\n",
		method, headerSafe(protocol), headerSafe(subprotocol), headerSafe(init))
}

// FuzzUpgrade: whatever a stranger requests at /ts2021 and sends afterwards, the
// connection ends once the stranger has finished sending.
func FuzzUpgrade(f *testing.F) {
	s, _ := open(f, options{})
	init, _ := s.encodedInitiation()
	f.Add(true, "tailscale-control-protocol", "", init, []byte("\x01\x00\x00"))
	f.Add(true, "tailscale-control-protocol", "", init[:40], []byte{})
	f.Add(false, "websocket", "tailscale-control-protocol", init, []byte("\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00"))
	f.Add(false, "websocket", "", "", []byte("\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00"))
	f.Add(false, "websocket", "derp", "", []byte("\x88\x80\x00\x00\x00\x00"))
	f.Add(false, "websocket", "tailscale-control-protocol", "", []byte("\x82\x81\x00\x00\x00\x00\x01\x89\x80\x00\x00\x00\x00"))
	f.Add(true, "", "", "", []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, post bool, protocol, subprotocol, init string, rest []byte) {
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		s := s.during(t)
		conn := s.dialAsStranger()
		s.mustEnd(conn, conn, append([]byte(upgradeRequest(method, protocol, subprotocol, init)), rest...))
	})
}

// FuzzNoise sends arbitrary bytes after a valid first message.
func FuzzNoise(f *testing.F) {
	s, _ := open(f, options{})
	f.Add([]byte{})
	f.Add([]byte("\x04\x00\x10aaaaaaaaaaaaaaaa"))
	f.Add([]byte("\x04\xff\xff" + strings.Repeat("a", 4096)))
	f.Add([]byte("\x03\x00\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, rest []byte) {
		s := s.during(t)
		init, _ := s.encodedInitiation()
		conn := s.dialAsStranger()
		s.mustEnd(conn, conn, append([]byte(upgradeRequest(http.MethodPost, "tailscale-control-protocol", "", init)), rest...))
	})
}

// FuzzHTTP2InsideNoise sends arbitrary bytes from an unknown machine after its handshake.
func FuzzHTTP2InsideNoise(f *testing.F) {
	s, _ := open(f, options{})
	frames := func(write func(*http2.Framer) error) []byte {
		var b bytes.Buffer
		fr := http2.NewFramer(&b, nil)
		if err := errors.Join(fr.WriteSettings(), write(fr)); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(true, frames(func(fr *http2.Framer) error { return fr.WritePing(false, [8]byte{1}) }))
	f.Add(true, frames(func(fr *http2.Framer) error { return fr.WriteRSTStream(1, http2.ErrCodeCancel) }))
	f.Add(true, frames(func(fr *http2.Framer) error {
		// :method POST, :scheme https, :path "/machine/map"
		head := append([]byte{0x83, 0x87, 0x04, 0x0c}, "/machine/map"...)
		return errors.Join(fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head, EndHeaders: true}),
			fr.WriteData(1, false, []byte(`{"Version":142`)), fr.WriteWindowUpdate(0, 1<<30), fr.WriteData(1, true, []byte(`}`)))
	}))
	f.Add(true, frames(func(fr *http2.Framer) error {
		return fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x83, 0x87, 0x84}})
	}))
	f.Add(false, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Fuzz(func(t *testing.T, preface bool, rest []byte) {
		s := s.during(t)
		init, finish := s.encodedInitiation()
		conn := s.dialAsStranger()
		if _, err := io.WriteString(conn, upgradeRequest(http.MethodPost, "tailscale-control-protocol", "", init)); err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(conn)
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		noise, err := finish(t.Context(), netutil.NewDrainBufConn(conn, br))
		if err != nil {
			t.Fatal(err)
		}
		if preface {
			rest = append([]byte(http2.ClientPreface), rest...)
		}
		_, _ = noise.Write(rest) // the server may have closed the connection already
		_ = conn.CloseWrite()
		if saysGoodbye(noise) {
			s.mustNotPanic()
			return
		}
		s.mustEnd(conn, noise, nil)
	})
}

// saysGoodbye reads until the server sends GOAWAY, and reports whether it did. HTTP/2
// keeps the connection open for another second so that the peer can read the frame, which
// is too long to wait for in thousands of runs.
func saysGoodbye(conn io.Reader) bool {
	r := bufio.NewReader(conn)
	if early, err := r.Peek(9); err == nil && string(early[:5]) == "\xff\xff\xffTS" {
		if _, err := r.Discard(9 + int(binary.BigEndian.Uint32(early[5:]))); err != nil {
			return false
		}
	}
	frames := http2.NewFramer(nil, r)
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			return false
		}
		if _, ok := frame.(*http2.GoAwayFrame); ok {
			return true
		}
	}
}

// FuzzMachineCalls: no request inside Noise causes a server error, whether it comes from
// an unknown machine or from a node.
func FuzzMachineCalls(f *testing.F) {
	s, _ := open(f, options{})
	s.user("alice")
	member, stranger := s.client(), s.client()
	member.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	node := member.node.Public().String()
	f.Add(true, true, "/machine/register", `{"Version":142,"NodeKey":"`+node+`","Hostinfo":{"Hostname":"h"}}`)
	f.Add(true, false, "/machine/register", `{"Version":142,"NodeKey":"`+node+`","Auth":{"AuthKey":"flp_AAAAAAAAAAAA_a"}}`)
	f.Add(true, true, "/machine/map", `{"Version":142,"NodeKey":"`+node+`","Stream":false,"Endpoints":["1.2.3.4:5"],"OmitPeers":true}`)
	f.Add(true, true, "/machine/map", `{"Version":142,"NodeKey":"`+node+`","Stream":true,"Compress":"zstd","KeepAlive":true}`)
	f.Add(true, true, "/machine/update-health", `{"NodeKey":"`+node+`","Subsys":"x","Error":"y"}`)
	f.Add(true, true, "/machine/set-dns", `{"NodeKey":"`+node+`","Name":"a","Type":"TXT"}`)
	f.Add(true, false, "/machine/audit-log", `{}`)
	f.Add(true, false, "/machine/feature/query", `{"Feature":"funnel"}`)
	f.Add(false, true, "/machine/ping/token", "")
	f.Add(false, true, "/machine/ssh/action/from/1/to/2", "")
	f.Fuzz(func(t *testing.T, post, known bool, path, body string) {
		method, c := http.MethodGet, stranger
		if post {
			method = http.MethodPost
		}
		if known {
			c = member
		}
		target := &url.URL{Scheme: "https", Host: "control", Path: "/" + strings.TrimPrefix(path, "/")}
		ctx, cancel := context.WithTimeout(t.Context(), fuzzPatience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(body))
		if err != nil {
			t.Skip() // the client cannot send it
		}
		res, err := c.http.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %q with %q: %v", method, path, body, err)
		}
		res.Body.Close() // a map stream would not end by itself
		if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
			t.Errorf("%s %q with %q: %s", method, path, body, res.Status)
		}
		s.during(t).mustNotPanic()
	})
}

// FuzzLoginPage: no link and no device description breaks a login page or injects markup
// into it.
func FuzzLoginPage(f *testing.F) {
	s, _ := open(f, options{})
	mux := http.NewServeMux()
	for pattern, h := range s.wire.Routes() {
		mux.Handle(pattern, h)
	}
	sealer := identity.NewLoginSealer(s.secrets)
	machine, node := key.NewMachine().Public(), key.NewNode().Public()
	f.Add("laptop", "linux", int64(0), "", false)
	f.Add("<script>alert(1)</script>", "\"'><img src=x>", int64(-3600), "", true)
	f.Add("\x00\u202e\xff", "{{.}}", int64(1<<40), "", false)
	f.Add("a", "b", int64(0), "../../etc/passwd", true)
	f.Add("a", "b", int64(0), strings.Repeat("A", 5000), false)
	login := func(host, system string, age int64) string {
		return sealer.SealLogin(identity.Login{MachineKey: machine, NodeKey: node, Hostname: host, OS: system, IssuedAt: mesh.TimeOf(time.Now()) - mesh.Time(age)})
	}
	page := func(ctx context.Context, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.URL.Path = path
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	f.Fuzz(func(t *testing.T, host, system string, age int64, token string, old bool) {
		if token == "" {
			token = login(host, system, age)
		}
		path := "/auth/" + token
		if old {
			path = "/register/" + token
		}
		w := page(t.Context(), path)
		switch w.Code {
		case http.StatusOK:
			for _, text := range []string{host, system} {
				if strings.ContainsAny(text, "<>\"") && strings.Contains(w.Body.String(), "<dd>"+text+"</dd>") {
					t.Errorf("the page has %q as it came:\n%s", text, w.Body)
				}
			}
		case http.StatusNotFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			t.Errorf("%q: %d %s", path, w.Code, w.Body)
		}
	})
}
