//go:build !race

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

const (
	onePort   = 7001
	otherPort = 7002
	// silence is how long a response must be missing for an attempt to count as refused. A response
	// that does come takes a hundredth of that.
	silence = 300 * time.Millisecond

	nobodyMay   = `{"acls": []}`
	everyoneMay = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}`
)

// town is a network of two users: alice owns the laptop and the phone, bob the desktop, and db is
// tagged. Each is a separate host with a network device.
type town struct {
	network
	lab     *clienttest.Lab
	hosts   map[string]*clienttest.Namespace
	daemons map[string]*clienttest.Daemon
	addrs   map[string][]netip.Addr
}

// newTown creates a lab with a running server that nobody has joined.
func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{
		lab: clienttest.NewLab(t), hosts: map[string]*clienttest.Namespace{},
		daemons: map[string]*clienttest.Daemon{}, addrs: map[string][]netip.Addr{},
	}
	w.network = startNetwork(t, meshtest.Config{Namespace: w.lab.Add("server")})
	w.CLI("users", "create", "bob")
	return w
}

// startTown joins all hosts. The destinations of rules run this client version, the others the newest.
func startTown(ctx context.Context, t *testing.T, version string) *town {
	t.Helper()
	w := newTown(t)
	w.joinAll(ctx, clienttest.Options{}, map[string]string{"laptop": w.key(), "desktop": w.PreAuthKey("bob")})
	w.joinAll(ctx, clienttest.Options{Version: version}, map[string]string{"phone": w.key(), "db": w.tagKey()})
	return w
}

// tagKey creates a pre-auth key for db.
func (w *town) tagKey() string {
	w.t.Helper()
	return w.CLI("preauthkeys", "create", "--tags", "tag:db")
}

// joinAll joins the hosts, each with its key.
func (w *town) joinAll(ctx context.Context, o clienttest.Options, keys map[string]string, args ...string) {
	w.t.Helper()
	for name := range keys {
		o.Namespace = w.lab.Add(name)
		w.hosts[name], w.daemons[name] = o.Namespace, clienttest.Start(w.t, o)
	}
	var wg sync.WaitGroup
	for name, key := range keys {
		wg.Go(func() {
			if err := w.daemons[name].Up(ctx, w.URL, key, append(args, "--hostname="+name)...); err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	for name := range keys {
		ips, err := w.daemons[name].IPs(ctx)
		if err != nil || len(ips) != 2 {
			w.t.Fatalf("%s has the addresses %v, %v", name, ips, err)
		}
		w.addrs[name] = ips
	}
}

// listen makes the hosts accept connections on both ports, over IPv4 and IPv6.
func (w *town) listen(ctx context.Context) {
	w.t.Helper()
	for name, host := range w.hosts {
		for _, addr := range w.addrs[name] {
			for _, port := range []uint16{onePort, otherPort} {
				var l net.Listener
				eventually(ctx, w.t, func() (err error) { // the client says that it is up before its interface has the address
					l, err = host.Listen(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
					return err
				})
				serveEcho(w.t, l)
			}
		}
	}
}

// save saves a policy and returns the time of the response.
func (n network) save(ctx context.Context, text string) time.Time {
	n.t.Helper()
	body, err := json.Marshal(map[string]string{"policy": text})
	if err == nil {
		_, err = n.API(ctx, http.MethodPut, "/api/v1/policy", string(body))
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return time.Now()
}

// connect opens a connection and closes it.
func (w *town) connect(ctx context.Context, from string, to netip.Addr, port uint16, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := w.hosts[from].DialContext(ctx, "tcp", netip.AddrPortFrom(to, port).String())
	if err == nil {
		err = conn.Close()
	}
	return err
}

// echo sends an ICMP echo request and waits for the reply.
func (w *town) echo(ctx context.Context, from string, to netip.Addr, limit time.Duration) error {
	network, any, protocol := "ip4:icmp", "0.0.0.0", 1
	var request, reply icmp.Type = ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply
	if to.Is6() {
		network, any, protocol = "ip6:ipv6-icmp", "::", 58
		request, reply = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply
	}
	conn, err := w.hosts[from].ListenPacket(ctx, network, any)
	if err != nil {
		return err
	}
	defer conn.Close()
	packet, err := (&icmp.Message{Type: request, Body: &icmp.Echo{ID: os.Getpid() & 0xffff, Seq: int(time.Now().UnixNano() & 0xffff)}}).Marshal(nil)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := conn.WriteTo(packet, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return err
	}
	got := make([]byte, 1500)
	for {
		size, sender, err := conn.ReadFrom(got)
		if err != nil {
			return err
		}
		m, err := icmp.ParseMessage(protocol, got[:size])
		if err == nil && m.Type == reply && sender.String() == to.String() {
			return nil
		}
	}
}

// access states whether one host may reach another: connect to a port, or send an ICMP echo if the
// port is 0.
type access struct {
	from, to string
	port     uint16
	allowed  bool
}

func (a access) String() string {
	what := "port " + strconv.Itoa(int(a.port))
	if a.port == 0 {
		what = "ICMP"
	}
	return fmt.Sprintf("%s to %s by %s", a.from, a.to, what)
}

// try makes one attempt over one address family.
func (w *town) try(ctx context.Context, a access, to netip.Addr, limit time.Duration) error {
	if a.port == 0 {
		return w.echo(ctx, a.from, to, limit)
	}
	return w.connect(ctx, a.from, to, a.port, limit)
}

// check waits until every access is as stated, over IPv4 and IPv6.
func (w *town) check(ctx context.Context, t *testing.T, list ...access) {
	t.Helper()
	var wg sync.WaitGroup
	for _, a := range list {
		for _, to := range w.addrs[a.to] {
			wg.Go(func() {
				err := w.becomes(ctx, a, to)
				if err != nil {
					t.Errorf("%v (%v): allowed is to be %v: %v", a, to, a.allowed, err)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// becomes retries until an attempt has the stated result.
func (w *town) becomes(ctx context.Context, a access, to netip.Addr) error {
	for {
		err := w.try(ctx, a, to, silence)
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), err)
		case errors.Is(err, syscall.ECONNREFUSED):
			return fmt.Errorf("nobody listens: %w", err)
		case (err == nil) == a.allowed:
			return nil
		}
	}
}

// sees waits until a host sees exactly these other hosts.
func (w *town) sees(ctx context.Context, t *testing.T, name string, others ...string) {
	t.Helper()
	slices.Sort(others)
	await(ctx, t, w.daemons[name], func(s *ipnstate.Status) bool {
		var got []string
		for _, p := range s.Peer {
			host, _, _ := strings.Cut(p.DNSName, ".")
			got = append(got, host)
		}
		slices.Sort(got)
		return slices.Equal(got, others)
	})
}

func TestPolicyDecidesWhoReachesWhom(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		w := startTown(ctx, t, version)
		w.listen(ctx)
		t.Run("everyone without a policy", func(t *testing.T) {
			w.seeEachOther(ctx, t)
			w.checkAll(ctx, t, true)
		})
		t.Run("allowed ports alone", w.testAllowedPorts)
		t.Run("devices of the same person", w.testSelf)
		t.Run("members of a group", w.testMembers)
		t.Run("nobody and then everyone", w.testNobody)
		t.Run("connections that are open", w.testOpenConnections)
	})
}

// testAllowedPorts checks that ports that are not allowed do not respond, and that hosts that no
// rule connects do not see each other.
func (w *town) testAllowedPorts(t *testing.T) {
	ctx := within(t, patience)
	w.save(ctx, `{
		"groups":    {"group:ops": ["alice@"]},
		"tagOwners": {"tag:db": ["group:ops"]},
		"acls": [
			{"action": "accept", "src": ["group:ops"], "dst": ["tag:db:7001"]},
			{"action": "accept", "src": ["tag:db"], "proto": "udp", "dst": ["bob:53"]},
		],
	}`)
	w.sees(ctx, t, "laptop", "db")
	w.sees(ctx, t, "phone", "db")
	w.sees(ctx, t, "desktop", "db")
	w.sees(ctx, t, "db", "laptop", "phone", "desktop")
	w.check(ctx, t,
		access{"laptop", "db", onePort, true}, access{"phone", "db", onePort, true},
		access{"laptop", "db", otherPort, false}, access{"phone", "db", otherPort, false},
		access{"laptop", "db", 0, true}, // allowing any port allows an echo
		access{"db", "laptop", onePort, false}, access{"db", "laptop", 0, false},
		access{"desktop", "db", onePort, false}, access{"desktop", "db", 0, false},
		access{"db", "desktop", onePort, false}, access{"db", "desktop", 0, true},
		access{"laptop", "phone", onePort, false}, access{"laptop", "desktop", 0, false},
	)
}

func (w *town) testSelf(t *testing.T) {
	ctx := within(t, patience)
	w.save(ctx, `{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:7001"]}]}`)
	w.sees(ctx, t, "laptop", "phone")
	w.sees(ctx, t, "phone", "laptop")
	w.sees(ctx, t, "desktop")
	w.sees(ctx, t, "db")
	w.check(ctx, t,
		access{"laptop", "phone", onePort, true}, access{"laptop", "phone", 0, true},
		access{"laptop", "phone", otherPort, false},
		access{"laptop", "desktop", onePort, false}, access{"desktop", "phone", onePort, false}, access{"desktop", "laptop", 0, false},
		access{"laptop", "db", onePort, false}, access{"db", "phone", onePort, false},
	)
	w.check(ctx, t, access{"phone", "laptop", onePort, true})
}

