package wire_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"tailscale.com/control/controlbase"
	"tailscale.com/net/netutil"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/stream"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// admin is the actor of administrative changes in tests.
var admin = mesh.Actor{Kind: mesh.ActorServer}

// service is a server as clients see it: wire and everything below it, on SQLite,
// behind an HTTP server.
type service struct {
	*control.Service
	t      testing.TB
	ledger *ledger.Ledger
	wire   *wire.Server
	noise  key.MachinePrivate // what clients use
	keys   *identity.NoiseKeys
	// secrets are those of the server.
	secrets *identity.ServerSecrets
	reg     *prometheus.Registry
	log     *journal
	fault   *fault
	url     string
}

// fault simulates a database outage.
type fault struct {
	store.Store
	away atomic.Bool
}

func (f *fault) Lock(ctx context.Context, after mesh.Revision, batch store.BatchID, fn func(store.Tx) error) error {
	if f.away.Load() {
		return store.ErrUnavailable
	}
	return f.Store.Lock(ctx, after, batch, fn)
}

func (f *fault) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	if f.away.Load() {
		return nil, store.ErrUnavailable
	}
	return f.Store.Tail(ctx, after)
}

// journal collects log lines.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

// lines returns the log lines with this message.
func (j *journal) lines(t testing.TB, msg string) (found []map[string]any) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range bytes.Lines(j.buf.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if m["msg"] == msg {
			found = append(found, m)
		}
	}
	return found
}

type options struct {
	recheck  map[string]time.Duration
	path     string // path of the database; a new one by default
	noise    key.MachinePrivate
	wire     func(*wire.Config)
	approval bool // new nodes need approval
}

// nobody ignores the opening and closing of streams.
type nobody struct{}

func (nobody) Opened(mesh.NodeID, int64) {}
func (nobody) Closed(mesh.NodeID, int64) {}

// open runs a server. stop ends it, and is also called at the end of the test.
func open(t testing.TB, o options) (s *service, stop func()) {
	t.Helper()
	if o.path == "" {
		o.path = filepath.Join(t.TempDir(), "db")
	}
	if o.noise.IsZero() {
		o.noise = key.NewMachine()
	}
	text, err := o.noise.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	secrets := identity.NewServerSecrets(identity.ServerSecret{Number: 1, Value: text}) // replicas with the same key have the same secrets
	st, err := sqlstore.OpenSQLite(t.Context(), o.path, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s = &service{t: t, noise: o.noise, keys: identity.NewNoiseKeys(identity.NoiseKey{Number: 1, Private: o.noise}), secrets: secrets, reg: prometheus.NewRegistry(), log: &journal{}, fault: &fault{Store: st}}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.ledger, err = ledger.Open(t.Context(), ledger.Config{
		Store: s.fault, Log: log, Registerer: s.reg,
		Reserved: mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	s.url = "http://" + server.Listener.Addr().String()
	s.Service = control.New(control.Config{
		Ledger: s.ledger, History: st, Log: log, Registerer: s.reg, Logins: identity.NewLoginSealer(secrets), ServerURL: s.url, SessionCodes: identity.NewCookieSealer(secrets),
		RefreshTokens: identity.NewTokenSealer(secrets), Recheck: o.recheck,
		PrefixV4: netip.MustParsePrefix("100.64.0.0/10"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"), NodeExpiry: 24 * time.Hour, NodeApproval: o.approval,
	})
	hub := stream.New(stream.Config{Ledger: s.ledger, Presence: nobody{}, Log: log, Registerer: s.reg})
	c := wire.Config{
		Joins: s.Joins, Logins: s.Logins, Sessions: s.Sessions, Rechecks: s.Rechecks, ConsoleURLs: []string{consoleURL}, Clients: s.Clients, Observations: s.Observations, SSH: s.SSH, Passkeys: s.Passkeys, Ledger: s.ledger, Streams: hub, Log: log, Registerer: s.reg, Noise: s.keys, Secrets: secrets, ServerURL: s.url,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}
	if o.wire != nil {
		o.wire(&c)
	}
	s.wire = wire.New(c)
	mux := http.NewServeMux()
	for pattern, h := range s.wire.Routes() {
		mux.Handle(pattern, wrapped(h))
	}
	g := guard.New(guard.Config{Unproven: 1000, UnprovenOfOne: 1000, Open: 1000, TrustedProxies: c.TrustedProxies, Log: log, Registerer: s.reg})
	server.Config.Handler = g.Handler(mux)
	server.Config.ConnContext = guard.WithConn
	server.Listener = g.Listener(server.Listener)
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = s.ledger.Run(ctx) })
	loops.Go(func() { _ = hub.Run(ctx) })
	stop = sync.OnceFunc(func() {
		s.wire.Close()
		server.Close()
		cancel()
		loops.Wait()
		st.Close()
	})
	t.Cleanup(stop)
	return s, stop
}

// wrapped hides the connection behind a wrapper, as middleware does.
func wrapped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(wrapper{w}, r) })
}

