package meshtest

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// The tests of this package run servers as separate processes, which the race detector does not cover, so
// large tests run without it.

var (
	fairlead string         // the binary under test
	pg       *pgtest.Server // for tests that do not damage it
)

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fairlead-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if fairlead, err = Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The tests mostly wait, so run more of them in parallel than there are CPUs.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s })
}

const (
	// patience is the timeout for operations that take an instant unless the machine is busy.
	patience = 2 * time.Minute
	// absence is the longest time that a node may be shown offline while it moves to another server.
	absence = 30 * time.Second
)

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until try succeeds.
func eventually(t *testing.T, limit time.Duration, try func() error) {
	t.Helper()
	waittest.Eventually(t, limit, pollEvery, try)
}

// startPostgres starts a PostgreSQL server that the test may damage.
func startPostgres(t *testing.T, o pgtest.Options) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// replicas are servers that share a database, behind a balancer.
type replicas struct {
	*Balancer
	servers []*Server
}

// startReplicas starts replicas one after the other: the first creates the key that all of them share.
func startReplicas(t *testing.T, server *pgtest.Server, count int, set map[string]string) replicas {
	t.Helper()
	return startReplicasOf(t, fairlead, server, count, set)
}

// startReplicasOf is like startReplicas, with another binary.
func startReplicasOf(t *testing.T, binary string, server *pgtest.Server, count int, set map[string]string) replicas {
	t.Helper()
	r := replicas{Balancer: NewBalancer(t)}
	config := Config{
		Binary: binary, Postgres: server, Database: server.Database(t), URL: r.URL, NoiseKey: filepath.Join(t.TempDir(), "noise.key"), Set: set,
	}
	for range count {
		s := Start(t, config)
		r.servers = append(r.servers, s)
		r.Add(s.Addr)
	}
	return r
}

// join registers nodes and opens their streams, several at a time.
func join(t *testing.T, c *Crowd, authKey string, nodes int) []*Node {
	t.Helper()
	all := make([]*Node, nodes)
	each(t, all, func(i int) error {
		all[i] = c.Node(fmt.Sprintf("node-%d", i))
		if err := all[i].Register(t.Context(), authKey); err != nil {
			return err
		}
		err := all[i].Report(t.Context(), endpoint(i, 0))
		all[i].Connect()
		return err
	})
	awaitPeers(t, all, nodes-1)
	return all
}

// each calls f for the index of each node, several at a time.
func each(t *testing.T, nodes []*Node, f func(i int) error) {
	t.Helper()
	const atOnce = 50
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range nodes {
		slots <- struct{}{}
		wait.Go(func() {
			if err := f(i); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
			<-slots
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// awaitPeers waits until each of the nodes sees this number of peers online.
func awaitPeers(t *testing.T, nodes []*Node, count int) {
	t.Helper()
	ctx := within(t, 2*time.Minute)
	for _, n := range nodes {
		_, err := n.Await(ctx, func(v *View) bool { return online(v) == count })
		if err != nil {
			n.Look(func(v *View) {
				err = fmt.Errorf("%w: %d of %d peers are online, want %d", err, online(v), len(v.Peers), count)
			})
			t.Fatal(err)
		}
	}
}

func online(v *View) (count int) {
	for _, p := range v.Peers {
		if p.Online {
			count++
		}
	}
	return count
}

// endpoint returns a different endpoint for each node and change.
func endpoint(node, change int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, byte(node >> 8), byte(node)}), uint16(1024+change))
}

// sees returns a condition for Await about one peer.
func sees(id tailcfg.NodeID, wanted func(Peer) bool) func(*View) bool {
	return func(v *View) bool {
		p, known := v.Peers[id]
		return known && wanted(p)
	}
}

func isOnline(p Peer) bool  { return p.Online }
func isOffline(p Peer) bool { return !p.Online }

// watch observes the mesh for a while and then checks the whole time so far: no node may have been shown
// offline to another for longer than a limit.
func watch(t *testing.T, lasting, limit time.Duration, nodes []*Node) (longest time.Duration) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lasting); ; <-tick.C {
		for _, n := range nodes {
			n.Look(func(v *View) {
				for _, a := range v.Absences() {
					if longest = max(longest, a.For); a.For > limit {
						t.Fatalf("%s saw node %d offline for %v since %v", n.Hostname, a.Peer, a.For, a.Since)
					}
				}
			})
		}
		if time.Now().After(end) {
			return longest
		}
	}
}

// mustFlow checks that a change of each node reaches all nodes.
func mustFlow(t *testing.T, nodes []*Node, change int) {
	t.Helper()
	each(t, nodes, func(i int) error { return nodes[i].Report(t.Context(), endpoint(i, change)) })
	ctx := within(t, patience)
	for i, changed := range nodes {
		for _, n := range nodes {
			if n == changed {
				continue
			}
			if _, err := n.Await(ctx, sees(changed.ID(), func(p Peer) bool { return slices.Contains(p.Endpoints, endpoint(i, change)) })); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// mustAgree checks that no server has detected an inconsistency in its own state or with another replica.
func mustAgree(t *testing.T, servers ...*Server) {
	t.Helper()
	for _, s := range servers {
		for _, name := range []string{"mesh_stream_check_failures_total", "mesh_ledger_digest_mismatches_total"} {
			if n, err := s.Metric(t.Context(), name); err != nil || n != 0 {
				t.Errorf("%s is %v, %v", name, n, err)
			}
		}
	}
}

// mustHold waits until servers together hold this number of streams.
func mustHold(t *testing.T, limit time.Duration, count int, servers ...*Server) {
	t.Helper()
	eventually(t, limit, func() error {
		open := 0.0
		for _, s := range servers {
			held, err := s.Metric(t.Context(), "mesh_streams_open")
			if err != nil {
				return err
			}
			open += held
		}
		if open != float64(count) {
			return fmt.Errorf("%v of %d nodes have their stream", open, count)
		}
		return nil
	})
}
