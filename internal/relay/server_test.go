package relay_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/derp"
	"tailscale.com/net/wsconn"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

func TestPacketsAreCountedToTheByte(t *testing.T) {
	r := start(t, relay.ServerConfig{})
	ka, kb := key.NewNode(), key.NewNode()
	a, b := connected(t, r.url, ka), connected(t, r.url, kb)
	check := func(connections, received, sent int) {
		t.Helper()
		eventually(t, func() error {
			got := []float64{
				r.value(t, "mesh_derp_connections_active"),
				r.value(t, "mesh_network_bytes_received_total"),
				r.value(t, "mesh_network_bytes_sent_total"),
			}
			if diff := cmp.Diff([]float64{float64(connections), float64(received), float64(sent)}, got); diff != "" {
				return fmt.Errorf("connections, bytes received, bytes sent (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	check(2, 0, 0)
	total := 0
	for _, size := range []int{0, 1, 1280, 4096, derp.MaxPacketSize} {
		for _, way := range []struct {
			from, to interface {
				Send(key.NodePublic, []byte) error
				Recv() (derp.ReceivedMessage, error)
			}
			source, target key.NodePublic
		}{{a, b, ka.Public(), kb.Public()}, {b, a, kb.Public(), ka.Public()}} {
			sent := bytes.Repeat([]byte{byte(size)}, size)
			if err := way.from.Send(way.target, sent); err != nil {
				t.Fatal(err)
			}
			got := packet(t, way.to)
			if got.Source != way.source || !bytes.Equal(got.Data, sent) {
				t.Fatalf("a packet of %d bytes arrived as one of %d", size, len(got.Data))
			}
			total += size
		}
	}
	check(2, total, total)
	if err := a.Send(key.NewNode().Public(), make([]byte, 500)); err != nil {
		t.Fatal(err)
	}
	check(2, total+500, total) // sent, but not received: no such client
	_ = b.Close()
	check(1, total+500, total)
}

func TestOnlyKnownKeysAreServed(t *testing.T) {
	known, stranger := key.NewNode(), key.NewNode()
	var registered atomic.Pointer[key.NodePublic]
	r := start(t, relay.ServerConfig{Verify: func(ctx context.Context, k key.NodePublic) bool {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the answer may take for ever")
		}
		late := registered.Load()
		return k == known.Public() || late != nil && k == *late
	}})
	connected(t, r.url, known)
	if err := served(t, client(t, r.url, stranger)); err == nil {
		t.Error("a stranger is served")
	}
	if got := r.value(t, "mesh_relay_refusals_total"); got != 1 {
		t.Errorf("%v refusals counted, want 1", got)
	}
	k := stranger.Public()
	registered.Store(&k)
	connected(t, r.url, stranger) // accepted at once: the rejection is not cached
}

func TestDeletedNodeLosesItsConnection(t *testing.T) {
	stays, goes := key.NewNode(), key.NewNode()
	var deleted atomic.Bool
	r := start(t, relay.ServerConfig{VerifyEvery: 5 * time.Millisecond, Verify: func(_ context.Context, k key.NodePublic) bool {
		return k != goes.Public() || !deleted.Load()
	}})
	a, b := connected(t, r.url, stays), connected(t, r.url, goes)
	deleted.Store(true)
	if m, err := b.Recv(); err == nil {
		t.Errorf("a deleted node receives %T", m)
	}
	if err := a.Send(stays.Public(), []byte("still here")); err != nil {
		t.Fatal(err)
	}
	if got := packet(t, a); string(got.Data) != "still here" {
		t.Errorf("%q", got.Data)
	}
}

func TestConnectedClientsAreCheckedWithoutVerify(t *testing.T) {
	goes := key.NewNode()
	var deleted atomic.Bool
	var verified atomic.Int64
	r := start(t, relay.ServerConfig{
		VerifyEvery: 5 * time.Millisecond,
		Verify: func(context.Context, key.NodePublic) bool {
			verified.Add(1)
			return true
		},
		Known: func(k key.NodePublic) bool { return k != goes.Public() || !deleted.Load() },
	})
	c := connected(t, r.url, goes)
	deleted.Store(true)
	if m, err := c.Recv(); err == nil {
		t.Errorf("a deleted node receives %T", m)
	}
	if n := verified.Load(); n != 1 {
		t.Errorf("Verify, which may wait, was called %d times for one connection", n)
	}
}

func TestKnownKeyMustBeProved(t *testing.T) {
	known := key.NewNode()
	r := start(t, relay.ServerConfig{Verify: func(_ context.Context, k key.NodePublic) bool { return k == known.Public() }})
	for name, frame := range map[string][]byte{
		"box of another key":  clientInfo(known.Public(), key.NewNode().SealTo(r.key.Public(), []byte(`{"version":2}`))),
		"no box":              clientInfo(known.Public(), nil),
		"another first frame": append([]byte{byte(derp.FrameSendPacket), 0, 0, 0, 33}, append(known.Public().AppendTo(nil), 'x')...),
	} {
		conn, buf := upgrade(t, r, "")
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(buf) // may end with a reset if the relay has not read everything
		if got := rest; !bytes.Equal(got, serverKey(r)) {
			t.Errorf("%s: the relay sends %q", name, got)
		}
	}
	// A client that sends the correct frame for the same key is served.
	conn, buf := upgrade(t, r, "")
	if _, err := conn.Write(clientInfo(known.Public(), known.SealTo(r.key.Public(), []byte(`{"version":2}`)))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(buf, make([]byte, len(serverKey(r))+derp.FrameHeaderLen)); err != nil {
		t.Error(err)
	}
}

func TestClientMayBeginBeforeItsUpgradeIsAnswered(t *testing.T) {
	k := key.NewNode()
	r := start(t, relay.ServerConfig{Verify: func(_ context.Context, got key.NodePublic) bool { return got == k.Public() }})
	early := clientInfo(k.Public(), k.SealTo(r.key.Public(), []byte(`{"version":2}`)))
	_, buf := upgrade(t, r, "Derp-Fast-Start: 1\r\n", early...)
	first := make([]byte, len(serverKey(r)))
	if _, err := io.ReadFull(buf, first); err != nil || !bytes.Equal(first, serverKey(r)) {
		t.Fatalf("%q, %v", first, err)
	}
	if kind, err := buf.ReadByte(); err != nil || derp.FrameType(kind) != derp.FrameServerInfo {
		t.Fatalf("frame %d, %v", kind, err)
	}
}

func TestWebSocketClientsAreServed(t *testing.T) {
	known, stranger, other := key.NewNode(), key.NewNode(), key.NewNode()
	r := start(t, relay.ServerConfig{Verify: func(_ context.Context, k key.NodePublic) bool { return k != stranger.Public() }})
	native := connected(t, r.url, other)
	c := webSocketClient(t, r, known)
	if _, err := c.Recv(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 1400, derp.MaxPacketSize} {
		sent := bytes.Repeat([]byte{7}, size)
		if err := c.Send(other.Public(), sent); err != nil {
			t.Fatal(err)
		}
		if got := packet(t, native); !bytes.Equal(got.Data, sent) {
			t.Fatalf("%d bytes arrived of %d", len(got.Data), size)
		}
	}
	if m, err := webSocketClient(t, r, stranger).Recv(); err == nil {
		t.Errorf("a stranger receives %T", m)
	}
	for _, protocols := range [][]string{nil, {"chat"}} {
		_, res, err := websocket.Dial(t.Context(), r.url, &websocket.DialOptions{Subprotocols: protocols}) //nolint:bodyclose // not needed, says Dial
		if err == nil || res == nil || res.StatusCode != http.StatusBadRequest {
			t.Errorf("subprotocols %v: %v", protocols, err)
		}
	}
}

func TestRequestsThatAreNoClient(t *testing.T) {
	r := start(t, relay.ServerConfig{})
	for _, c := range []struct {
		method, path, upgrade string
		want                  int
	}{
		{"GET", "/derp/probe", "", 200},
		{"HEAD", "/derp/latency-check", "", 200},
		{"POST", "/derp/probe", "", 405},
		{"GET", "/derp", "", 426},
		{"GET", "/derp", "h2c", 426},
		{"POST", "/derp", "", 405},
		{"GET", "/derp/other", "", 404},
		{"GET", "/derp", "DERP", 505},      // the recorder cannot be hijacked, like an HTTP/2 stream
		{"GET", "/derp", "websocket", 400}, // no subprotocol
	} {
		req := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		req.Header.Set("Upgrade", c.upgrade)
		w := httptest.NewRecorder()
		r.web.Config.Handler.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%s %s %q: %d, want %d", c.method, c.path, c.upgrade, w.Code, c.want)
		}
	}
}

func TestRefusalsDoNotFillTheLog(t *testing.T) {
	r := start(t, relay.ServerConfig{Verify: func(context.Context, key.NodePublic) bool { return false }})
	const clients = 20
	for range clients {
		if err := served(t, client(t, r.url, key.NewNode())); err == nil {
			t.Fatal("a stranger is served")
		}
	}
	if got := r.value(t, "mesh_relay_refusals_total"); got != clients {
		t.Errorf("%v refusals counted, want %d", got, clients)
	}
	if n := strings.Count(r.log.String(), "\n"); n == 0 || n > 6 {
		t.Errorf("%d lines in the log:\n%s", n, r.log)
	}
}

func TestRefusalNamesTheAddressThatATrustedProxyForwards(t *testing.T) {
	refuse := func(context.Context, key.NodePublic) bool { return false }
	for proxy, want := range map[string]string{"127.0.0.0/8": "addr=203.0.113.7\n", "192.0.2.0/24": "addr=127.0.0.1\n"} {
		r := start(t, relay.ServerConfig{Verify: refuse, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(proxy)}})
		conn, _ := upgrade(t, r, "X-Forwarded-For: 203.0.113.7\r\n")
		k := key.NewNode()
		if _, err := conn.Write(clientInfo(k.Public(), k.SealTo(r.key.Public(), []byte(`{"version":2}`)))); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if log := r.log.String(); !strings.Contains(log, want) {
				return fmt.Errorf("trusting %s, the log does not say %q: %s", proxy, want, log)
			}
			return nil
		})
	}
}

func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	r := start(t, relay.ServerConfig{})
	ka, kb, kc := key.NewNode(), key.NewNode(), key.NewNode()
	a, b := connected(t, r.url, ka), connected(t, r.url, kb)
	conn, _ := upgrade(t, r, "")
	if _, err := conn.Write(clientInfo(kc.Public(), kc.SealTo(r.key.Public(), []byte(`{"version":2}`)))); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, derp.MaxPacketSize)
	eventually(t, func() error {
		if err := a.Send(kc.Public(), large); err != nil {
			t.Fatal(err)
		}
		if n := r.value(t, "mesh_derp_connections_active"); n != 2 || r.value(t, "mesh_network_bytes_sent_total") < 1<<20 {
			return fmt.Errorf("%v connections", n)
		}
		return nil
	})
	if err := a.Send(kb.Public(), []byte("still here")); err != nil {
		t.Fatal(err)
	}
	if got := packet(t, b); string(got.Data) != "still here" {
		t.Errorf("%q", got.Data)
	}
}

