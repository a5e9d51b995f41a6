//go:build !race

package meshtest

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

var restartNodes = flag.Int("restart-nodes", 500, "virtual nodes that see the server restart")

// addresses returns the addresses of a virtual node and its peers, which must not
// change.
func addresses(n *Node) map[tailcfg.NodeID][]netip.Prefix {
	all := map[tailcfg.NodeID][]netip.Prefix{}
	n.Look(func(v *View) {
		all[v.Self.ID] = v.Self.Addresses
		for id, p := range v.Peers {
			all[id] = p.Addresses
		}
	})
	return all
}

func sameAddr(a, b netip.Addr) bool     { return a == b }
func samePrefix(a, b netip.Prefix) bool { return a == b }

// Real clients wait ten seconds before they retry when nobody listens.
func TestServerRestartLosesNobody(t *testing.T) {
	const clients, limit = 3, 90 * time.Second
	s := Start(t, Config{Binary: fairlead, Relay: true})
	s.CLI("users", "create", "alice")
	key := s.PreAuthKey("alice", "--reusable")
	daemons := joinClients(t, s.URL, key, clients)
	crowd := NewCrowd(t, s.URL)
	began := time.Now()
	nodes := make([]*Node, *restartNodes)
	each(t, nodes, func(i int) error {
		nodes[i] = crowd.Node(fmt.Sprintf("node-%d", i))
		err := nodes[i].Register(t.Context(), key)
		nodes[i].Connect()
		return err
	})
	total := clients + len(nodes)
	awaitPeers(t, nodes, total-1)
	t.Logf("%d nodes joined and see each other after %v", len(nodes), time.Since(began).Round(time.Millisecond))

	before := make([]map[tailcfg.NodeID][]netip.Prefix, len(nodes))
	for i, n := range nodes {
		before[i] = addresses(n)
	}
	pictures := make([]map[string][]netip.Addr, clients)
	for i, d := range daemons {
		if err := d.Wait(within(t, limit), seesPeers(total-1)); err != nil {
			t.Fatal(err)
		}
		var err error
		if pictures[i], err = picture(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(){"SIGTERM": s.Stop, "SIGKILL": s.Kill} {
		began := time.Now()
		end()
		s.Resume()
		up := time.Now()
		mustHold(t, limit, total, s)
		t.Logf("%s: the server was away for %v, all were back %v later", name, up.Sub(began).Round(time.Millisecond), time.Since(up).Round(time.Millisecond))
		awaitPeers(t, nodes, total-1)
		for i, n := range nodes {
			if after := addresses(n); !maps.EqualFunc(before[i], after, slices.Equal) {
				t.Fatalf("%s: %s sees other nodes than before: %s", name, n.Hostname, cmp.Diff(before[i], after, cmp.Comparer(samePrefix)))
			}
		}
		watch(t, 0, 0, nodes)
		for i, d := range daemons {
			if err := d.Wait(within(t, limit), seesPeers(total-1)); err != nil {
				t.Fatal(err)
			}
			after, err := picture(t.Context(), d)
			if diff := cmp.Diff(pictures[i], after, cmp.Comparer(sameAddr)); err != nil || diff != "" {
				t.Errorf("%s: client %d sees other nodes than before: %v %s", name, i, err, diff)
			}
		}
		if again, err := s.Metric(t.Context(), "mesh_node_registrations_total"); err != nil || again != 0 || s.Says("node registered") != 0 {
			t.Errorf("%s: %v nodes registered again, %v", name, again, err)
		}
		mustAgree(t, s)
	}
}
