//go:build !race

package meshtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// joinClients starts real clients without a network device and joins them with a key.
func joinClients(t *testing.T, serverURL, authKey string, count int) []*clienttest.Daemon {
	t.Helper()
	ctx := within(t, 2*patience)
	clients := make([]*clienttest.Daemon, count)
	for i := range clients {
		clients[i] = clienttest.Start(t, clienttest.Options{})
		if err := clients[i].Up(ctx, serverURL, authKey, fmt.Sprintf("--hostname=client-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	return clients
}

// picture returns the data of a client that must not change: its addresses and those of its peers.
func picture(ctx context.Context, d *clienttest.Daemon) (map[string][]netip.Addr, error) {
	s, err := d.Status(ctx)
	if err != nil {
		return nil, err
	}
	nodes := map[string][]netip.Addr{s.Self.PublicKey.String(): s.TailscaleIPs}
	for k, p := range s.Peer {
		nodes[k.String()] = p.TailscaleIPs
	}
	return nodes, nil
}

// seesPeers returns a condition: the client sees this number of peers online.
func seesPeers(count int) func(*ipnstate.Status) bool {
	return func(s *ipnstate.Status) bool {
		online := 0
		for _, p := range s.Peer {
			if p.Online {
				online++
			}
		}
		return s.BackendState == "Running" && s.Self.Online && online == count
	}
}

// startRelay starts a relay with STUN that is independent of the replicas, and returns the file with its map.
func startRelay(t *testing.T) string {
	t.Helper()
	stun := FreeAddr(t)
	r, err := relay.NewServer(relay.ServerConfig{
		Key: key.NewNode(), STUNListenAddr: stun, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	server := httptest.NewServer(r.Handler())
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		server.Close()
	})
	addr := netip.MustParseAddrPort(server.Listener.Addr().String())
	text, err := relay.Encode(&tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{900: relay.Region(relay.RegionConfig{
		ID: 900, Code: "test", Name: "Test", HostName: addr.Addr().String(), IPv4: addr.Addr(), DERPPort: int(addr.Port()),
		STUNPort: int(netip.MustParseAddrPort(stun).Port()), Insecure: true,
	})}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "relays.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// echo sends back what it receives on every connection, until the test ends.
func echo(t *testing.T) (port int) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// conversation is a TCP stream that sends random bytes and compares what comes back.
type conversation struct {
	conn    net.Conn
	done    chan error
	bytes   atomic.Int64
	stalled atomic.Int64 // the longest time for one round, in nanoseconds
}

func converse(conn net.Conn) *conversation {
	c := &conversation{conn: conn, done: make(chan error, 1)}
	go func() { c.done <- c.run() }()
	return c
}

func (c *conversation) run() error {
	random := rand.NewChaCha8([32]byte{1})
	sent, got := make([]byte, 4096), make([]byte, 4096)
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for ; ; <-pace.C {
		begun := time.Now()
		_, _ = random.Read(sent) // never fails
		if _, err := c.conn.Write(sent); err != nil {
			return err
		}
		if _, err := io.ReadFull(c.conn, got); err != nil {
			return err
		}
		if !slices.Equal(sent, got) {
			return fmt.Errorf("after %d bytes others came back than were sent", c.bytes.Load())
		}
		c.bytes.Add(int64(len(got)))
		c.stalled.Store(max(c.stalled.Load(), int64(time.Since(begun))))
	}
}

// goesOn waits until more bytes have come back.
func (c *conversation) goesOn(t *testing.T) {
	t.Helper()
	before := c.bytes.Load()
	eventually(t, patience, func() error {
		if c.bytes.Load() == before {
			return errors.New("the stream stands still")
		}
		return nil
	})
}

// end closes the stream, which must have worked until then.
func (c *conversation) end(t *testing.T) {
	t.Helper()
	c.conn.Close()
	if err := <-c.done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the stream broke: %v", err)
	}
	t.Logf("%d bytes came back as they were sent, with a pause of %v at most", c.bytes.Load(), time.Duration(c.stalled.Load()).Round(time.Millisecond))
}

func TestTrafficBetweenClientsSurvivesTheDeathOfEachReplica(t *testing.T) {
	t.Parallel()
	r := startReplicas(t, pg, 2, map[string]string{"derp.paths": startRelay(t)})
	r.servers[0].CLI("users", "create", "alice")
	key := r.servers[0].PreAuthKey("alice", "--reusable")
	clients := joinClients(t, r.URL, key, 2)
	ctx := within(t, 2*time.Minute)
	watcher := NewCrowd(t, r.URL).Node("watcher")
	if err := watcher.Register(ctx, key); err != nil {
		t.Fatal(err)
	}
	watcher.Connect()
	if _, err := watcher.Await(ctx, func(v *View) bool { return online(v) == len(clients) }); err != nil {
		t.Fatal(err)
	}
	ips, err := clients[1].IPs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustBeDirect := func() {
		t.Helper()
		if stdout, stderr, code := clients[0].CLI(ctx, "ping", "--until-direct", "--c=20", ips[0].String()); code != 0 || strings.Contains(lastLine(stdout), "DERP") {
			t.Fatalf("no direct path: %s%s", stdout, stderr)
		}
	}
	mustBeDirect()
	conn, err := clients[0].Dial(ctx, net.JoinHostPort(ips[0].String(), strconv.Itoa(echo(t))))
	if err != nil {
		t.Fatal(err)
	}
	talk := converse(conn)
	for i, s := range r.servers {
		s.Kill()
		talk.goesOn(t)
		mustHold(t, patience, len(clients)+1, r.servers[1-i])
		watch(t, 5*time.Second, absence, []*Node{watcher})
		mustBeDirect()
		s.Resume()
	}
	watch(t, 15*time.Second, absence, []*Node{watcher})
	talk.end(t)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func TestFrozenClientIsShownOffline(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Binary: fairlead, Relay: true})
	s.CLI("users", "create", "alice")
	key := s.PreAuthKey("alice", "--reusable")
	client := joinClients(t, s.URL, key, 1)[0]
	w := NewCrowd(t, s.URL).Node("watcher")
	if err := w.Register(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	w.Connect()
	if _, err := w.Await(within(t, patience), func(v *View) bool { return online(v) == 1 }); err != nil {
		t.Fatal(err)
	}
	if err := client.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	at, err := w.Await(within(t, 2*time.Minute), func(v *View) bool { return online(v) == 0 })
	if err := client.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("the frozen client is not shown offline: %v", err)
	}
	t.Logf("the frozen client is shown offline after %v", at.Sub(began).Round(time.Millisecond))
	if _, err := w.Await(within(t, patience), func(v *View) bool { return online(v) == 1 }); err != nil {
		t.Errorf("the client does not come back: %v", err)
	}
}
