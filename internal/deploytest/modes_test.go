//go:build !race

package deploytest

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/clienttest"
)

// Two proxies stand before one service, so that both clients are of one mesh.
func TestClientsOfBothModesReachEachOtherDirectlyAndByTheRelay(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	o := newOutside(t)
	a := newAuthority(t)
	s := o.startProduction(a.issue(t, publicName, ""))
	development := o.addDevelopmentProxy(s)

	first, second := o.host("first"), o.host("second")
	state, err := o.handshake(ctx, first, a.Root)
	if err != nil || state.Version != tls.VersionTLS13 {
		t.Fatalf("TLS version %x, %v", state.Version, err)
	}
	key := joinKey(s)
	stranger := clienttest.Start(t, clienttest.Options{Namespace: o.host("stranger"), Env: trusting(newAuthority(t).Root)})
	_, _, code := stranger.CLI(ctx, "up", "--login-server="+publicURL, "--auth-key="+key, "--timeout=5s")
	if code == 0 || !strings.Contains(stranger.Log(), "certificate signed by unknown authority") {
		t.Errorf("a client that trusts another authority joins with code %d, or does not say why", code)
	}
	byTLS := o.join(ctx, first, publicURL, key, a.Root)
	byHTTP := o.join(ctx, second, development, key, a.Root)
	pingBoth(ctx, t, byTLS, byHTTP, "via "+second.Addr.String(), "via "+first.Addr.String())

	o.BlockUDP(first, second)
	pingBoth(ctx, t, byTLS, byHTTP, "via DERP(fairlead)", "via DERP(fairlead)")
	if n, err := metric(ctx, s, "mesh_derp_connections_active"); err != nil || n != 2 {
		t.Errorf("%v clients are at the relay, %v", n, err)
	}
}

// addDevelopmentProxy puts a second proxy before the service, in development
// mode, and returns its URL.
func (o *outside) addDevelopmentProxy(s *Stack) string {
	o.t.Helper()
	name, address := s.Project+"-development", o.Addr.String()+":8000"
	s.run(s.Dir, docker, "run", "--detach", "--name="+name, "--network="+s.Project+"_front", "--env=PROXY_MODE=dev",
		"--publish="+address+":8080", images.name("proxy"))
	o.t.Cleanup(func() {
		if _, err := command(context.Background(), s.Dir, docker, "rm", "--force", "--volumes", name); err != nil {
			o.t.Error(err)
		}
	})
	return "http://" + address
}

func pingBoth(ctx context.Context, t *testing.T, first, second *clienttest.Daemon, there, back string) {
	t.Helper()
	ping(ctx, t, first, "second", there)
	ping(ctx, t, second, "first", back)
}

func TestClientsOnTheMachineReachEachOtherThroughTheDevelopmentProxy(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	s := NewStack(t, nil)
	s.Setup("--dev", "--sqlite")
	_, port, err := net.SplitHostPort(s.Addr("PROXY_DEV_PUBLISH"))
	if err != nil {
		t.Fatal(err)
	}
	key := joinKey(s)
	var clients [2]*clienttest.Daemon
	for i, name := range []string{"first", "second"} {
		clients[i] = clienttest.Start(t, clienttest.Options{Env: []string{"TS_DEBUG_NEVER_DIRECT_UDP=1"}})
		if err := clients[i].Up(ctx, "http://localhost:"+port, key, "--hostname="+name); err != nil {
			t.Fatal(err)
		}
	}
	pingBoth(ctx, t, clients[0], clients[1], "via DERP(fairlead)", "via DERP(fairlead)")
}
