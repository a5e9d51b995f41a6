//go:build !race

package meshtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
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
	stun := porttest.Addr(t)
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

// goesOn waits until more bytes have come back.
func goesOn(t *testing.T, talk *clienttest.Talk) {
	t.Helper()
	before := talk.Bytes()
	eventually(t, patience, func() error {
		if talk.Bytes() == before {
			return errors.New("the stream stands still")
		}
		return nil
	})
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
	conn, err := clients[0].Dial(ctx, net.JoinHostPort(ips[0].String(), strconv.Itoa(clienttest.Echo(t))))
	if err != nil {
		t.Fatal(err)
	}
	talk := clienttest.StartTalk(conn, 5*time.Millisecond)
	for i, s := range r.servers {
		s.Kill()
		goesOn(t, talk)
		mustHold(t, patience, len(clients)+1, r.servers[1-i])
		watch(t, 5*time.Second, absence, []*Node{watcher})
		mustBeDirect()
		s.Resume()
	}
	watch(t, 15*time.Second, absence, []*Node{watcher})
	if err := talk.End(); err != nil {
		t.Error(err)
	}
	t.Logf("%d bytes came back as they were sent, with a pause of %v at most", talk.Bytes(), talk.Stalled())
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
