//go:build !race

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stunserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

var bareRelay = flag.String("bare-relay", "", "be nothing but a relay, at this address; the tests start it so")

// serveBareRelay runs a minimal relay on the package that our relay uses, in a process of its own like ours.
func serveBareRelay(addr string) error {
	mux := http.NewServeMux()
	mux.Handle("/derp", derpserver.Handler(derpserver.New(key.NewNode(), logger.Discard)))
	mux.HandleFunc("/derp/probe", derpserver.ProbeHandler)
	mux.HandleFunc("/derp/latency-check", derpserver.ProbeHandler)
	stun := stunserver.New(context.Background())
	if err := stun.Listen(addr); err != nil {
		return err
	}
	go func() { _ = stun.Serve() }()
	return (&http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
}

// startBareRelay starts a bare relay next to a server and returns a relay map that contains only it.
func startBareRelay(t *testing.T, l *lab) (mapFile string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(l.server.Addr, 8080)
	cmd := l.server.Command(context.Background(), program, "-bare-relay="+addr.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports that it was killed
	})
	region := &tailcfg.DERPRegion{RegionID: 900, RegionCode: "bare", RegionName: "Bare", Nodes: []*tailcfg.DERPNode{{
		Name: "900a", RegionID: 900, HostName: l.server.Addr.String(), IPv4: l.server.Addr.String(), IPv6: "none",
		DERPPort: int(addr.Port()), STUNPort: int(addr.Port()),
	}}}
	text, err := json.Marshal(tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{900: region}})
	if err != nil {
		t.Fatal(err)
	}
	mapFile = filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(mapFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return mapFile
}

// relayed returns a lab whose clients can reach each other only through a relay.
func relayed(ctx context.Context, t *testing.T, bare bool) *lab {
	t.Helper()
	l := newLab(t)
	var c meshtest.Config
	path := "via DERP(fairlead)"
	if bare {
		c.Set = map[string]string{"derp.server.enabled": "false", "derp.paths": startBareRelay(t, l)}
		path = "via DERP(bare)"
	}
	l.serve(t, c)
	l.BlockUDP(l.hosts[0], l.hosts[1])
	l.joinBoth(ctx, versions()[len(versions())-1])
	ping(ctx, t, l.daemons[0], "second", path)
	ping(ctx, t, l.daemons[1], "first", path)
	return l
}

// TestFigureRelayThroughput checks that two clients get at least 90 % of the throughput they get
// from the bare relay, and at least 100 Mbit/s.
func TestFigureRelayThroughput(t *testing.T) {
	const rounds, floor, share = 5, 100.0, 0.9
	ctx := within(t, 5*time.Minute)
	ours, bare := relayed(ctx, t, false), relayed(ctx, t, true)
	throughput(ctx, t, ours) // warm-up for TCP congestion control
	throughput(ctx, t, bare)

	// Other work on the machine can only make an attempt look worse, so the best of three counts.
	var best, ratio float64
	for attempt := 0; attempt < 3 && (best < floor || ratio < share); attempt++ {
		var rates, ratios []float64
		for range rounds {
			rate := throughput(ctx, t, ours)
			rates, ratios = append(rates, rate), append(ratios, rate/throughput(ctx, t, bare))
		}
		slices.Sort(rates)
		slices.Sort(ratios)
		t.Logf("%.0f Mbit/s, %.2f times the bare relay; all rates %.0f, all ratios %.2f", rates[rounds/2], ratios[rounds/2], rates, ratios)
		best, ratio = max(best, rates[rounds/2]), max(ratio, ratios[rounds/2])
	}
	if ratio < share {
		t.Errorf("only %.0f %% of the bare relay", 100*ratio)
	}
	if best < floor {
		t.Errorf("only %.0f Mbit/s", best)
	}
}

