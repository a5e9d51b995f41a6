package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/net/netmon"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

var away = flag.Duration("away", 0, "how long the server is away while relays must admit the nodes they know (default: a moment)")

// relayRun is a relay process and how to start it again.
type relayRun struct {
	*process
	addr  string
	state string // directory
	args  []string
}

// startRelay creates a relay of the region ams, and starts it.
func startRelay(t *testing.T, s settings, name string) *relayRun {
	t.Helper()
	join := strings.TrimSpace(mustCommand(t, s, "relays", "create", name, "--region", "ams"))
	r := &relayRun{addr: porttest.Addr(t), state: filepath.Join(t.TempDir(), "state")}
	r.args = []string{
		"relay", "--join", join, "--server", s["server_url"], "--url", "http://" + r.addr, "--listen", r.addr, "--stun-listen", "",
		"--state-dir", r.state,
	}
	r.process = start(t, s, nil, r.args...)
	return r
}

// relayClient returns a client of a relay, the one that Tailscale clients use, or an error if the relay rejects it.
func relayClient(t *testing.T, addr string, k key.NodePrivate) (*derphttp.Client, error) {
	t.Helper()
	c, err := derphttp.NewClient(k, "http://"+addr+"/derp", logger.Discard, netmon.NewStatic())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	// A relay closes a rejected connection only after the client believes that it is connected.
	m, err := c.Recv()
	if err != nil {
		return nil, err
	}
	if _, ok := m.(derp.ServerInfoMessage); !ok {
		t.Fatalf("the first message is a %T", m)
	}
	return c, nil
}

// admitted waits until a relay serves a client.
func admitted(t *testing.T, r *relayRun, k key.NodePrivate) (c *derphttp.Client) {
	t.Helper()
	eventually(t, func() (err error) {
		c, err = relayClient(t, r.addr, k)
		return err
	})
	return c
}

// newNode adds a node and returns its key and its ID.
func newNode(t *testing.T, p *process, name string) (key.NodePrivate, string) {
	t.Helper()
	node, machine := key.NewNode(), key.NewMachine()
	auth := strings.TrimSpace(mustCommand(t, p.settings, "preauthkeys", "create", "--user", "alice"))
	out := p.client("").must(t, 200, "POST", "/api/v1/machine", fmt.Sprintf(`{"preAuthKey":%q,"machineKey":%q,"nodeKey":%q,"hostname":%q}`,
		auth, machine.Public(), node.Public(), name))
	var made struct{ Node struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Node.ID == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return node, made.Node.ID
}

// exchange sends a packet from one client to another.
func exchange(t *testing.T, from, to *derphttp.Client, sender, receiver key.NodePrivate) {
	t.Helper()
	received := make(chan derp.ReceivedPacket, 100)
	go func() {
		for {
			m, err := to.Recv()
			if err != nil {
				return
			}
			if p, ok := m.(derp.ReceivedPacket); ok {
				p.Data = bytes.Clone(p.Data) // valid only until the next Recv
				received <- p
			}
		}
	}()
	eventually(t, func() error { // packets are lost until the relays know of each other's clients
		if err := from.Send(receiver.Public(), []byte("hello")); err != nil {
			return err
		}
		select {
		case p := <-received:
			if p.Source != sender.Public() || string(p.Data) != "hello" {
				t.Fatalf("received %q from %v", p.Data, p.Source)
			}
			return nil
		case <-time.After(100 * time.Millisecond):
			return errors.New("no packet arrived")
		}
	})
}

// openTogether checks that a relay does not close a connection because others from the same address are being opened, too.
func openTogether(t *testing.T, addr string) {
	t.Helper()
	var all []net.Conn
	for range 20 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for i, c := range all {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: relay\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("connection %d of %d: %q, %v", i, len(all), line, err)
		}
	}
}

// admittedFor checks for some time that relays admit nodes, and nobody else.
func admittedFor(t *testing.T, d time.Duration, relays []*relayRun, nodes []key.NodePrivate) {
	t.Helper()
	const every = 5 * time.Second
	checks := 0
	for began := time.Now(); time.Since(began) < d; time.Sleep(every) { //nolint:forbidigo // how often to check, not an event to wait for
		for _, r := range relays {
			for _, k := range nodes {
				c, err := relayClient(t, r.addr, k)
				if err != nil {
					t.Fatalf("after %v, a relay does not admit a node it knows: %v", time.Since(began), err)
				}
				_ = c.Close()
				checks++
			}
			if c, err := relayClient(t, r.addr, key.NewNode()); err == nil {
				_ = c.Close()
				t.Fatalf("after %v, a relay admits a stranger", time.Since(began))
			}
		}
	}
	if d > 0 {
		t.Logf("without the server for %v: %d connections of known nodes admitted, and no stranger", d, checks)
	}
}

