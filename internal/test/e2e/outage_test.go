//go:build !race

package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// TestClientThatStartsWithoutTheServerReachesItsPeers restarts clients while the server is away. The relay is a
// process of its own, as the clients need a way to find each other.
func TestClientThatStartsWithoutTheServerReachesItsPeers(t *testing.T) {
	ctx := within(t, 2*patience)
	l := newLab(t)
	l.serve(t, meshtest.Config{Set: map[string]string{
		"derp.server.enabled": "false", "derp.paths": startBareRelay(t, l), "cache_network_maps": "true",
	}})
	l.joinBoth(ctx, clienttest.Newest)
	there := l.listen(ctx, t)
	serveEcho(t, there)
	checkEcho(t, l.connect(ctx, t, there), someBytes("with the server"))

	l.Stop()
	if err := l.daemons[0].Restart(); err != nil {
		t.Fatal(err)
	}
	awaitState(ctx, t, l.daemons[0], "Running")
	checkEcho(t, l.connect(ctx, t, there), someBytes("without the server"))

	// The map that the client stored is replaced as soon as the server is back.
	l.Resume()
	l.CLI("nodes", "rename", "second", "renamed")
	await(ctx, t, l.daemons[0], seesOnline("renamed"))
}

// TestClientReconnectsWithoutDNS closes the address to which the name of the server leads. Clients then find the server
// at another address, which is in their dial plan.
func TestClientReconnectsWithoutDNS(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		byName := meshtest.NewBalancer(t) // at 127.0.0.1, and so at localhost
		_, port, err := net.SplitHostPort(byName.Addr)
		if err != nil {
			t.Fatal(err)
		}
		const other = "127.0.0.3"
		at, url := net.JoinHostPort(other, port), "http://"+net.JoinHostPort("localhost", port)
		n := startNetwork(t, meshtest.Config{URL: url, Set: map[string]string{"listen_addr": at, "server_addresses": other}})
		n.Addr, n.URL = at, url
		byName.Add(at)
		d := n.join(ctx, clienttest.Options{Version: version}, n.key(), "first")

		byName.Stop()
		began := time.Now()
		n.CLI("nodes", "rename", "first", "renamed")
		await(ctx, t, d, func(s *ipnstate.Status) bool { return strings.HasPrefix(s.Self.DNSName, "renamed.") })
		t.Logf("the client got a change %v after its connection was closed", time.Since(began).Round(time.Millisecond))
	})
}
