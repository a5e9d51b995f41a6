package main_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"tailscale.com/derp"
	"tailscale.com/derp/derphttp"
	"tailscale.com/net/netmon"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

var (
	derper       = flag.String("derper", "", "stock relay with which to compare ours (make relay-figures)")
	relayClients = flag.Int("relay-clients", 5000, "clients of each relay, with -derper")
)

// measured is a relay process that is compared with another.
type measured struct {
	name string
	pid  int
	port int
}

// client connects to a relay over TLS, as Tailscale clients do.
func (m *measured) client(ctx context.Context, k key.NodePrivate) (*derphttp.Client, error) {
	region := &tailcfg.DERPRegion{RegionID: 1, Nodes: []*tailcfg.DERPNode{{
		Name: "1a", RegionID: 1, HostName: "127.0.0.1", IPv4: "127.0.0.1", IPv6: "none", DERPPort: m.port, InsecureForTests: true,
	}}}
	c := derphttp.NewRegionClient(k, logger.Discard, netmon.NewStatic(), func() *tailcfg.DERPRegion { return region })
	if err := c.Connect(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	if msg, err := c.Recv(); err != nil {
		_ = c.Close()
		return nil, err
	} else if _, ok := msg.(derp.ServerInfoMessage); !ok {
		_ = c.Close()
		return nil, fmt.Errorf("the first message is a %T", msg)
	}
	return c, nil
}

// memory returns the resident memory of a process in bytes.
func (m *measured) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// throughput returns the Mbit/s that arrive at one of two clients. A relay drops packets if its queue is full, so the
// sender waits for the receiver, as TCP would.
func (m *measured) throughput(t *testing.T, sender, receiver key.NodePrivate) float64 {
	t.Helper()
	const size, during, most = 1400, 2 * time.Second, 30
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	from, err := m.client(ctx, sender)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := m.client(ctx, receiver)
	if err != nil {
		t.Fatal(err)
	}
	received, underway := 0, make(chan struct{}, most)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			msg, err := to.Recv()
			if err != nil {
				return // closed below
			}
			if p, ok := msg.(derp.ReceivedPacket); ok {
				received += len(p.Data)
				<-underway
			}
		}
	})
	packet, began := make([]byte, size), time.Now()
	for time.Since(began) < during {
		underway <- struct{}{}
		if err := from.Send(receiver.Public(), packet); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	_ = to.Close()
	wg.Wait()
	return float64(received) * 8 / 1e6 / took.Seconds()
}

// startMeasured starts our relay, which knows the nodes from its state, and the stock one, which admits everyone.
func startMeasured(t *testing.T, nodes []key.NodePrivate) (ours, stock *measured) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := newCertificate(t, dir)
	for from, to := range map[string]string{certFile: "127.0.0.1.crt", keyFile: "127.0.0.1.key"} { // the names that derper expects
		if err := os.Link(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	var known struct {
		Keys []key.NodePublic  `json:"keys"`
		Mesh map[string]string `json:"mesh"`
	}
	for _, k := range nodes {
		known.Keys = append(known.Keys, k.Public())
	}
	known.Mesh = map[string]string{"key": strings.Repeat("ab", 32)}
	text, err := json.Marshal(known)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "nodes.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	port := func() (string, int) {
		text := porttest.Port(t)
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return "127.0.0.1:" + text, n
	}
	addr, number := port()
	own := start(t, settings{}, nil, "relay", "--join", "flr_x_y", "--server", "http://"+porttest.Addr(t), "--url", "https://"+addr, "--listen", addr,
		"--stun-listen", "", "--state-dir", dir, "--tls-cert", certFile, "--tls-key", keyFile)
	ours = &measured{"fairlead relay", own.Process.Pid, number}

	addr, number = port()
	other := exec.CommandContext(context.Background(), *derper, "-a", addr, "-certmode", "manual", "-certdir", dir, "-hostname", "127.0.0.1",
		"-http-port", "-1", "-stun=false", "-c", filepath.Join(dir, "derper.json"))
	log := &transcript{}
	other.Stdout, other.Stderr, other.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
		if t.Failed() {
			t.Logf("the log of derper ends with:\n%s", log.tail(shownLines))
		}
	})
	stock = &measured{"derper", other.Process.Pid, number}
	for _, m := range []*measured{ours, stock} {
		eventually(t, func() error {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(m.port))
			if err == nil {
				_ = conn.Close()
			}
			return err
		})
	}
	return ours, stock
}