// testMembers checks that a host learns who joins and leaves a group. It sees their devices before and after.
func (w *town) testMembers(t *testing.T) {
	ctx := within(t, patience)
	var group struct{ ID string }
	var found struct{ Resources []struct{ ID string } }
	w.scim(ctx, t, http.MethodPost, "Groups", `{"displayName": "dev"}`, &group)
	w.scim(ctx, t, http.MethodGet, "Users?filter=userName+eq+%22bob%22", "", &found)
	if len(found.Resources) != 1 {
		t.Fatalf("found bob %d times", len(found.Resources))
	}
	bob := found.Resources[0]
	w.scim(ctx, t, http.MethodPut, "Users/"+bob.ID, `{"userName": "bob", "active": true}`, nil)
	w.save(ctx, `{
		"tagOwners": {"tag:db": []},
		"acls": [
			{"action": "accept", "src": ["*"], "dst": ["tag:db:7001"]},
			{"action": "accept", "src": ["group:dev"], "dst": ["tag:db:7002"]},
		],
	}`)
	w.check(ctx, t, access{"desktop", "db", onePort, true}, access{"desktop", "db", otherPort, false})
	w.scim(ctx, t, http.MethodPatch, "Groups/"+group.ID, `{"Operations": [{"op": "add", "path": "members", "value": [{"value": "`+bob.ID+`"}]}]}`, nil)
	w.check(ctx, t, access{"desktop", "db", otherPort, true}, access{"laptop", "db", otherPort, false})
	w.scim(ctx, t, http.MethodPatch, "Groups/"+group.ID, `{"Operations": [{"op": "remove", "path": "members[value eq \"`+bob.ID+`\"]"}]}`, nil)
	w.check(ctx, t, access{"desktop", "db", otherPort, false})
}

