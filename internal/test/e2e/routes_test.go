//go:build !race

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

var flapping = flag.Duration("flapping", 0, "how long a router comes and goes, every 20 s (default: three times, as fast as it can)")

const (
	flapEvery = 20 * time.Second
	aMoment   = 500 * time.Millisecond // for one connection attempt
)

// office is a network behind two routers, east and west, and a traveller outside it.
type office struct {
	network
	*clienttest.Lab
	prefix  netip.Prefix
	hosts   map[string]*clienttest.Namespace
	daemons map[string]*clienttest.Daemon
	names   map[string]string // names of the routers by the address that the office sees
	printer string            // address of the host in the office
}

func newOffice(ctx context.Context, t *testing.T) *office {
	t.Helper()
	o := &office{
		Lab: clienttest.NewLab(t), prefix: netip.MustParsePrefix("10.77.0.0/24"),
		hosts: map[string]*clienttest.Namespace{}, daemons: map[string]*clienttest.Daemon{},
		names: map[string]string{"10.77.0.2": "east", "10.77.0.3": "west"},
	}
	o.network = startNetwork(t, meshtest.Config{Namespace: o.Add("server")})
	for _, name := range []string{"east", "west", "traveller"} {
		o.hosts[name] = o.Add(name)
	}
	o.printer = tellSource(ctx, t, o.Behind("printer", o.prefix, o.hosts["east"], o.hosts["west"]))
	key := o.key("--reusable")
	for name, host := range o.hosts {
		flag := "--advertise-routes=" + o.prefix.String()
		if name == "traveller" {
			flag = "--accept-routes"
		}
		o.daemons[name] = o.join(ctx, clienttest.Options{Namespace: host}, key, name, flag)
	}
	return o
}

