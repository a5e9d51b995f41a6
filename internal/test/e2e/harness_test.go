//go:build !race

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/envknob"
	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var (
	fairlead string // the binary under test
	clients  = flag.String("clients", clienttest.Oldest+","+clienttest.Newest, "versions of the client to run, or all")
)

const (
	patience   = 3 * time.Minute // for operations that take seconds unless the machine is busy
	pollEvery  = 20 * time.Millisecond
	baseDomain = "mesh.test"
)

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	flag.Parse()
	if *bareRelay != "" {
		fmt.Fprintln(os.Stderr, serveBareRelay(*bareRelay))
		return 1
	}
	dir, err := os.MkdirTemp("", "fairlead-bin-")
	if err == nil {
		defer os.RemoveAll(dir)
		fairlead, err = meshtest.Build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Seal this process too, and thereby the linked client that it starts.
	if err := clienttest.SealProcess(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	envknob.SetNoLogsNoSupport()
	for _, knob := range []string{"TS_DEBUG_USE_DERP_HTTP", "TS_DISABLE_PORTMAPPER", "TS_DISABLE_UPNP", "TS_PANIC_IF_HIT_MAIN_CONTROL"} {
		envknob.Setenv(knob, "1")
	}
	return m.Run()
}

// versions returns the client versions under test, oldest first.
func versions() []string {
	if *clients == "all" {
		return clienttest.Versions()
	}
	return strings.Split(*clients, ",")
}

// forEachVersion runs a test with each client version.
func forEachVersion(t *testing.T, test func(t *testing.T, version string)) {
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) { test(t, v) })
	}
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until try succeeds.
func eventually(ctx context.Context, t *testing.T, try func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err // keep the error that was not caused by the end of ctx
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v: %v", ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// network is a server with a relay and a user, alice.
type network struct {
	*meshtest.Server
	t *testing.T
}

func startNetwork(t *testing.T, c meshtest.Config) network {
	t.Helper()
	set := map[string]string{"dns.base_domain": baseDomain}
	for key, value := range c.Set {
		set[key] = value
	}
	c.Binary, c.Relay, c.Set = fairlead, true, set
	n := network{meshtest.Start(t, c), t}
	n.CLI("users", "create", "alice")
	return n
}

// key creates a pre-auth key of alice.
func (n network) key(flags ...string) string {
	n.t.Helper()
	return n.PreAuthKey("alice", flags...)
}

// join starts a client and joins it with a key.
func (n network) join(ctx context.Context, o clienttest.Options, key, name string, args ...string) *clienttest.Daemon {
	n.t.Helper()
	d := clienttest.Start(n.t, o)
	n.up(ctx, d, key, name, args...)
	return d
}

func (n network) up(ctx context.Context, d *clienttest.Daemon, key, name string, args ...string) {
	n.t.Helper()
	if err := d.Up(ctx, n.URL, key, append([]string{"--hostname=" + name}, args...)...); err != nil {
		n.t.Fatal(err)
	}
}

// node is a node as the API returns it.
type node struct {
	ID          string   `json:"id"`
	NodeKey     string   `json:"nodeKey"`
	IPAddresses []string `json:"ipAddresses"`
	GivenName   string   `json:"givenName"`
	Tags        []string `json:"tags"`
	Online      bool     `json:"online"`
	User        struct {
		Name string `json:"name"`
	} `json:"user"`
}

// nodes returns the nodes of the network by name.
func (n network) nodes(ctx context.Context) map[string]node {
	n.t.Helper()
	text, err := n.API(ctx, "GET", "/api/v1/node", "")
	if err != nil {
		n.t.Fatal(err)
	}
	var list struct {
		Nodes []node `json:"nodes"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		n.t.Fatal(err)
	}
	byName := map[string]node{}
	for _, v := range list.Nodes {
		byName[v.GivenName] = v
	}
	if len(byName) != len(list.Nodes) {
		n.t.Fatalf("two nodes have one name: %s", text)
	}
	return byName
}

// address returns a client's first address in the mesh.
func address(ctx context.Context, t *testing.T, d *clienttest.Daemon) netip.Addr {
	t.Helper()
	ips, err := d.IPs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ips[0]
}

// await waits until a client's status meets a condition. It queries the daemon directly, because running a
// command for every poll would keep a small machine busy.
func await(ctx context.Context, t *testing.T, d *clienttest.Daemon, wanted func(*ipnstate.Status) bool) {
	t.Helper()
	began := time.Now()
	client := local.Client{Socket: filepath.Join(d.Dir, "socket"), UseSocketOnly: true}
	eventually(ctx, t, func() error {
		s, err := client.Status(ctx)
		if err != nil || wanted(s) {
			return err
		}
		text, err := json.MarshalIndent(s, "", "  ")
		return errors.Join(fmt.Errorf("after %v the client is not as wanted: %s", time.Since(began), text), err)
	})
}

func awaitState(ctx context.Context, t *testing.T, d *clienttest.Daemon, state string) {
	t.Helper()
	await(ctx, t, d, func(s *ipnstate.Status) bool { return s.BackendState == state })
}

// peer returns the peer with this name from a client's status, or nil.
func peer(s *ipnstate.Status, name string) *ipnstate.PeerStatus {
	for _, p := range s.Peer {
		if p.DNSName == name+"."+baseDomain+"." {
			return p
		}
	}
	return nil
}

// seesOnline returns a condition for await: the client sees these peers online.
func seesOnline(names ...string) func(*ipnstate.Status) bool {
	return func(s *ipnstate.Status) bool {
		for _, name := range names {
			if p := peer(s, name); p == nil || !p.Online {
				return false
			}
		}
		return s.BackendState == "Running"
	}
}

// ping makes a client ping a node by address or name until the output contains path, a text such as "via DERP".
func ping(ctx context.Context, t *testing.T, d *clienttest.Daemon, target, path string) {
	t.Helper()
	eventually(ctx, t, func() error {
		stdout, stderr, _ := d.CLI(ctx, "ping", "--until-direct=false", "--c=1", "--timeout=2s", target)
		if !strings.Contains(stdout, "pong from") || !strings.Contains(stdout, path) {
			return fmt.Errorf("pinging %s %s: %s%s", target, path, stdout, stderr)
		}
		return nil
	})
}

// serveEcho echoes what it receives on every connection, until the test ends.
func serveEcho(t *testing.T, l net.Listener) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
}

// dial connects as soon as the target is reachable. It retries because a client refuses to dial
// peers that it does not know yet.
func dial(ctx context.Context, t *testing.T, connect func(context.Context, string) (net.Conn, error), target string) (conn net.Conn) {
	t.Helper()
	eventually(ctx, t, func() (err error) {
		conn, err = connect(ctx, target)
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// checkEcho sends a text and compares what comes back with it.
func checkEcho(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(conn, text); written <- err }()
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	if err := errors.Join(err, <-written); err != nil || string(got) != text {
		t.Fatalf("%d bytes came back as others, %v", len(text), err)
	}
}

// someBytes returns a megabyte of text in which no two lines are equal.
func someBytes(name string) string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintln(&b, name, i)
	}
	return b.String()
}

// startPostgres starts a PostgreSQL server that runs until the test ends.
func startPostgres(t *testing.T) *pgtest.Server {
	t.Helper()
	pg, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}
