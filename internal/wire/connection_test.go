package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tailscale.com/control/controlbase"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/util/zstdframe"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// initiation returns the first message of a handshake.
func (s *service) initiation(machine key.MachinePrivate) ([]byte, controlbase.HandshakeContinuation) {
	s.t.Helper()
	init, finish, err := controlbase.ClientDeferred(machine, s.noise.Public(), uint16(tailcfg.CurrentCapabilityVersion))
	if err != nil {
		s.t.Fatal(err)
	}
	return init, finish
}

func TestBrokenHandshakeIsRefusedAndHarmsNobody(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	good := s.client()
	good.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	init, _ := s.initiation(key.NewMachine())
	altered := bytes.Clone(init)
	altered[50] ^= 1
	junk := make([]byte, len(init))
	_, _ = rand.Read(junk)
	stranger, _, err := controlbase.ClientDeferred(key.NewMachine(), key.NewMachine().Public(), uint16(tailcfg.CurrentCapabilityVersion))
	if err != nil {
		t.Fatal(err)
	}
	broken := [][]byte{init[:len(init)-1], init[:3], append(bytes.Clone(init), 0), altered, junk, stranger, make([]byte, 5000)}
	for _, b := range broken {
		conn, _ := s.handshake(base64.StdEncoding.EncodeToString(b))
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 100 {
			t.Errorf("%d bytes: the connection goes on: %d bytes, %v", len(b), len(rest), err)
		}
	}
	for _, request := range []string{
		"POST /ts2021 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		"POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
		"POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: tailscale-control-protocol\r\nContent-Length: 0\r\n\r\n",
		"POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: tailscale-control-protocol\r\nX-Tailscale-Handshake: ?\r\nContent-Length: 0\r\n\r\n",
		"GET /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
	} {
		if _, status := s.upgrade(request); status < 400 || status >= 500 {
			t.Errorf("%q: %d", request, status)
		}
	}
	until(t, "all are logged", func() bool { return len(s.log.lines(t, "client connection rejected")) == len(broken)+5 })
	good.joins(nil)
}

func TestConnectionOfHTTP2CannotBeTakenOver(t *testing.T) {
	s, _ := open(t, options{})
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/ts2021", nil)
	req.ProtoMajor, req.Proto = 2, "HTTP/2.0"
	rec := httptest.NewRecorder()
	s.wire.Routes()["POST /ts2021"].ServeHTTP(rec, req)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "HTTP/1.1") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// Otherwise thousands of warnings would follow when thousands of clients connect at once and some give up.
func TestClientThatGaveUpIsNotLoggedAsRejected(t *testing.T) {
	s, _ := open(t, options{})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.(*net.TCPConn).SetLinger(0), client.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil { // waits for the reset
		t.Fatal("the client is still connected")
	}
	s.givesUp(t.Context(), closedConn{httptest.NewRecorder(), conn})
}

// givesUp connects a client of 192.0.2.1 that the server must log as one that gave up, and not as rejected.
func (s *service) givesUp(ctx context.Context, w http.ResponseWriter) {
	s.t.Helper()
	req := httptest.NewRequestWithContext(ctx, "POST", "/ts2021", nil)
	req.RemoteAddr = "192.0.2.1:1024"
	req.Header.Set("Upgrade", "tailscale-control-protocol")
	req.Header.Set("X-Tailscale-Handshake", s.initiationText())
	s.wire.Routes()["POST /ts2021"].ServeHTTP(w, req)
	if lines := s.log.lines(s.t, "client connection rejected"); len(lines) > 0 {
		s.t.Error(lines)
	}
	if len(s.log.lines(s.t, "client disconnected before the handshake was complete")) != 1 {
		s.t.Error("the connection is not logged at all")
	}
}

