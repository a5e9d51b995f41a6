//go:build !race

package movetest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

const (
	visitor  = "visitor" // an operating system user on the host that accepts SSH sessions
	office   = "10.77.0.0/24"
	officeIP = "10.77.0.2"   // of the router, in the office
	exitIP   = "203.0.113.2" // of the exit node, on its way to the world
)

// policy is the policy of the network. Headscale 0.26 introduced the @ after user names, and 0.23 autogroup:internet. Before 0.26,
// the group would also contain the device with a tag that its member added, so the rules name the member.
func policy(minor int) string {
	text := `{
	"groups":    {"group:staff": ["ann@"]},
	"tagOwners": {"tag:web": ["group:staff"]},
	"acls": [
		{"action": "accept", "src": ["group:staff"], "dst": ["group:staff:*", "tag:web:*", "bob@:*", "` + office + `:*", "autogroup:internet:*"]},
		{"action": "accept", "src": ["tag:web"], "dst": ["group:staff:*"]},
	],
	"ssh": [{"action": "accept", "src": ["group:staff"], "dst": ["tag:web"], "users": ["` + visitor + `"]}],
}`
	if minor < 26 {
		text = strings.NewReplacer("@", "", `"src": ["group:staff"], "dst": ["group:staff:*"`, `"src": ["ann"], "dst": ["ann:*"`, `"group:staff:*"`, `"ann:*"`).Replace(text)
	}
	if minor < 23 {
		text = strings.ReplaceAll(text, "autogroup:internet:*", "*:*")
	}
	return text
}

// device is a client on its own host.
type device struct {
	*clienttest.Daemon
	host *clienttest.Namespace
}

// network is a network of real clients, each on its own host.
type network struct {
	t       *testing.T
	from    int // the minor version of Headscale to which the devices join first
	lab     *clienttest.Lab
	server  *clienttest.Namespace
	proxy   *proxy
	devices map[string]device

	printer, world string   // addresses behind the router and behind the exit node
	stream         net.Conn // from the laptop to the web server
}

func newNetwork(t *testing.T, from int) *network {
	t.Helper()
	n := &network{t: t, from: from, lab: clienttest.NewLab(t), devices: map[string]device{}}
	n.server = n.lab.Add("server")
	n.proxy = startProxy(t, n.server, headscalePort)
	return n
}

// start starts a client on a new host.
func (n *network) start(name, version string) device {
	n.t.Helper()
	host := n.lab.Add(name)
	n.on(host, "echo "+n.server.Addr.String()+" "+serverName+" >>/etc/hosts")
	return device{clienttest.Start(n.t, clienttest.Options{
		Version: version, Namespace: host, Env: []string{"TS_DEBUG_USE_DERP_HTTP=0", "SSL_CERT_FILE=" + n.proxy.authority, "SSL_CERT_DIR=/nonexistent"},
	}), host}
}