type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *service) user(name string) *mesh.User {
	s.t.Helper()
	u, err := s.Users.Create(s.t.Context(), admin, control.NewUser{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s *service) key(k control.NewPreAuthKey) string {
	s.t.Helper()
	_, text, err := s.PreAuthKeys.Create(s.t.Context(), admin, k)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// commit writes events that no use case in the test would produce.
func (s *service) commit(evs ...mesh.Event) {
	s.t.Helper()
	if _, err := s.ledger.Commit(s.t.Context(), admin, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		s.t.Fatal(err)
	}
}

// metric returns the value of a metric, and for a histogram its sum and number of
// observations.
func (s *service) metric(name string) (value float64, observed int) {
	s.t.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			h := m.GetHistogram()
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + h.GetSampleSum(), int(h.GetSampleCount())
		}
	}
	s.t.Fatalf("there is no %s", name)
	return 0, 0
}

// only returns the only node.
func (s *service) only() *mesh.Node {
	s.t.Helper()
	if n := s.ledger.World().Nodes.Len(); n != 1 {
		s.t.Fatalf("there are %d nodes", n)
	}
	for n := range s.ledger.World().Nodes.All() {
		return n
	}
	return nil
}

// client is a device that uses the Tailscale clients' own transport.
type client struct {
	s       *service
	machine key.MachinePrivate
	node    key.NodePrivate
	addr    string // by default 192.0.2.7
	early   []byte
	http    *http2.ClientConn
}

func (s *service) client() *client {
	s.t.Helper()
	c := &client{s: s, machine: key.NewMachine(), node: key.NewNode()}
	c.connect()
	return c
}

// handshake opens a connection and requests the upgrade with the given initiation.
func (s *service) handshake(init string) (conn net.Conn, status int) {
	s.t.Helper()
	return s.handshakeFrom("192.0.2.7", init)
}

func (s *service) handshakeFrom(addr, init string) (conn net.Conn, status int) {
	s.t.Helper()
	return s.upgrade("POST /ts2021 HTTP/1.1\r\nHost: control\r\nUpgrade: tailscale-control-protocol\r\nConnection: upgrade\r\n" +
		"X-Tailscale-Handshake: " + init + "\r\nX-Forwarded-For: " + addr + "\r\nContent-Length: 0\r\n\r\n")
}

// upgrade sends a request and returns the connection after the response header.
func (s *service) upgrade(request string) (conn net.Conn, status int) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	br := bufio.NewReader(conn)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	return netutil.NewDrainBufConn(conn, br), res.StatusCode
}

// outside sends a request outside of Noise.
func (s *service) outside(method, path, body string) (status int, header http.Header, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// connect opens a new connection for a client.
func (c *client) connect() {
	t := c.s.t
	t.Helper()
	init, finish, err := controlbase.ClientDeferred(c.machine, c.s.noise.Public(), uint16(tailcfg.CurrentCapabilityVersion))
	if err != nil {
		t.Fatal(err)
	}
	conn, status := c.s.handshakeFrom(cmp.Or(c.addr, "192.0.2.7"), base64.StdEncoding.EncodeToString(init))
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %d", status)
	}
	noise, err := finish(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Time{})
	var head [9]byte
	if _, err := io.ReadFull(noise, head[:]); err != nil || string(head[:5]) != "\xff\xff\xffTS" {
		t.Fatalf("early payload: %q %v", head, err)
	}
	c.early = make([]byte, binary.BigEndian.Uint32(head[5:]))
	if _, err := io.ReadFull(noise, c.early); err != nil {
		t.Fatal(err)
	}
	c.speak(noise)
}

func (c *client) speak(noise net.Conn) {
	c.s.t.Helper()
	var err error
	if c.http, err = (&http2.Transport{}).NewClientConn(noise); err != nil {
		c.s.t.Fatal(err)
	}
	c.s.t.Cleanup(func() { c.http.Close() })
}

// ask sends a request inside Noise.
func (c *client) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://control"+path, body)
	if err != nil {
		return nil, err
	}
	return c.http.RoundTrip(req)
}

// post sends a body and returns the whole response.
func (c *client) post(path string, body any) (int, string, http.Header) {
	c.s.t.Helper()
	text, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			c.s.t.Fatal(err)
		}
		text = string(encoded)
	}
	res, err := c.ask(c.s.t.Context(), "POST", path, strings.NewReader(text))
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return res.StatusCode, string(answer), res.Header
}

// object is a JSON object under construction.
type object = map[string]any

// registration returns the registration request of a client, with changes.
func (c *client) registration(changes object) object {
	r := object{
		"Version": tailcfg.CurrentCapabilityVersion, "NodeKey": c.node.Public(), "OldNodeKey": key.NodePublic{}, "Expiry": time.Time{}, "Followup": "",
		"Hostinfo": object{"Hostname": "laptop", "OS": "linux", "GoArch": "arm64", "IPNVersion": "1.102.5", "Services": []object{{"Proto": "peerapi4", "Port": 4242}}},
	}
	maps.Copy(r, changes)
	return r
}

func withKey(text string) object { return object{"Auth": object{"AuthKey": text}} }

// register registers and returns the response, whose status is always 200.
func (c *client) register(changes object) tailcfg.RegisterResponse {
	c.s.t.Helper()
	status, text, _ := c.post("/machine/register", c.registration(changes))
	var out tailcfg.RegisterResponse
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		c.s.t.Fatalf("register: %d %q %v", status, text, err)
	}
	return out
}

// joins registers and fails the test if the node is not accepted.
func (c *client) joins(changes object) tailcfg.RegisterResponse {
	c.s.t.Helper()
	out := c.register(changes)
	if out.Error != "" || out.AuthURL != "" || out.NodeKeyExpired || !out.MachineAuthorized {
		c.s.t.Fatalf("refused: %+v", out)
	}
	return out
}

// until polls until done returns true.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: " + what)
		}
		<-time.After(2 * time.Millisecond)
	}
}