func TestClientThatGaveUpInTheQueueIsNotLoggedAsRejected(t *testing.T) {
	s, _ := open(t, options{})
	for range wire.HandshakesAtOnce / 2 {
		done, err := wire.TakeTurn(t.Context(), s.wire, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		defer done()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.givesUp(ctx, httptest.NewRecorder())
}

// closedConn is a response whose connection the client has closed.
type closedConn struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (c closedConn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return c.conn, bufio.NewReadWriter(bufio.NewReader(c.conn), bufio.NewWriter(c.conn)), nil
}
func (c closedConn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

func TestDrainedReplicaRefusesClientsThatTheBalancerCanSendElsewhere(t *testing.T) {
	var drained atomic.Bool
	s, _ := open(t, options{wire: func(c *wire.Config) { c.Elsewhere = drained.Load }})
	check := func(header string, want int) {
		t.Helper()
		conn, status := s.upgrade("POST /ts2021 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: tailscale-control-protocol\r\nX-Tailscale-Handshake: " +
			s.initiationText() + "\r\n" + header + "Content-Length: 0\r\n\r\n")
		defer conn.Close()
		if status != want {
			t.Errorf("with %q: status %d, want %d", header, status, want)
		}
	}
	check("Fairlead-Balancer: retries\r\n", http.StatusSwitchingProtocols)
	drained.Store(true)
	check("Fairlead-Balancer: retries\r\n", http.StatusServiceUnavailable)
	check("", http.StatusSwitchingProtocols) // it may have no other way
}

// Replaying another client's first message gives no access: the connection's keys
// are derived from secrets that were never sent.
func TestReplayedHandshakeGivesNoAccess(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	machine := key.NewMachine()
	init, finish := s.initiation(machine)
	first, _ := s.handshake(base64.StdEncoding.EncodeToString(init))
	if _, err := finish(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	replay, status := s.handshake(base64.StdEncoding.EncodeToString(init))
	if status != http.StatusSwitchingProtocols {
		t.Fatal(status)
	}
	frame := make([]byte, 3+64) // looks like an encrypted record
	frame[0] = 4
	binary.BigEndian.PutUint16(frame[1:], 64)
	_, _ = replay.Write(frame)
	if _, err := io.ReadAll(replay); err != nil {
		t.Errorf("the connection goes on: %v", err)
	}
	until(t, "the connection is forgotten", func() bool { n, _ := s.metric("mesh_wire_connections"); return n == 1 })
}

func TestKeyAnswersOldAndNewClients(t *testing.T) {
	s, _ := open(t, options{})
	status, header, text := s.outside("GET", "/key?v=142", "")
	want := fmt.Sprintf(`{"legacyPublicKey":"mkey:%s","publicKey":"%s"}`, strings.Repeat("0", 64), s.noise.Public())
	if status != 200 || text != want || header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", status, header, text)
	}
}

func TestSmallAnswersForCaptivePortalsAndNames(t *testing.T) {
	s, _ := open(t, options{})
	if status, _, text := s.outside("GET", "/generate_204", ""); status != 204 || text != "" {
		t.Errorf("%d %q", status, text)
	}
	if status, _, text := s.outside("GET", "/bootstrap-dns?q=a", ""); status != 200 || text != "{}" {
		t.Errorf("%d %q", status, text)
	}
}

func TestMalformedAndOversizedRequestsAreAnswered(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	c := s.client()
	for _, path := range []string{"/machine/register", "/machine/map"} {
		for body, want := range map[string]int{
			"":                          400,
			"{":                         400,
			"null":                      0,
			"[]":                        400,
			`"x"`:                       400,
			`{"NodeKey":"nodekey:zz"}`:  400,
			`{"NodeKey":7}`:             400,
			`{"Version":"x"}`:           400,
			`{"Endpoints":["x"]}`:       0,
			strings.Repeat("[", 16_000): 400,
			`{"Version":142,"x":"` + strings.Repeat("x", 2<<20) + `"}`: 413,
		} {
			status, answer, _ := c.post(path, body)
			if want != 0 && status != want || status >= 500 || len(answer) > 400 {
				t.Errorf("%s %.30q: %d %q", path, body, status, answer)
			}
		}
	}
	c.connect()
	c.joins(withKey(text))
}

func TestOtherRequestsOfClientsAreAnswered(t *testing.T) {
	s, _ := open(t, options{})
	c := s.client()
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/machine/set-dns":       {501, "this server does not issue certificates\n"},
		"/machine/update-health": {404, "unknown node key: the node was deleted, or has a new key; log in again\n"},
		"/machine/audit-log":     {200, ""},
		"/machine/feature/query": {200, `{"Complete":true}`},
		"/machine/id-token":      {404, "404 page not found\n"},
		"/":                      {404, "404 page not found\n"},
	} {
		if status, text, _ := c.post(path, "{}"); status != want.status || text != want.text {
			t.Errorf("%s: %d %q", path, status, text)
		}
	}
	var early tailcfg.EarlyNoise
	if err := json.Unmarshal(c.early, &early); err != nil || early.NodeKeyChallenge.IsZero() {
		t.Errorf("early payload %q: %v", c.early, err)
	}
}

// webSocket is the connection of a browser client.
type webSocket struct {
	net.Conn
	rest []byte // the unread part of a frame
}

func (w *webSocket) Write(b []byte) (int, error) {
	frame := []byte{0x82, 0x80 | 126, 0, 0, 0, 0, 0, 0} // final, binary; masked with zeros
	binary.BigEndian.PutUint16(frame[2:], uint16(len(b)))
	_, err := w.Conn.Write(append(frame, b...))
	return len(b), err
}

func (w *webSocket) Read(b []byte) (int, error) {
	for len(w.rest) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(w.Conn, head[:2]); err != nil {
			return 0, err
		}
		size := int(head[1])
		if size == 126 {
			if _, err := io.ReadFull(w.Conn, head[2:]); err != nil {
				return 0, err
			}
			size = int(binary.BigEndian.Uint16(head[2:]))
		}
		w.rest = make([]byte, size)
		if _, err := io.ReadFull(w.Conn, w.rest); err != nil {
			return 0, err
		}
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func TestClientInABrowserRegisters(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := &client{s: s, machine: key.NewMachine(), node: key.NewNode()}
	init, finish := s.initiation(c.machine)
	conn, status := s.upgrade("GET /ts2021?X-Tailscale-Handshake=" + url.QueryEscape(base64.StdEncoding.EncodeToString(init)) + " HTTP/1.1\r\nHost: control\r\n" +
		"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" +
		"Sec-WebSocket-Protocol: tailscale-control-protocol\r\nOrigin: https://elsewhere.example\r\n\r\n")
	if status != http.StatusSwitchingProtocols {
		t.Fatal(status)
	}
	noise, err := finish(t.Context(), &webSocket{Conn: conn})
	if err != nil {
		t.Fatal(err)
	}
	c.speak(noise)
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	s.only()
}

// next reads one message from a map stream.
func next(t testing.TB, r io.Reader) tailcfg.MapResponse {
	t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, binary.LittleEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, message); err != nil {
		t.Fatal(err)
	}
	text, err := zstdframe.AppendDecode(nil, message)
	if err != nil {
		t.Fatal(err)
	}
	var m tailcfg.MapResponse
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (c *client) mapRequest(changes object) string {
	text, err := json.Marshal(with(object{
		"Version": tailcfg.CurrentCapabilityVersion, "NodeKey": c.node.Public(), "Compress": "zstd", "KeepAlive": true, "Stream": true,
	}, changes))
	if err != nil {
		c.s.t.Fatal(err)
	}
	return string(text)
}

func TestMapFollowsRegistration(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	a, b := s.client(), s.client()
	a.joins(withKey(text))
	res, err := a.ask(t.Context(), "POST", "/machine/map", strings.NewReader(a.mapRequest(nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if first := next(t, res.Body); first.Node == nil || first.Node.Key != a.node.Public() || len(first.Peers) != 0 {
		t.Errorf("%+v", first)
	}
	b.joins(withKey(text))
	status, answer, _ := b.post("/machine/map", b.mapRequest(object{
		"Stream": false, "OmitPeers": true, "Endpoints": []string{"192.0.2.1:1"}, "DiscoKey": key.NewDisco().Public(), "Hostinfo": b.registration(nil)["Hostinfo"],
	}))
	if status != 200 || answer != "" {
		t.Fatalf("%d %q", status, answer)
	}
	until(t, "the peer is told with its endpoint", func() bool {
		m := next(t, res.Body)
		for _, p := range m.PeersChanged {
			if len(p.Endpoints) == 1 {
				return true
			}
		}
		for _, p := range m.PeersChangedPatch {
			if len(p.Endpoints) == 1 {
				return true
			}
		}
		return false
	})
	status, answer, _ = b.post("/machine/map", b.mapRequest(object{"Stream": false}))
	if status != 200 {
		t.Fatalf("%d %q", status, answer)
	}
	if once := next(t, strings.NewReader(answer)); len(once.Peers) != 1 || once.Peers[0].Key != a.node.Public() {
		t.Errorf("%+v", once)
	}
}

// A client that vanished without closing its connection is detected by a ping timeout.
func TestFrozenClientIsNoticed(t *testing.T) {
	s, _ := open(t, options{wire: func(c *wire.Config) { c.ReadIdleTimeout, c.PingTimeout = 50*time.Millisecond, 50*time.Millisecond }})
	init, finish := s.initiation(key.NewMachine())
	conn, _ := s.handshake(base64.StdEncoding.EncodeToString(init))
	noise, err := finish(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	// Send the preface and empty settings, and then nothing.
	if _, err := io.WriteString(noise, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	until(t, "the connection is dropped", func() bool { n, _ := s.metric("mesh_wire_connections"); return n == 0 })
	alive := s.client()
	<-time.After(300 * time.Millisecond) // several times the timeout
	if status, _, _ := alive.post("/machine/audit-log", "{}"); status != 200 {
		t.Error(status)
	}
}

func TestCloseEndsAllConnections(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	res, err := c.ask(t.Context(), "POST", "/machine/map", strings.NewReader(c.mapRequest(nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	next(t, res.Body)
	waiting := s.client()
	answer := waiting.waits(waiting.asks())
	s.wire.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
	<-answer
	if n, _ := s.metric("mesh_wire_connections"); n != 0 {
		t.Errorf("%v connections", n)
	}
	init, finish := s.initiation(key.NewMachine())
	conn, _ := s.handshake(base64.StdEncoding.EncodeToString(init))
	if noise, err := finish(t.Context(), conn); err == nil {
		if _, err := io.Copy(io.Discard, noise); err != nil {
			t.Errorf("a connection is served after the end: %v", err)
		}
	}
}

func TestReplicaThatMustNotServeRefusesClients(t *testing.T) {
	var closed atomic.Bool
	s, _ := open(t, options{wire: func(c *wire.Config) { c.Closed = closed.Load }})
	connected := s.client()
	page := strings.TrimPrefix(connected.asks(), s.url)
	closed.Store(true)
	if status, _, text := s.outside("GET", page, ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "Temporarily unavailable") ||
		strings.Contains(text, "laptop") || !strings.Contains(text, `http-equiv="refresh"`) {
		t.Errorf("a login page: %d %s", status, text)
	}
	if status, _, text := s.outside("POST", "/verify", "{}"); status != http.StatusServiceUnavailable {
		t.Errorf("verification for a relay: %d %s", status, text)
	}
	if _, status := s.handshake(s.initiationText()); status != http.StatusServiceUnavailable {
		t.Errorf("a new connection: %d", status)
	}
	for _, path := range []string{"/machine/map", "/machine/register"} {
		if status, body, _ := connected.post(path, "{}"); status != http.StatusServiceUnavailable {
			t.Errorf("%s on an open connection: %d %s", path, status, body)
		}
	}
	closed.Store(false)
	if status, _, _ := s.client().post("/machine/audit-log", "{}"); status != 200 {
		t.Errorf("it serves again: %d", status)
	}
}

func TestReplicaThatIsCutOffSendsEachClientAwayOnce(t *testing.T) {
	var cutOff atomic.Bool
	s, _ := open(t, options{wire: func(c *wire.Config) { c.Leave = cutOff.Load }})
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { _ = s.wire.Run(ctx) })
	defer loop.Wait()
	defer cancel()
	const many = 25 // more than are disconnected at once
	for range many {
		s.client()
	}
	connected := func() float64 { n, _ := s.metric("mesh_wire_connections"); return n }
	until(t, "all are there", func() bool { return connected() == many }) // a client that connects later counts as a returning one
	cutOff.Store(true)
	until(t, "all are sent away", func() bool { return connected() == 0 })
	back := s.client() // a returning client must be served: all replicas may be cut off
	<-time.After(300 * time.Millisecond)
	if status, _, _ := back.post("/machine/audit-log", "{}"); status != 200 {
		t.Errorf("a client that came back is sent away again: %d", status)
	}
	if n := len(s.log.lines(t, "replica cut off from the database, moving its clients to other replicas")); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}