func (w *town) testNobody(t *testing.T) {
	ctx := within(t, patience)
	w.save(ctx, everyoneMay)
	w.seeEachOther(ctx, t)
	w.checkAll(ctx, t, true)
	w.save(ctx, nobodyMay)
	for name := range w.hosts {
		w.sees(ctx, t, name)
	}
	w.checkAll(ctx, t, false)
	saved := w.save(ctx, everyoneMay)
	w.seeEachOther(ctx, t)
	seen := time.Since(saved)
	w.checkAll(ctx, t, true)
	t.Logf("all see each other again after %v, and reach each other after %v", seen.Round(time.Millisecond), time.Since(saved).Round(time.Millisecond))
}

// testOpenConnections checks that a connection outlives the rule that allowed it, until the hosts
// no longer see each other.
func (w *town) testOpenConnections(t *testing.T) {
	ctx := within(t, patience)
	w.save(ctx, everyoneMay)
	w.check(ctx, t, access{"laptop", "db", onePort, true})
	conn, err := w.hosts["laptop"].DialContext(ctx, "tcp", netip.AddrPortFrom(w.addrs["db"][0], onePort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.save(ctx, `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:7002"]}]}`)
	w.check(ctx, t, access{"laptop", "db", onePort, false})
	checkEcho(t, conn, "after its rule")
	w.save(ctx, nobodyMay)
	w.sees(ctx, t, "laptop")
	w.sees(ctx, t, "db")
	if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("x")) // the read reports a failure
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the hosts do not know each other, and talk")
	}
	w.save(ctx, everyoneMay)
	w.seeEachOther(ctx, t)
	w.checkAll(ctx, t, true)
}