// tellSource runs a server on a host until the test ends. It sends each connection its source address and
// then echoes what it receives.
func tellSource(ctx context.Context, t *testing.T, host *clienttest.Namespace) (address string) {
	t.Helper()
	l, err := host.Listen(ctx, "tcp", host.Addr.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				source, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
				fmt.Fprintln(conn, source)
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// askSource connects from a host and returns the connection and the source address that the other end sees.
func askSource(ctx context.Context, from *clienttest.Namespace, target string, limit time.Duration) (net.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, "", err
	}
	_ = conn.SetDeadline(time.Now().Add(limit))
	line, err := bufio.NewReader(conn).ReadString('\n')
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, strings.TrimSpace(line), nil
}

// through opens a connection from the traveller to the office and returns the router that it went through.
func (o *office) through(ctx context.Context, limit time.Duration) (string, error) {
	conn, source, err := askSource(ctx, o.hosts["traveller"], o.printer, limit)
	if err != nil {
		return "", err
	}
	conn.Close()
	return o.names[source], nil
}

// awaitThrough waits until new connections go through a router and returns how long that took.
func (o *office) awaitThrough(ctx context.Context, t *testing.T, router string) time.Duration {
	t.Helper()
	began := time.Now()
	eventually(ctx, t, func() error {
		got, err := o.through(ctx, aMoment)
		if err == nil && got != router {
			err = fmt.Errorf("connections go through %s, want %s", got, router)
		}
		return err
	})
	return time.Since(began)
}

// stays checks that every connection goes through a router until done.
func (o *office) stays(ctx context.Context, t *testing.T, router string, done func() bool) {
	t.Helper()
	// A port stays in use for a minute after its connection, so at full speed we would run out of ports.
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for ; !done(); <-pace.C {
		if got, err := o.through(ctx, patience/3); err != nil || got != router {
			t.Fatalf("a connection goes through %q, want %s: %v", got, router, err)
		}
	}
}

// run runs a client command, which must succeed.
func (o *office) run(ctx context.Context, t *testing.T, name string, args ...string) {
	t.Helper()
	if stdout, stderr, code := o.daemons[name].CLI(ctx, args...); code != 0 {
		t.Fatalf("%s: tailscale %v: code %d\n%s%s", name, args, code, stdout, stderr)
	}
}

// routeIDs returns the IDs of all routes by node and prefix, as in "east 10.77.0.0/24".
func (n network) routeIDs(flags ...string) map[string]string {
	n.t.Helper()
	var routes []struct {
		ID, Prefix string
		Node       struct{ GivenName string }
	}
	if err := json.Unmarshal([]byte(n.CLI(append([]string{"routes", "list", "--output", "json"}, flags...)...)), &routes); err != nil {
		n.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, r := range routes {
		ids[r.Node.GivenName+" "+r.Prefix] = r.ID
	}
	return ids
}

func (o *office) online(ctx context.Context, name string) bool { return o.nodes(ctx)[name].Online }

func (o *office) awaitOnline(ctx context.Context, t *testing.T, name string, online bool) {
	t.Helper()
	eventually(ctx, t, func() error {
		if o.online(ctx, name) != online {
			return fmt.Errorf("%s: online is to be %v", name, online)
		}
		return nil
	})
}

// When a router fails, the other one takes over and stays primary when the first comes back.
// TestFigureOtherRouterTakesOver measures how soon.
func TestOtherRouterTakesOver(t *testing.T) {
	ctx := within(t, 2*patience+*flapping)
	o := newOffice(ctx, t)
	if got, err := o.through(ctx, aMoment); err == nil {
		t.Fatalf("a connection goes through %s before anybody approved a route", got)
	}
	o.enableBoth()
	t.Logf("approved to usable: %v", o.awaitThrough(ctx, t, "east"))
	stream, _, err := askSource(ctx, o.hosts["traveller"], o.printer, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	checkEcho(t, stream, someBytes("through the first router"))

	o.Cut(o.hosts["east"])
	o.awaitThrough(ctx, t, "west")
	o.awaitOnline(ctx, t, "east", false)
	o.Reconnect(o.hosts["east"])
	o.restart(t, "east")
	o.stays(ctx, t, "west", func() bool { return o.online(ctx, "east") })

	o.leave(ctx, t, "west", "east")
	o.comeAndGo(ctx, t, "west", "east")
}

// enableBoth approves the routes of both routers.
func (o *office) enableBoth() {
	o.t.Helper()
	ids := o.routeIDs("--prefix", o.prefix.String(), "--disabled")
	for _, router := range []string{"east", "west"} {
		o.CLI("routes", "enable", "--route-id", ids[router+" "+o.prefix.String()])
	}
}

// leave disconnects a router and returns how long the other took to take over.
func (o *office) leave(ctx context.Context, t *testing.T, router, heir string) time.Duration {
	t.Helper()
	began := time.Now()
	o.run(ctx, t, router, "down")
	o.awaitThrough(ctx, t, heir)
	took := time.Since(began)
	t.Logf("left to new connections: %v", took)
	return took
}

// comeAndGo disconnects and reconnects a router, three times or for as long as a flag says, while
// every connection goes through the other.
func (o *office) comeAndGo(ctx context.Context, t *testing.T, router, other string) {
	t.Helper()
	began, rounds := time.Now(), 0
	for ; rounds < 3 || time.Since(began) < *flapping; rounds++ {
		half := time.Now().Add(min(*flapping, flapEvery/2))
		o.restart(t, router)
		o.run(ctx, t, router, "up")
		o.stays(ctx, t, other, func() bool { return o.online(ctx, router) && time.Now().After(half) })
		half = half.Add(min(*flapping, flapEvery/2))
		o.run(ctx, t, router, "down")
		o.stays(ctx, t, other, func() bool { return !o.online(ctx, router) && time.Now().After(half) })
	}
	t.Logf("came and went %d times in %v, and moved nothing", rounds, time.Since(began).Round(time.Second))
}

// restart restarts a client. A client that lost its server retries only with TLS for two minutes after
// each attempt, and this server has no TLS.
func (o *office) restart(t *testing.T, name string) {
	t.Helper()
	if err := o.daemons[name].Restart(); err != nil {
		t.Fatal(err)
	}
}

// startWorld runs a server at an address that the second host has a route to. The address is one
// hop beyond the exit node, because exit nodes do not give access to the networks they are on.
func startWorld(ctx context.Context, t *testing.T, l *lab) (address string) {
	t.Helper()
	world := l.Behind("gateway", netip.MustParsePrefix("203.0.113.0/24"), l.hosts[1])
	for _, cmd := range []*exec.Cmd{
		world.Command(ctx, "ip", "addr", "add", "198.51.100.1/32", "dev", "lo"),
		l.hosts[1].Command(ctx, "ip", "route", "add", "198.51.100.0/24", "via", world.Addr.String()),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	world.Addr = netip.MustParseAddr("198.51.100.1")
	return tellSource(ctx, t, world)
}

// A client reaches the outside world only while it uses an exit node.
func TestTrafficLeavesThroughAnExitNode(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		l := newLab(t)
		l.serve(t, meshtest.Config{})
		world := startWorld(ctx, t, l)
		l.joinBoth(ctx, version)
		run := func(i int, args ...string) {
			t.Helper()
			if stdout, stderr, code := l.daemons[i].CLI(ctx, args...); code != 0 {
				t.Fatalf("tailscale %v: code %d\n%s%s", args, code, stdout, stderr)
			}
		}
		run(1, "set", "--advertise-exit-node")
		eventually(ctx, t, func() error {
			if ids := l.routeIDs("--node", "second"); len(ids) != 2 {
				return fmt.Errorf("routes of the exit node: %v", ids)
			}
			return nil
		})
		if conn, source, err := askSource(ctx, l.hosts[0], world, aMoment); err == nil {
			conn.Close()
			t.Fatalf("the world is reached from %s without an exit node", source)
		}
		l.CLI("routes", "enable", "--route-id", l.routeIDs()["second 0.0.0.0/0"]) // also approves ::/0
		if ids := l.routeIDs("--enabled"); len(ids) != 2 {
			t.Errorf("enabled: %v", ids)
		}
		eventually(ctx, t, func() error { // once the client has received the change
			if _, stderr, code := l.daemons[0].CLI(ctx, "set", "--exit-node=second"); code != 0 {
				return fmt.Errorf("tailscale set: code %d: %s", code, stderr)
			}
			return nil
		})
		eventually(ctx, t, func() error {
			conn, source, err := askSource(ctx, l.hosts[0], world, aMoment)
			if err != nil {
				return err
			}
			conn.Close()
			if source != "203.0.113.2" {
				return fmt.Errorf("the world sees %s", source)
			}
			return nil
		})
		run(0, "set", "--exit-node=")
		eventually(ctx, t, func() error {
			if conn, source, err := askSource(ctx, l.hosts[0], world, aMoment); err == nil {
				conn.Close()
				return fmt.Errorf("the world still sees %s", source)
			}
			return nil
		})
	})
}