// throughput returns the throughput of one TCP connection between the hosts in Mbit/s.
func throughput(ctx context.Context, t *testing.T, l *lab) float64 {
	t.Helper()
	const during = 2 * time.Second
	there := l.listen(ctx, t)
	received := make(chan int64, 1)
	go func() {
		defer close(received)
		conn, err := there.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		size, _ := io.Copy(io.Discard, conn)
		received <- size
	}()
	conn := l.connect(ctx, t, there)
	began := time.Now()
	for block := make([]byte, 64<<10); time.Since(began) < during; {
		if _, err := conn.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	size := <-received
	return float64(size) * 8 / 1e6 / time.Since(began).Seconds()
}

// TestFigurePolicyIsFeltSoon measures how long after the response to a save three hosts accept and
// refuse new connections according to the new policy. Two of them run the oldest client, one the newest.
func TestFigurePolicyIsFeltSoon(t *testing.T) {
	t.Parallel() // it mostly waits
	const (
		changes = 20
		soon    = 2 * time.Second
		attempt = 100 * time.Millisecond // timeout for a connection that is accepted; for a refused one it is silence
	)
	ctx := within(t, 2*patience)
	w := startTown(ctx, t, clienttest.Oldest)
	w.listen(ctx)
	w.seeEachOther(ctx, t)
	w.checkAll(ctx, t, true)
	ports := [2]uint16{onePort, otherPort}
	var opened, closed []time.Duration
	for i := range changes {
		open, shut := ports[i%2], ports[1-i%2]
		saved := w.save(ctx, fmt.Sprintf(`{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:%d"]}]}`, open))
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, name := range []string{"laptop", "phone", "db"} {
			to := w.addrs[name][i/2%2] // alternate between IPv4 and IPv6
			note := func(list *[]time.Duration, d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				*list = append(*list, max(0, d))
			}
			wg.Go(func() {
				for w.connect(ctx, "desktop", to, open, attempt) != nil && ctx.Err() == nil {
				}
				note(&opened, time.Since(saved))
			})
			wg.Go(func() {
				for {
					began := time.Now()
					if w.connect(ctx, "desktop", to, shut, silence) != nil || ctx.Err() != nil {
						note(&closed, began.Sub(saved))
						return
					}
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	for what, list := range map[string][]time.Duration{"accepted": opened, "refused": closed} {
		slices.Sort(list)
		worst := list[len(list)-1]
		t.Logf("new connections are %s as the policy says after p50 %v, max %v; %d measured",
			what, list[len(list)/2].Round(time.Millisecond), worst.Round(time.Millisecond), len(list))
		if worst > soon {
			t.Errorf("a change was felt after %v, want %v", worst, soon)
		}
	}
}

// TestFigureOtherRouterTakesOver checks how long new connections fail after a router fails or
// leaves. For a router that leaves, the better of two attempts counts: the server's grace period
// takes most of the allowed time, and a single lost packet costs a second.
func TestFigureOtherRouterTakesOver(t *testing.T) {
	t.Parallel() // it mostly waits
	const fromSilent, fromLeaver = 15 * time.Second, 3 * time.Second
	ctx := within(t, 2*patience)
	o := newOffice(ctx, t)
	o.enableBoth()
	o.awaitThrough(ctx, t, "east")
	o.Cut(o.hosts["east"])
	took := o.awaitThrough(ctx, t, "west")
	t.Logf("cut off to new connections: %v", took)
	if took > fromSilent {
		t.Errorf("that took more than %v", fromSilent)
	}
	o.awaitOnline(ctx, t, "east", false)
	o.Reconnect(o.hosts["east"])
	for leaver, heir := "west", "east"; ; leaver, heir = heir, leaver {
		o.restart(t, heir)
		if heir == "west" { // it left before; on a client that is running, "up" without its flags fails
			o.run(ctx, t, heir, "up")
		}
		o.stays(ctx, t, leaver, func() bool { return o.online(ctx, heir) })
		took := o.leave(ctx, t, leaver, heir)
		if took <= fromLeaver {
			return
		}
		if heir == "west" {
			t.Fatalf("that took more than %v", fromLeaver)
		}
	}
}