// checkAll checks the access between every pair of hosts. It checks one direction first, because
// clients that contact each other at the same moment may have to start over after five seconds.
func (w *town) checkAll(ctx context.Context, t *testing.T, allowed bool) {
	t.Helper()
	names := slices.Sorted(maps.Keys(w.hosts))
	var there, back []access
	for i, one := range names {
		for _, other := range names[:i] {
			there = append(there, access{one, other, onePort, allowed})
			back = append(back, access{other, one, onePort, allowed})
		}
	}
	w.check(ctx, t, there...)
	w.check(ctx, t, back...)
}

// seeEachOther waits until every host sees all others.
func (w *town) seeEachOther(ctx context.Context, t *testing.T) {
	t.Helper()
	for name := range w.hosts {
		others := slices.DeleteFunc(slices.Collect(maps.Keys(w.hosts)), func(other string) bool { return other == name })
		w.sees(ctx, t, name, others...)
	}
}

// trial is a server with two clients. One connects to the other for as long as the policy allows it.
type trial struct {
	network
	viewer *clienttest.Daemon
	target string
}

func startTrial(ctx context.Context, t *testing.T) *trial {
	t.Helper()
	n, _, viewer := startPair(ctx, t, clienttest.Newest)
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, here)
	return &trial{n, viewer, fmt.Sprintf("subject.%s:%d", baseDomain, here.Addr().(*net.TCPAddr).Port)}
}

// connects returns an error if a connection cannot be opened or carries no data.
func (n *trial) connects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*silence)
	defer cancel()
	conn, err := n.viewer.Dial(ctx, n.target)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * silence)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func (n *trial) awaitTraffic(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, func() error { return n.connects(ctx) })
}

func (n *trial) awaitSilence(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, func() error {
		if n.connects(ctx) == nil {
			return errors.New("there is traffic still")
		}
		return nil
	})
}

// cut saves a policy that denies all access, for ten seconds unless it is confirmed. It returns the
// time of saving.
func (n *trial) cut(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.hujson")
	if err := os.WriteFile(file, []byte(nobodyMay), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.CLI("policy", "set", file, "--force", "--confirm-within", shortestTrial.String())
	n.awaitSilence(ctx, t)
	return began
}

// shortestTrial is the shortest confirmation period of a policy.
const shortestTrial = 10 * time.Second

func TestPolicyThatNobodyConfirmsGivesWay(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startTrial(ctx, t)
	for _, restarts := range []bool{false, true} {
		n.save(ctx, everyoneMay)
		n.awaitTraffic(ctx, t)
		began := n.cut(ctx, t)
		if restarts {
			n.Kill()
			n.Resume()
		}
		n.awaitTraffic(ctx, t)
		after := time.Since(began)
		t.Logf("traffic is back after %v; restarted: %v", after.Round(time.Millisecond), restarts)
		if after < shortestTrial {
			t.Errorf("the policy was reverted after %v, too early", after)
		}
	}
}

func TestPolicyThatIsConfirmedStays(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	n := startTrial(ctx, t)
	began := n.cut(ctx, t)
	n.Kill()
	n.Resume()
	n.CLI("policy", "confirm")
	for time.Since(began) < shortestTrial+2*time.Second {
		if n.connects(ctx) == nil {
			t.Fatalf("there is traffic again after %v", time.Since(began))
		}
	}
	n.save(ctx, everyoneMay)
	n.awaitTraffic(ctx, t)
}