// TestRelayIsAsGoodAsTheStockOne compares the throughput and the memory of our relay with those of derper. It runs for some
// minutes, and only with -derper.
func TestRelayIsAsGoodAsTheStockOne(t *testing.T) {
	if *derper == "" {
		t.Skip("run make relay-figures")
	}
	const rounds, share = 9, 0.9
	nodes := make([]key.NodePrivate, *relayClients+2)
	for i := range nodes {
		nodes[i] = key.NewNode()
	}
	ours, stock := startMeasured(t, nodes)
	sender, receiver := nodes[len(nodes)-2], nodes[len(nodes)-1]
	stranger := key.NewNode()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c, err := ours.client(ctx, stranger); err == nil {
		_ = c.Close()
		t.Fatal("our relay does not verify clients, which would make the comparison pointless")
	}
	for _, m := range []*measured{ours, stock} {
		m.throughput(t, sender, receiver) // warms up
	}
	var own, other, ratios []float64
	for i := range rounds {
		pair := []*measured{ours, stock}
		if i%2 == 1 { // neither always goes first
			slices.Reverse(pair)
		}
		rates := map[*measured]float64{}
		for _, m := range pair {
			rates[m] = m.throughput(t, sender, receiver)
		}
		own, other, ratios = append(own, rates[ours]), append(other, rates[stock]), append(ratios, rates[ours]/rates[stock])
	}
	for _, list := range [][]float64{own, other, ratios} {
		slices.Sort(list)
	}
	t.Logf("throughput of one connection over TLS, median of %d rounds: ours %.0f Mbit/s, derper %.0f Mbit/s, ratio %.2f (from %.2f to %.2f)",
		rounds, own[rounds/2], other[rounds/2], ratios[rounds/2], ratios[0], ratios[rounds-1])
	if ratios[rounds/2] < share {
		t.Errorf("our relay has only %.0f %% of derper's throughput", 100*ratios[rounds/2])
	}
	compareMemory(t, ours, stock, nodes[:*relayClients])
}

// compareMemory connects all nodes to both relays, and compares how much memory each relay needs for them.
func compareMemory(t *testing.T, ours, stock *measured, nodes []key.NodePrivate) {
	t.Helper()
	const (
		settle = 150 * time.Second // the Go runtime collects garbage at least every two minutes
		most   = 1.25
	)
	grown := map[*measured]float64{}
	before := map[*measured]int64{}
	for _, m := range []*measured{ours, stock} {
		before[m] = m.memory(t)
		var g errgroup.Group
		g.SetLimit(50)
		for _, k := range nodes {
			g.Go(func() error {
				var c *derphttp.Client
				var err error
				for range 5 { // a relay may refuse a connection while many are being opened
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					c, err = m.client(ctx, k)
					cancel()
					if err == nil {
						break
					}
					time.Sleep(rand.N(time.Second)) //nolint:forbidigo // spreads the next attempts
				}
				if err != nil {
					return err
				}
				go func() { // ends when the test closes the client
					for {
						if _, err := c.Recv(); err != nil {
							return
						}
					}
				}()
				t.Cleanup(func() { _ = c.Close() })
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		t.Logf("%s: %d clients, %.0f MiB at once", m.name, len(nodes), float64(m.memory(t))/(1<<20))
	}
	time.Sleep(settle) //nolint:forbidigo // until the memory of the handshakes is released
	for _, m := range []*measured{ours, stock} {
		now := m.memory(t)
		grown[m] = float64(now-before[m]) / float64(len(nodes))
		t.Logf("%s with %d connected clients: %.0f MiB, %.0f MiB without, %.1f KiB per client", m.name, len(nodes), float64(now)/(1<<20), float64(before[m])/(1<<20), grown[m]/(1<<10))
	}
	if ratio := grown[ours] / grown[stock]; ratio > most {
		t.Errorf("our relay needs %.2f times the memory of derper for each client", ratio)
	}
}
