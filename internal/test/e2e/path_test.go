//go:build !race

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// lab is a network with two clients, each on its own host with a network device.
type lab struct {
	network
	*clienttest.Lab
	server  *clienttest.Namespace
	hosts   [2]*clienttest.Namespace
	daemons [2]*clienttest.Daemon
}

// newLab creates the hosts, with nothing running on them.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Lab: clienttest.NewLab(t)}
	l.server = l.Add("server")
	l.hosts = [2]*clienttest.Namespace{l.Add("first"), l.Add("second")}
	return l
}

// serve starts the server.
func (l *lab) serve(t *testing.T, c meshtest.Config) {
	t.Helper()
	c.Namespace = l.server
	l.network = startNetwork(t, c)
}

// joinBoth joins the clients. The second one is always the newest version.
func (l *lab) joinBoth(ctx context.Context, version string, env ...string) {
	l.t.Helper()
	key := l.key("--reusable")
	for i, n := range l.hosts {
		l.daemons[i] = l.join(ctx, clienttest.Options{Version: version, Namespace: n, Env: env}, key, n.Name)
		version = clienttest.Newest
	}
}

func startLab(ctx context.Context, t *testing.T, version string) *lab {
	t.Helper()
	l := newLab(t)
	l.serve(t, meshtest.Config{})
	l.joinBoth(ctx, version)
	return l
}

// connect connects from the first host to a listener on the second.
func (l *lab) connect(ctx context.Context, t *testing.T, target net.Listener) net.Conn {
	t.Helper()
	from := func(ctx context.Context, target string) (net.Conn, error) {
		return l.hosts[0].DialContext(ctx, "tcp", target)
	}
	return dial(ctx, t, from, target.Addr().String())
}

// listen listens on the second host's mesh address.
func (l *lab) listen(ctx context.Context, t *testing.T) net.Listener {
	t.Helper()
	there, err := l.hosts[1].Listen(ctx, "tcp", address(ctx, t, l.daemons[1]).String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return there
}

// echo connects from the first host to an echo server on the second.
func (l *lab) echo(ctx context.Context, t *testing.T) net.Conn {
	t.Helper()
	there := l.listen(ctx, t)
	serveEcho(t, there)
	return l.connect(ctx, t, there)
}

func TestTrafficGoesDirectlyAndThroughTheRelayWhenItMust(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		l := startLab(ctx, t, version)
		direct := "via " + l.hosts[1].Addr.String()
		ping(ctx, t, l.daemons[0], "second", direct)
		conn := l.echo(ctx, t)
		checkEcho(t, conn, someBytes("directly"))

		l.BlockUDP(l.hosts[0], l.hosts[1])
		ping(ctx, t, l.daemons[0], "second", "via DERP(fairlead)")
		checkEcho(t, conn, someBytes("through the relay")) // the same connection

		l.AllowUDP(l.hosts[0], l.hosts[1])
		ping(ctx, t, l.daemons[0], "second", direct)
		checkEcho(t, conn, someBytes("directly again"))
	})
}

func TestHostResolvesTheNamesOfNodes(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		l := startLab(ctx, t, version)
		want := address(ctx, t, l.daemons[1]).String()
		for _, name := range []string{"second", "second." + baseDomain} {
			eventually(ctx, t, func() error {
				cmd := l.hosts[0].Command(ctx, "getent", "ahostsv4", name)
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				err := cmd.Run()
				if err == nil && !strings.HasPrefix(out.String(), want+" ") {
					err = fmt.Errorf("want %s", want)
				}
				if err != nil {
					err = fmt.Errorf("looking up %s: %w: %s", name, err, out.Bytes())
				}
				return err
			})
		}
	})
}
