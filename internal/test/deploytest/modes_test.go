//go:build !race

package deploytest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// Two proxies share one server, so that both clients are in the same mesh.
func TestClientsOfBothModesReachEachOtherDirectlyAndByTheRelay(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	a := newAuthority(t)
	s := o.startProduction(a.issue(t, publicName, ""))
	development := o.addDevelopmentProxy(s)
	ctx := within(t, 2*patience)

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
	o.mustCheckDualStack(ctx, key, a.Root)
}

// mustCheckDualStack joins a host that also has IPv6 and resolves the deployment's name to both kinds of address, and
// checks what its client learns about the network. A STUN server that responds over IPv6 with the address of Docker's
// gateway would make the client assume a NAT that no direct connection can traverse.
func (o *outside) mustCheckDualStack(ctx context.Context, key, roots string) {
	o.t.Helper()
	host := o.host("dual")
	lab := o.Addr.As4()[2]
	here, there := netip.MustParseAddr(fmt.Sprintf("fd00:fa1e:%x::fd", lab)), netip.MustParseAddr(fmt.Sprintf("fd00:fa1e:%x::1", lab))
	add := fmt.Sprintf("ip -6 addr add %s/64 dev fl-lab%d nodad", here, lab)
	if _, err := command(ctx, root, "sh", "-ec", add); err != nil {
		o.t.Fatal(err)
	}
	add = fmt.Sprintf("echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip -6 addr add %s/64 dev eth0 nodad; echo %s %s >>/etc/hosts", there, here, publicName)
	if out, err := host.Command(ctx, "sh", "-ec", add).CombinedOutput(); err != nil {
		o.t.Fatalf("%v\n%s", err, out)
	}
	reachesSomething(o.t, host, here) // over IPv6
	client := o.join(ctx, host, publicURL, key, roots)
	eventually(o.t, patience, func() error {
		stdout, stderr, code := client.CLI(ctx, "netcheck", "--format=json")
		var report struct {
			UDP, IPv4, IPv6       bool
			MappingVariesByDestIP *bool
			GlobalV4              string
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
			return fmt.Errorf("%w: %s%s", err, stdout, stderr)
		}
		if varies := report.MappingVariesByDestIP; varies != nil && *varies {
			o.t.Fatalf("the client believes that it is behind a hard NAT: %s", stdout)
		}
		if !report.UDP || !report.IPv4 || !strings.HasPrefix(report.GlobalV4, host.Addr.String()+":") {
			return fmt.Errorf("the client does not know its address, %s: %s", host.Addr, stdout)
		}
		return nil
	})
}

// addDevelopmentProxy starts a second proxy in front of the server, in development mode, and
// returns its URL.
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
	s := NewStack(t, nil)
	s.Setup("--dev", "--sqlite")
	ctx := within(t, 2*patience)
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
