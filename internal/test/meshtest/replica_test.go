//go:build !race

package meshtest

import (
	"flag"
	"syscall"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 1, "how often replicas are ended, one after the other")

func TestNodesOfAnEndedReplicaComeToTheOtherAndNobodyIsShownOffline(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server){"SIGKILL": (*Server).Kill, "SIGTERM": (*Server).Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEndOfReplicas(t, end)
		})
	}
}

func testEndOfReplicas(t *testing.T, end func(*Server)) {
	const nodes = 60
	r := startReplicas(t, pg, 2, nil)
	r.servers[0].CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), nodes)
	for round := range *rounds {
		ended, survivor := r.servers[round%2], r.servers[1-round%2]
		held, err := ended.Metric(t.Context(), "mesh_streams_open")
		if err != nil || held == 0 {
			t.Fatalf("the replica to be ended holds %v streams, %v", held, err)
		}
		began := time.Now()
		end(ended)
		mustHold(t, patience, nodes, survivor)
		t.Logf("%v nodes came to the other replica within %v", held, time.Since(began).Round(time.Millisecond))
		// By then the survivor has declared the replica dead and checked its nodes.
		longest := watch(t, 25*time.Second-time.Since(began), absence, all)
		t.Logf("nobody was shown offline for longer than %v", longest)
		if online, err := survivor.Metric(t.Context(), "mesh_nodes_online"); err != nil || online != nodes {
			t.Errorf("%v of %d nodes are online, %v", online, nodes, err)
		}
		mustFlow(t, all[:10], round+1)
		ended.Resume()
		mustFlow(t, all[10:20], round+1)
		mustAgree(t, r.servers...)
	}
}

// startPair starts two replicas with one node each, which see each other.
func startPair(t *testing.T) (servers []*Server, nodes []*Node) {
	t.Helper()
	servers = startReplicas(t, pg, 2, nil).servers
	servers[0].CLI("users", "create", "alice")
	key := servers[0].PreAuthKey("alice", "--reusable")
	for i, name := range []string{"first", "second"} {
		n := NewCrowd(t, servers[i].URL).Node(name)
		if err := n.Register(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		n.Connect()
		nodes = append(nodes, n)
	}
	awaitPeers(t, nodes, 1)
	return servers, nodes
}

// A dead replica's nodes have 10 seconds to move to another. It counts as dead after three missed heartbeats
// of 2 seconds each.
func TestNodeThatDiesWithItsReplicaIsShownOffline(t *testing.T) {
	t.Parallel()
	servers, nodes := startPair(t)
	servers[0].Kill()
	nodes[0].Disconnect()
	began := time.Now()
	at, err := nodes[1].Await(within(t, 2*time.Minute), sees(nodes[0].ID(), isOffline))
	if took := at.Sub(began); err != nil || took < 10*time.Second {
		t.Errorf("it is shown offline after %v, %v", took, err)
	}
}

func TestReplicaThatWasFrozenShowsItsNodesOnlineAgain(t *testing.T) {
	t.Parallel()
	servers, nodes := startPair(t)
	servers[0].Signal(syscall.SIGSTOP)
	_, err := nodes[1].Await(within(t, 2*time.Minute), sees(nodes[0].ID(), isOffline))
	servers[0].Signal(syscall.SIGCONT)
	if err != nil {
		t.Fatalf("the node of a frozen replica: %v", err)
	}
	awaitPeers(t, nodes, 1)
	mustFlow(t, nodes, 3)
	mustAgree(t, servers...)
}