func TestRelaysOfARegionServeTheNodesOfTheServerAlsoWhileItIsAway(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s["listen_addr"] = porttest.Addr(t)
	s["server_url"] = "http://" + s["listen_addr"]
	server := serve(t, s)
	mustCommand(t, s, "users", "create", "alice")
	one, two := startRelay(t, s, "ams-1"), startRelay(t, s, "ams-2")
	eventually(t, func() error {
		if list := mustCommand(t, s, "relays", "list"); strings.Count(list, "active") != 2 {
			return errors.New(list)
		}
		return nil
	})
	openTogether(t, one.addr)
	// Nodes join after the relays, and use different ones.
	alpha, alphaID := newNode(t, server, "alpha")
	beta, _ := newNode(t, server, "beta")
	a, b := admitted(t, one, alpha), admitted(t, two, beta)
	exchange(t, a, b, alpha, beta)
	stranger := key.NewNode()
	if _, err := relayClient(t, one.addr, stranger); err == nil {
		t.Fatal("a stranger is admitted")
	}
	eventually(t, func() error {
		text, err := os.ReadFile(filepath.Join(one.state, "nodes.json"))
		if err == nil && !strings.Contains(string(text), beta.Public().String()) {
			err = errors.New("the relay has not stored its nodes yet")
		}
		return err
	})
	server.kill(t)
	// Without the server, a relay that restarts knows the nodes, and still forwards to the other.
	one.kill(t)
	one.process = start(t, s, nil, one.args...)
	a = admitted(t, one, alpha)
	if _, err := relayClient(t, one.addr, stranger); err == nil {
		t.Fatal("a stranger is admitted while the server is away")
	}
	exchange(t, b, a, beta, alpha)
	admittedFor(t, *away, []*relayRun{one, two}, []key.NodePrivate{alpha, beta})
	if *away > 0 { // their connections have been closed by newer ones of the same nodes
		a, b = admitted(t, one, alpha), admitted(t, two, beta)
		exchange(t, a, b, alpha, beta)
	}

	server = serve(t, s)
	mustCommand(t, s, "nodes", "delete", alphaID, "--force")
	eventually(t, func() error { // it is disconnected, and not admitted again
		if _, err := relayClient(t, one.addr, alpha); err == nil {
			return errors.New("a deleted node is admitted")
		}
		return nil
	})
	// A relay that is stopped leaves the map; one that is deleted stops.
	two.stop(t)
	says(t, mustCommand(t, s, "relays", "show", "ams-2"), "waiting")
	mustCommand(t, s, "relays", "delete", "ams-1", "--force")
	if status := one.status(t, patience); status != 1 {
		t.Fatalf("a deleted relay ended with status %d", status)
	}
	says(t, one.log.String(), "the relay was deleted")
	again := start(t, s, nil, one.args...)
	if status := again.status(t, patience); status != 1 {
		t.Fatalf("a deleted relay started: status %d", status)
	}
	server.stop(t)
}

func TestRelayReadsItsKeyFromAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relay.key")
	for _, c := range []struct{ text, says string }{
		{"flr_a_b\n", "--server"}, // the key is accepted, so the next thing is missing
		{"flk_a_b\n", "flr_"},
		{"", "the key is missing"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := command(t, settings{"relay_key_file": path}, "relay")
		if r.status == 0 || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%q: status %d: %s", c.text, r.status, r.stderr)
		}
	}
	if r := command(t, settings{"relay_key_file": path + ".none"}, "relay"); r.status == 0 || !strings.Contains(r.stderr, "FAIRLEAD_RELAY_KEY_FILE") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}

func TestRelayCommandSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, says string }{
		{"", "fairlead relays create"},
		{"--join flk_x", "flr_"},
		{"--join flr_x_y", "--server"},
		{"--join flr_x_y --server http://127.0.0.1:1", "--url"},
		{"--join flr_x_y --server http://127.0.0.1:1 --url https://a --tls-cert x", "--tls-key"},
		{"--join flr_x_y --server http://127.0.0.1:1 --url https://a --ipv4 x", "not an IP address"},
	} {
		r := command(t, settings{}, append([]string{"relay"}, strings.Fields(c.args)...)...)
		if r.status == 0 || !strings.Contains(r.stderr, c.says) {
			t.Error(fmt.Errorf("fairlead relay %s: status %d: %s", c.args, r.status, r.stderr))
		}
	}
}
