//go:build !race

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/meshtest"
)

// lab is a network with two clients on hosts of their own, each with a network
// device. The second client is the newest, whatever the first is.
type lab struct {
	network
	*clienttest.Lab
	hosts   [2]*clienttest.Namespace
	daemons [2]*clienttest.Daemon
}

func startLab(ctx context.Context, t *testing.T, version string) lab {
	t.Helper()
	l := lab{Lab: clienttest.NewLab(t)}
	l.network = startNetwork(t, meshtest.Config{Namespace: l.Add("server")})
	key := l.key("--reusable")
	for i, name := range []string{"first", "second"} {
		l.hosts[i] = l.Add(name)
		l.daemons[i] = l.join(ctx, clienttest.Options{Version: version, Namespace: l.hosts[i]}, key, name)
		version = clienttest.Newest
	}
	return l
}

// echo serves an echo on the second host and connects to it from the first.
func (l lab) echo(ctx context.Context, t *testing.T) net.Conn {
	t.Helper()
	there, err := l.hosts[1].Listen(ctx, "tcp", address(ctx, t, l.daemons[1]).String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, there)
	return dial(ctx, t, func(ctx context.Context, target string) (net.Conn, error) {
		return l.hosts[0].DialContext(ctx, "tcp", target)
	}, there.Addr().String())
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
