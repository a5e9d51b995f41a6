//go:build !race

package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"tailscale.com/tsnet"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// nameOf returns the name of the node that runs a client version.
func nameOf(version string) string { return strings.ReplaceAll(version, ".", "-") }

// startLinked runs tsnet, the client that is linked into programs. It stops when the test ends or
// when it is closed.
func startLinked(ctx context.Context, t *testing.T, n network, name, key, dir string) *tsnet.Server {
	t.Helper()
	clienttest.RequireSealed(t)
	s := &tsnet.Server{Dir: dir, Hostname: name, ControlURL: n.URL, AuthKey: key, Logf: logger.Discard, UserLogf: logger.Discard}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Up(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClientsOfAllVersionsFormOneMesh(t *testing.T) {
	ctx := within(t, 2*patience)
	n := startNetwork(t, meshtest.Config{})
	key := n.key("--reusable")
	linked := startLinked(ctx, t, n, "linked", n.key(), t.TempDir())
	names := []string{"linked"}
	daemons := map[string]*clienttest.Daemon{}
	for _, v := range versions() {
		names = append(names, nameOf(v))
		daemons[nameOf(v)] = n.join(ctx, clienttest.Options{Version: v}, key, nameOf(v))
	}

	// With userspace networking, a client forwards incoming connections to this host.
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, here)
	port := here.Addr().(*net.TCPAddr).Port
	there, err := linked.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, there)

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
		conn := dial(ctx, t, func(ctx context.Context, target string) (net.Conn, error) { return linked.Dial(ctx, "tcp", target) },
			fmt.Sprintf("%s.%s:%d", name, baseDomain, port))
		checkEcho(t, conn, someBytes("linked to "+name))
	}
}

// Programs and containers are always started with the same key.
func TestLinkedClientStartsAgainWithAKeyThatIsUsedUp(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	key, dir := n.key(), t.TempDir()
	first := startLinked(ctx, t, n, "linked", key, dir)
	before := n.nodes(ctx)["linked"]
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	startLinked(ctx, t, n, "linked", key, dir)
	nodes := n.nodes(ctx)
	if after := nodes["linked"]; after.ID != before.ID || after.NodeKey != before.NodeKey || len(nodes) != 1 {
		t.Errorf("the node was %+v, the nodes are %+v", before, nodes)
	}
}