func TestMetricsAreZeroWithoutRelay(t *testing.T) {
	without := &running{metrics: prometheus.NewRegistry()}
	if err := relay.RegisterZero(without.metrics); err != nil {
		t.Fatal(err)
	}
	families, err := start(t, relay.ServerConfig{}).metrics.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(families, err)
	}
	for _, f := range families {
		if got := without.value(t, f.GetName()); got != 0 {
			t.Errorf("%s is %v", f.GetName(), got)
		}
	}
}

// clientInfo returns the frame with which a client identifies itself.
func clientInfo(k key.NodePublic, box []byte) []byte {
	n := derp.KeyLen + len(box)
	frame := []byte{byte(derp.FrameClientInfo), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(k.AppendTo(frame), box...)
}

// serverKey returns the frame with which the relay identifies itself.
func serverKey(r *running) []byte {
	frame := []byte{byte(derp.FrameServerKey), 0, 0, 0, byte(len(derp.Magic) + derp.KeyLen)}
	return r.key.Public().AppendTo(append(frame, derp.Magic...))
}

// upgrade sends a client's upgrade request, followed by the early bytes. It reads the
// response only if there are no early bytes.
func upgrade(t *testing.T, r *running, header string, early ...byte) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := "GET /derp HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: DERP\r\n" + header + "\r\n"
	if _, err := conn.Write(append([]byte(request), early...)); err != nil {
		t.Fatal(err)
	}
	buf := bufio.NewReader(conn)
	if len(early) > 0 {
		return conn, buf
	}
	resp, err := http.ReadResponse(buf, nil) //nolint:bodyclose // the body is the connection
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	if got, want := "nodekey:"+resp.Header.Get("Derp-Public-Key"), r.key.Public().String(); got != want {
		t.Errorf("the relay says that its key is %s, want %s", got, want)
	}
	return conn, buf
}

func openWebSocket(t *testing.T, r *running, protocol string) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), r.url, &websocket.DialOptions{Subprotocols: []string{protocol}}) //nolint:bodyclose // not needed, says Dial
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// webSocketClient returns a client that connects as one in a browser does.
func webSocketClient(t *testing.T, r *running, k key.NodePrivate) *derp.Client {
	t.Helper()
	conn := wsconn.NetConn(context.Background(), openWebSocket(t, r, "derp"), websocket.MessageBinary, r.url)
	c, err := derp.NewClient(k, conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), logger.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
