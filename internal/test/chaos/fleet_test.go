//go:build !race

package chaos_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// fleet is a whole deployment: three replicas, a primary with a standby, a balancer, a relay, virtual nodes and
// real clients. Every connection between two of them goes through a proxy that can be cut.
type fleet struct {
	t        *testing.T
	db       *pair
	balancer *meshtest.Balancer
	door     string // URL for real clients, with TLS
	roots    string // file with the certificate of the door
	relay    *meshtest.Balancer
	members  []*member
	nodes    []*meshtest.Node
	clients  []*clienttest.Daemon
	talks    []*clienttest.Talk
	authKey  string
}

// member is a replica.
type member struct {
	*meshtest.Server
	binary   string                // link to the program that the next start runs
	front    *meshtest.Balancer    // how the balancer reaches it
	peers    *meshtest.Balancer    // how other replicas reach it
	database [2]*meshtest.Balancer // how it reaches each PostgreSQL server
}

const replicaCount = 3

// fleetOptions configures a fleet.
type fleetOptions struct {
	nodes, clients int
	async          bool // the standby is asynchronous
	binary         string
}

func startFleet(t *testing.T, o fleetOptions) *fleet {
	t.Helper()
	f := &fleet{t: t, db: startPair(t, !o.async), balancer: meshtest.NewBalancer(t)}
	f.openDoor()
	relays := f.startRelay()
	noise := filepath.Join(t.TempDir(), "noise.key")
	for range replicaCount {
		m := &member{peers: meshtest.NewBalancer(t), binary: filepath.Join(t.TempDir(), "fairlead")}
		m.use(t, o.binary)
		hosts := ""
		for i, server := range f.db.servers {
			m.database[i] = meshtest.NewBalancer(t, address(server))
			hosts += m.database[i].Addr + ","
		}
		m.Server = meshtest.Start(t, meshtest.Config{
			Binary: m.binary, Postgres: f.db.servers[0], Database: f.db.database, URL: f.door, NoiseKey: noise,
			Set: map[string]string{
				"database.postgres.host": hosts[:len(hosts)-1], "derp.paths": relays, "replica_url": m.peers.URL, "log.level": "info",
			},
		})
		m.peers.Add(m.Addr)
		m.front = meshtest.NewBalancer(t, m.Addr)
		f.balancer.Add(m.front.Addr)
		f.members = append(f.members, m)
	}
	f.balancer.Check(t, "/ready")
	f.members[0].CLI("users", "create", "fleet")
	f.authKey = f.members[0].PreAuthKey("fleet", "--reusable", "--expiration", "30d")
	f.joinNodes(o.nodes)
	f.joinClients(o.clients)
	return f
}

// use selects the program that the next start of a replica runs.
func (m *member) use(t *testing.T, binary string) {
	t.Helper()
	_ = os.Remove(m.binary) // there is none at first
	if err := os.Symlink(binary, m.binary); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// openDoor accepts TLS connections and forwards them to the balancer. Without TLS, a real client that loses the
// server stays away for two minutes.
func (f *fleet) openDoor() {
	f.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(0, 1, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	f.must(err)
	f.roots = filepath.Join(disktest.Open(f.t), "roots.pem")
	f.must(os.WriteFile(f.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	plain, err := new(net.ListenConfig).Listen(f.t.Context(), "tcp", porttest.Addr(f.t))
	f.must(err)
	l := tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, MinVersion: tls.VersionTLS12})
	f.door = "https://" + plain.Addr().String()
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { forward(conn, f.balancer.Addr) })
		}
	})
	f.t.Cleanup(func() { l.Close(); f.balancer.Sever(); wait.Wait() })
}

// forward copies between a connection and an address until one side closes.
func forward(conn net.Conn, addr string) {
	defer conn.Close()
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return
	}
	defer to.Close()
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = io.Copy(to, conn)
		to.Close()
	})
	_, _ = io.Copy(conn, to)
	conn.Close()
	wait.Wait()
}

// startRelay starts a relay behind a proxy and returns the file with its map.
func (f *fleet) startRelay() (path string) {
	f.t.Helper()
	stun := porttest.Addr(f.t)
	r, err := relay.NewServer(relay.ServerConfig{
		Key: key.NewNode(), STUNListenAddr: stun, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	f.must(err)
	f.must(r.Listen())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	server := httptest.NewServer(r.Handler())
	f.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
		server.Close()
	})
	f.relay = meshtest.NewBalancer(f.t, server.Listener.Addr().String())
	addr := netip.MustParseAddrPort(f.relay.Addr)
	text, err := relay.Encode(&tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{900: relay.Region(relay.RegionConfig{
		ID: 900, Code: "test", Name: "Test", HostName: addr.Addr().String(), IPv4: addr.Addr(), DERPPort: int(addr.Port()),
		STUNPort: int(netip.MustParseAddrPort(stun).Port()), Insecure: true,
	})}})
	f.must(err)
	path = filepath.Join(f.t.TempDir(), "relays.json")
	f.must(os.WriteFile(path, text, 0o644))
	return path
}

// joinNodes registers virtual nodes and opens their streams.
func (f *fleet) joinNodes(count int) {
	f.t.Helper()
	crowd := meshtest.NewCrowd(f.t, f.balancer.URL)
	f.nodes = make([]*meshtest.Node, count)
	errs := make([]error, count)
	slots := make(chan struct{}, 30)
	var wait sync.WaitGroup
	for i := range f.nodes {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			n := crowd.Node(fmt.Sprintf("node-%d", i))
			f.nodes[i] = n
			errs[i] = n.Register(f.t.Context(), f.authKey)
			n.Connect()
		})
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	waittest.Eventually(f.t, 3*time.Minute, 200*time.Millisecond, func() error { return f.connected(f.t.Context(), count) })
}

// connected checks that the replicas together hold this number of streams.
func (f *fleet) connected(ctx context.Context, count int) error {
	open := 0.0
	for _, m := range f.members {
		held, err := m.Metric(ctx, "mesh_streams_open")
		if err != nil {
			return err
		}
		open += held
	}
	if open != float64(count) {
		return fmt.Errorf("%v of %d nodes have a stream", open, count)
	}
	return nil
}

// joinClients starts real clients and opens a TCP stream between every two of them. Every second pair uses the
// relay only.
func (f *fleet) joinClients(count int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	for i := range count {
		env := []string{"SSL_CERT_FILE=" + f.roots}
		if i%4 >= 2 {
			env = append(env, "TS_DEBUG_ALWAYS_USE_DERP=1")
		}
		d := clienttest.Start(f.t, clienttest.Options{Env: env})
		f.must(d.Up(ctx, f.door, f.authKey, fmt.Sprintf("--hostname=client-%d", i)))
		f.clients = append(f.clients, d)
	}
	port := strconv.Itoa(clienttest.Echo(f.t))
	for i := 0; i+1 < count; i += 2 {
		ips, err := f.clients[i+1].IPs(ctx)
		f.must(err)
		if stdout, stderr, code := f.clients[i].CLI(ctx, "ping", "--c=30", "--until-direct="+strconv.FormatBool(i%4 == 0), ips[0].String()); code != 0 {
			f.t.Fatalf("the clients cannot reach each other: %s%s", stdout, stderr)
		}
		conn, err := f.clients[i].Dial(ctx, net.JoinHostPort(ips[0].String(), port))
		f.must(err)
		f.talks = append(f.talks, clienttest.StartTalk(conn, 20*time.Millisecond))
	}
}
