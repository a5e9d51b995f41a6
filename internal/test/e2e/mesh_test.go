//go:build !race

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	socks5 "golang.org/x/net/proxy"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// nameOf returns the name of the node that runs a client version.
func nameOf(version string) string { return strings.ReplaceAll(version, ".", "-") }

// linkedClient is tsnet, Tailscale's client library, running in a separate process. It serves an echo on a port.
type linkedClient struct {
	socks socks5.ContextDialer
	stop  func() error
}

// startLinked starts a client that joins a network. The client stops when the test ends or when stop is called.
func startLinked(ctx context.Context, t *testing.T, n network, program, key, dir string, port int) *linkedClient {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, n.URL, key, "linked", dir, strconv.Itoa(port))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &linkedClient{stop: sync.OnceValue(func() error {
		stdin.Close() // makes the client exit
		defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the linked client: %w\n%s", err, problem.Bytes())
		}
		return nil
	})}
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	defer context.AfterFunc(ctx, func() { _ = stdin.Close() })() // a client that cannot join prints nothing
	var addr string
	auth := socks5.Auth{User: "tsnet"}
	if _, err := fmt.Fscanln(stdout, &addr, &auth.Password); err != nil {
		t.Fatalf("the client is not ready: %v", err)
	}
	socks, err := socks5.SOCKS5("tcp", addr, &auth, new(net.Dialer))
	if err != nil {
		t.Fatal(err)
	}
	l.socks = socks.(socks5.ContextDialer)
	return l
}

// buildLinked builds the program that startLinked runs. Call it before the timeout of the test starts, because compiling can take
// longer.
func buildLinked(t *testing.T) (program string) {
	t.Helper()
	clienttest.RequireSealed(t)
	return buildModule(t, "testdata/linked", nil, "-tags="+clienttest.Omitted)
}

// buildModule builds the program in a separate module.
func buildModule(t *testing.T, dir string, env []string, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(dir))
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-trimpath", "-buildvcs=false"}, flags...), "-o", program, ".")...)
	build.Dir = dir
	build.Env = append(append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0"), env...)
	clienttest.MayDownload(build)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, out)
	}
	return program
}

// dial connects to another node.
func (l *linkedClient) dial(ctx context.Context, target string) (net.Conn, error) {
	return l.socks.DialContext(ctx, "tcp", target)
}

func TestClientsOfAllVersionsFormOneMesh(t *testing.T) {
	program := buildLinked(t)
	ctx := within(t, 2*patience)
	n := startNetwork(t, meshtest.Config{})
	key := n.key("--reusable")

	// With userspace networking, a client forwards incoming connections to this host.
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, here)
	port := here.Addr().(*net.TCPAddr).Port

	linked := startLinked(ctx, t, n, program, n.key(), t.TempDir(), port)
	names := []string{"linked"}
	daemons := map[string]*clienttest.Daemon{}
	for _, v := range versions() {
		names = append(names, nameOf(v))
		daemons[nameOf(v)] = n.join(ctx, clienttest.Options{Version: v}, key, nameOf(v))
	}

	for name, d := range daemons {
		for _, other := range names {
			if other == name {
				continue
			}
			await(ctx, t, d, seesOnline(other))
			ping(ctx, t, d, other, "pong from "+other)
			conn := dial(ctx, t, d.Dial, fmt.Sprintf("%s.%s:%d", other, baseDomain, port))
			checkEcho(t, conn, someBytes(name+" to "+other))
		}
		conn := dial(ctx, t, linked.dial, fmt.Sprintf("%s.%s:%d", name, baseDomain, port))
		checkEcho(t, conn, someBytes("linked to "+name))
	}
}

// Programs and containers are always started with the same key.
func TestLinkedClientStartsAgainWithAKeyThatIsUsedUp(t *testing.T) {
	t.Parallel()
	program := buildLinked(t)
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	key, dir := n.key(), t.TempDir()
	first := startLinked(ctx, t, n, program, key, dir, 7)
	before := n.nodes(ctx)["linked"]
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	startLinked(ctx, t, n, program, key, dir, 7)
	nodes := n.nodes(ctx)
	if after := nodes["linked"]; after.ID != before.ID || after.NodeKey != before.NodeKey || len(nodes) != 1 {
		t.Errorf("the node was %+v, the nodes are %+v", before, nodes)
	}
}

// Otherwise the packages of the newest client would be compiled twice.
func TestLinkedClientIsTheNewestClient(t *testing.T) {
	module, err := os.ReadFile(filepath.Join("testdata", "linked", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "require tailscale.com " + clienttest.Newest + "\n"; !strings.Contains(string(module), want) {
		t.Errorf("testdata/linked/go.mod does not contain %q", want)
	}
}