// on runs a shell script on a host.
func (n *network) on(host *clienttest.Namespace, script string) {
	n.t.Helper()
	if out, err := host.Command(n.t.Context(), "sh", "-ec", script).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// join starts all devices of the network and joins them with their keys.
func (n *network) join(keys map[string]string) {
	n.t.Helper()
	var all sync.WaitGroup
	for _, d := range []struct {
		name, version string
		flags         []string
	}{
		{"laptop", clienttest.Oldest, []string{"--accept-routes"}},
		{"exit", *middle, []string{"--advertise-exit-node"}},
		{"router", clienttest.Newest, []string{"--advertise-routes=" + office}},
		{"web", clienttest.Newest, []string{"--ssh"}},
		{"ci", *middle, nil},
		{"old", clienttest.Newest, nil},
	} {
		if n.from >= 29 && d.version == clienttest.Oldest {
			d.version = *middle // Headscale 0.29 refuses clients before 1.80
		}
		c := n.start(d.name, d.version)
		n.devices[d.name] = c
		switch d.name {
		case "router":
			n.printer = n.tellSource(n.lab.Behind("printer", netip.MustParsePrefix(office), c.host))
		case "exit":
			n.world = n.startWorld(c.host)
		case "web":
			n.on(c.host, "echo "+visitor+":x:4321:4321::/tmp:/bin/sh >>/etc/passwd; echo "+visitor+":x:4321: >>/etc/group")
		}
		all.Go(func() {
			if err := c.Up(n.t.Context(), "https://"+serverName, keys[d.name], append(d.flags, "--hostname="+d.name, "--accept-dns=false")...); err != nil {
				n.t.Error(err)
			}
		})
	}
	all.Wait()
	if n.t.Failed() {
		n.t.FailNow()
	}
}

// startWorld runs a server that is reachable only through the exit node. It is one hop beyond, because exit nodes do not
// give access to the networks they are on.
func (n *network) startWorld(exit *clienttest.Namespace) (address string) {
	n.t.Helper()
	gateway := n.lab.Behind("gateway", netip.MustParsePrefix("203.0.113.0/24"), exit)
	n.on(gateway, "ip addr add 198.51.100.1/32 dev lo")
	n.on(exit, "ip route add 198.51.100.0/24 via "+gateway.Addr.String())
	gateway.Addr = netip.MustParseAddr("198.51.100.1")
	return n.tellSource(gateway)
}

// tellSource runs a server on a host until the test ends. It sends each connection its source address and then echoes
// what it receives.
func (n *network) tellSource(host *clienttest.Namespace) (address string) {
	n.t.Helper()
	l, err := host.Listen(n.t.Context(), "tcp", host.Addr.String()+":0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
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

// dial connects from the laptop, and returns the source address that the other end sees.
func (n *network) dial(target string) (net.Conn, string, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
	defer cancel()
	conn, err := n.devices["laptop"].host.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, "", err
	}
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err = errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, strings.TrimSpace(line), nil
}

// openStream opens a TCP connection from the laptop to the web server, which stays open.
func (n *network) openStream() {
	n.t.Helper()
	web := n.devices["web"]
	ips, err := web.IPs(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	host := *web.host
	host.Addr = slices.MinFunc(ips, netip.Addr.Compare) // the IPv4 address
	address := n.tellSource(&host)
	eventually(n.t, func() (err error) { n.stream, _, err = n.dial(address); return err })
	n.t.Cleanup(func() { n.stream.Close() })
}

// streamWorks sends data over the open connection and compares what comes back.
func (n *network) streamWorks(when string) {
	n.t.Helper()
	text := strings.Repeat(when+" ", 1000)
	if err := n.stream.SetDeadline(time.Now().Add(patience)); err != nil {
		n.t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(n.stream, text); written <- err }()
	got := make([]byte, len(text))
	_, err := io.ReadFull(n.stream, got)
	if err := errors.Join(err, <-written); err != nil || string(got) != text {
		n.t.Fatalf("the open connection broke %s: %v", when, err)
	}
}

// works checks that traffic flows as the policy says: new connections to the office and to the world, pings and SSH.
func (n *network) works(when string) {
	n.t.Helper()
	for what, c := range map[string]struct{ target, source string }{"the subnet router": {n.printer, officeIP}, "the exit node": {n.world, exitIP}} {
		eventually(n.t, func() error {
			conn, source, err := n.dial(c.target)
			if err != nil {
				return fmt.Errorf("%s, through %s: %w", when, what, err)
			}
			conn.Close()
			if source != c.source {
				return fmt.Errorf("%s, the source is %s instead of %s", when, source, what)
			}
			return nil
		})
	}
	for _, pair := range [][2]string{{"laptop", "web"}, {"web", "laptop"}, {"ci", "exit"}} {
		eventually(n.t, func() error {
			out, text, code := n.devices[pair[0]].CLI(n.t.Context(), "ping", "--c=1", "--timeout=10s", "--until-direct=false", pair[1])
			if code != 0 {
				return fmt.Errorf("%s, %s pings %s: %s%s", when, pair[0], pair[1], out, text)
			}
			return nil
		})
	}
	eventually(n.t, func() error {
		out, text, code := n.devices["laptop"].CLI(n.t.Context(), "ssh", visitor+"@web", "echo I am $(id -un)")
		if code != 0 || !strings.Contains(out, "I am "+visitor) {
			return fmt.Errorf("%s, SSH ends with code %d: %s%s", when, code, out, text)
		}
		return nil
	})
	n.streamWorks(when)
}

// view is what a device shows about the network.
type view struct {
	Status map[string]any // of "tailscale status --json"
	Lines  []string       // of "tailscale status", sorted
	Wire   *wire          // nil if the device has no map, because it expired
}

// connection matches what a line of "tailscale status" says about the current connection to a peer.
var connection = regexp.MustCompile(`(?:active|idle)[;,]? ?|(?:direct|relay) [^,;]*[,;]? ?|tx \d+ rx \d+|last seen [^,;]*|\s+`)

// look returns what a device shows, without what changes by itself or is known to differ.
func (n *network) look(name string) (v view, err error) {
	d := n.devices[name]
	out, text, _ := d.CLI(n.t.Context(), "status", "--json") // fails if the device is logged out
	if err := json.Unmarshal([]byte(out), &v.Status); err != nil {
		return v, fmt.Errorf("%w: %s%s", err, out, text)
	}
	ignore(v.Status)
	if !slices.Contains(staff(), name) {
		hideOffice(v.Status)
	}
	hideExpired(name, v.Status)
	if n.from == 22 && name != "old" {
		forgetExpired(v.Status)
	}
	hideOwnRoutes(v.Status)
	hideExitNode(v.Status)
	if name != "old" {
		if v.Wire, err = n.lookAtWire(name); err != nil {
			return v, err
		}
	}
	out, _, _ = d.CLI(n.t.Context(), "status")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "100.") || strings.HasPrefix(line, "fd7a:") {
			line = strings.Trim(connection.ReplaceAllString(line, " "), " ;,-")
			line = strings.Join(strings.Fields(line), " ")
			if strings.Contains(line, " old ") {
				if n.from == 22 && name != "old" {
					continue // see forgetExpired
				}
				line = strings.TrimSuffix(line, " offline") // see hideExpired
			}
			if strings.Contains(line, " "+name+" ") {
				line = strings.TrimSuffix(line, " offers exit node") // see hideOwnRoutes
			}
			v.Lines = append(v.Lines, line)
		}
	}
	slices.Sort(v.Lines)
	return v, nil
}

// staff returns the devices that may use the routes to the office.
func staff() []string { return []string{"laptop", "exit", "router", "ci"} }

// hideOffice removes the routes to the office from a status. Headscale sends routes only to devices that may use them,
// Fairlead to all that see the router.
func hideOffice(status map[string]any) {
	peers, _ := status["Peer"].(map[string]any)
	for _, p := range peers {
		peer, _ := p.(map[string]any)
		delete(peer, "PrimaryRoutes")
		if allowed, ok := peer["AllowedIPs"].([]any); ok {
			peer["AllowedIPs"] = slices.DeleteFunc(allowed, func(p any) bool { return p == office })
		}
	}
}

// hideOwnRoutes removes from a status which routes of the device itself are approved. Headscale may not tell it before it
// reconnects. The device does not need to know.
func hideOwnRoutes(status map[string]any) {
	self, _ := status["Self"].(map[string]any)
	for _, key := range []string{"AllowedIPs", "PrimaryRoutes", "ExitNodeOption"} {
		delete(self, key)
	}
}

// hideExitNode removes from a status whether the chosen exit node is online. Client 1.74 takes this from the last whole map, so it
// depends on which of both devices has reconnected first. What the status says about the node as a peer is up to date.
func hideExitNode(status map[string]any) {
	exit, _ := status["ExitNodeStatus"].(map[string]any)
	delete(exit, "Online")
}

// hideExpired removes from a status what differs for an expired device. Headscale keeps sending it the whole map, and tells
// the others that it is online, until it disconnects. Its peers may replace the first bytes of its key, see usable.
func hideExpired(viewer string, status map[string]any) {
	peers, _ := status["Peer"].(map[string]any)
	for nodeKey, p := range peers {
		if peer, _ := p.(map[string]any); peer["HostName"] == "old" {
			delete(peer, "Online")
			delete(peer, "PublicKey")
			delete(peers, nodeKey)
			peers[usable(nodeKey)] = peer
			break
		}
	}
	if viewer == "old" {
		delete(status, "Peer")
		delete(status, "User")
		self, _ := status["Self"].(map[string]any)
		delete(self, "Expired")
	}
}

// usable returns the part of the key of an expired device that its peers keep. A client that notices the expiry itself, before the
// server mentions it, replaces the first bytes of the key.
func usable(nodeKey string) string {
	digits := strings.TrimPrefix(nodeKey, "nodekey:")
	return digits[min(len(digits), 16):]
}

// ignored returns the fields of a client's status that do not count, with the reason.
func ignored() map[string]string {
	const (
		path  = "depends on the current connection"
		time  = "changes by itself"
		local = "the client's own state"
	)
	return map[string]string{
		"CurAddr": path, "Addrs": path, "Relay": path, "RxBytes": path, "TxBytes": path, "Active": path, "InEngine": path, "InMagicSock": path, "PeerRelay": path,
		"LastWrite": time, "LastSeen": time, "LastHandshake": time,
		"PeerAPIURL": local, "InNetworkMap": local, "TaildropTarget": local, "NoFileSharingReason": local, "Health": local, "ClientVersion": local,
		"CapMap":       "Headscale lists the capabilities of all devices, Fairlead only those that the client uses",
		"Capabilities": "the same, in the form of older clients",
		"Groups":       "Headscale does not send the groups of people",
	}
}

// ignore removes from a status what does not count, and sorts prefixes.
func ignore(status map[string]any) {
	for key, value := range status {
		if ignored()[key] != "" {
			delete(status, key)
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			ignore(value)
		case []any:
			slices.SortFunc(value, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		case string:
			if at, err := time.Parse(time.RFC3339Nano, value); err == nil && key == "Created" {
				status[key] = at.Truncate(time.Microsecond) // the precision of Fairlead
			}
		}
	}
}

// views returns what all devices show, as soon as each runs and sees this many nodes online, including itself. One is
// logged out.
func (n *network) views() map[string]view {
	n.t.Helper()
	all := map[string]view{}
	for name := range n.devices {
		eventually(n.t, func() (err error) {
			all[name], err = n.look(name)
			want := "Running"
			if name == "old" {
				want = "NeedsLogin"
			}
			if state := all[name].Status["BackendState"]; err == nil && state != want {
				err = fmt.Errorf("%s is %v, want %s", name, state, want)
			}
			return err
		})
	}
	return all
}

// unchanged waits until all devices show the same as before.
func (n *network) unchanged(before map[string]view, when string) {
	n.t.Helper()
	eventually(n.t, func() (all error) {
		for name := range n.devices {
			now, err := n.look(name)
			if diff := gocmp.Diff(before[name], now); err == nil && diff != "" {
				err = fmt.Errorf("%s, %s shows something else (-before +now):\n%s", when, name, diff)
			}
			all = errors.Join(all, err)
		}
		return all
	})
}

// node is a node as the APIs of both servers return it.
type node struct {
	ID              string   `json:"id"`
	MachineKey      string   `json:"machineKey"`
	NodeKey         string   `json:"nodeKey"`
	DiscoKey        string   `json:"discoKey"`
	Name            string   `json:"name"`
	GivenName       string   `json:"givenName"`
	IPAddresses     []string `json:"ipAddresses"`
	RegisterMethod  string   `json:"registerMethod"`
	Tags            []string `json:"tags"`
	ApprovedRoutes  []string `json:"approvedRoutes"`
	AvailableRoutes []string `json:"availableRoutes"`
	SubnetRoutes    []string `json:"subnetRoutes"`
	Online          bool     `json:"online"`

	Expiry    time.Time `json:"expiry"` // Headscale up to 0.28 has the zero time for none
	CreatedAt time.Time `json:"createdAt"`
	User      struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
}

// nodes lists the nodes of the server by name, with an API key of Headscale.
func (n *network) nodes(apiKey string) (map[string]node, error) {
	var body struct{ Nodes, Machines []listedNode }
	if err := n.proxy.api(n.t.Context(), "GET", n.nodesPath(), apiKey, &body); err != nil {
		return nil, err
	}
	var list []node
	for _, v := range append(body.Nodes, body.Machines...) {
		list = append(list, v.asNode())
	}
	if n.from < 26 {
		if err := n.addRoutes(apiKey, list); err != nil {
			return nil, err
		}
	}
	all := map[string]node{}
	for _, v := range list {
		v.CreatedAt, v.Expiry = v.CreatedAt.Truncate(time.Microsecond), v.Expiry.Truncate(time.Microsecond) // the precision of Fairlead
		for _, routes := range [][]string{v.ApprovedRoutes, v.AvailableRoutes, v.SubnetRoutes} {
			slices.Sort(routes)
		}
		all[cmp.Or(v.GivenName, v.Name)] = v
	}
	return all, nil
}

// listed waits until the server lists these nodes.
func (n *network) listed(apiKey string, want map[string]node, when string) {
	n.t.Helper()
	eventually(n.t, func() error {
		got, err := n.nodes(apiKey)
		if diff := gocmp.Diff(want, got); err == nil && diff != "" {
			err = fmt.Errorf("%s, the API lists other nodes (-before +now):\n%s", when, diff)
		}
		return err
	})
}

// keysWork checks that a key that was used up is refused, and that another one is accepted. The device that joins with it
// is deleted again.
func (n *network) keysWork(apiKey, used, good, when string) {
	n.t.Helper()
	stranger := n.start("stranger", clienttest.Newest) // another device than the guest, to which the refusal might come late
	if _, text, code := stranger.CLI(n.t.Context(), "up", "--login-server=https://"+serverName, "--auth-key="+used, "--timeout=5s", "--hostname=stranger", "--accept-dns=false"); code == 0 {
		n.t.Errorf("%s, a key that was used up is accepted: %s", when, text)
	}
	if err := stranger.Stop(); err != nil {
		n.t.Fatal(err)
	}
	guest := n.start("guest", clienttest.Newest)
	if err := guest.Up(n.t.Context(), "https://"+serverName, good, "--hostname=guest", "--accept-dns=false"); err != nil {
		n.t.Fatalf("%s, a key that was not used up is refused: %v", when, err)
	}
	all, err := n.nodes(apiKey)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := guest.Stop(); err != nil {
		n.t.Fatal(err)
	}
	if err := n.proxy.api(n.t.Context(), "DELETE", n.nodesPath()+"/"+all["guest"].ID, apiKey, &struct{}{}); err != nil {
		n.t.Fatalf("%s, with the old API key: %v", when, err)
	}
}
