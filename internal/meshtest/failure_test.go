package meshtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/pgtest"
)

// watch looks at the mesh for a while, and at what was before: nobody may have
// been shown offline for longer than a limit, to any of the nodes.
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

// mustFlow wants a change of each of the nodes to reach all of them.
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

func TestNodesOfAKilledReplicaComeToTheOtherAndNobodyIsShownOffline(t *testing.T) {
	t.Parallel()
	const nodes, limit = 60, 15 * time.Second
	r := startReplicas(t, pg, 2, nil)
	r.servers[0].CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), nodes)
	killed, survivor := r.servers[0], r.servers[1]
	held, err := killed.Metric(t.Context(), "mesh_streams_open")
	if err != nil || held == 0 {
		t.Fatalf("the replica to be killed holds %v streams, %v", held, err)
	}

	began := time.Now()
	killed.Kill()
	eventually(t, limit, func() error {
		open, err := survivor.Metric(t.Context(), "mesh_streams_open")
		if err == nil && open != nodes {
			err = fmt.Errorf("%v of %d nodes are back", open, nodes)
		}
		return err
	})
	t.Logf("%v nodes came to the other replica within %v", held, time.Since(began).Round(time.Millisecond))
	// By then the survivor has given up on the replica and looked at its nodes.
	longest := watch(t, 25*time.Second-time.Since(began), limit, all)
	t.Logf("nobody was shown offline for longer than %v", longest)
	if online, err := survivor.Metric(t.Context(), "mesh_nodes_online"); err != nil || online != nodes {
		t.Errorf("%v of %d nodes are online, %v", online, nodes, err)
	}
	mustFlow(t, all[:10], 7)
}

func TestNodeThatDiesWithItsReplicaIsShownOffline(t *testing.T) {
	t.Parallel()
	r := startReplicas(t, pg, 2, nil)
	r.servers[0].CLI("users", "create", "alice")
	key := r.servers[0].PreAuthKey("alice", "--reusable")
	lost := join(t, NewCrowd(t, r.servers[0].URL), key, 1)[0]
	watcher := NewCrowd(t, r.servers[1].URL).Node("watcher")
	if err := watcher.Register(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	watcher.Connect()
	if _, err := watcher.Await(within(t, patience), sees(lost.ID(), isOnline)); err != nil {
		t.Fatal(err)
	}
	r.servers[0].Kill()
	lost.Disconnect()
	began := time.Now()
	at, err := watcher.Await(within(t, time.Minute), sees(lost.ID(), isOffline))
	if err != nil {
		t.Fatal(err)
	}
	// Three missed beats and the time that others have to come back.
	if took := at.Sub(began); took < 10*time.Second || took > 25*time.Second {
		t.Errorf("it is shown offline after %v", took)
	}
}

func TestDatabaseAwayDisconnectsNobodyAndShowsNobodyOffline(t *testing.T) {
	for name, outage := range map[string]func(*testing.T, *pgtest.Server, *Balancer) (end func()){
		"refused": func(t *testing.T, server *pgtest.Server, _ *Balancer) func() {
			if err := server.Pause("fast"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := server.Resume(); err != nil {
					t.Fatal(err)
				}
			}
		},
		"silent": func(_ *testing.T, _ *pgtest.Server, way *Balancer) func() {
			way.Freeze()
			return way.Thaw
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOutage(t, outage)
		})
	}
}

func testOutage(t *testing.T, outage func(*testing.T, *pgtest.Server, *Balancer) (end func())) {
	const nodes, lasting = 20, 20 * time.Second
	server := startPostgres(t, pgtest.Options{})
	way := NewBalancer(t, fmt.Sprintf("%s:%d", server.Host, server.Port))
	_, port, err := net.SplitHostPort(way.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r := startReplicas(t, server, 2, map[string]string{"database.postgres.port": port})
	r.servers[0].CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), nodes)

	end := outage(t, server, way)
	began := time.Now()
	back, maps := all[0], 0
	back.Disconnect()
	back.Look(func(v *View) { maps = v.Maps })
	back.Connect()
	if at, err := back.Await(within(t, lasting), func(v *View) bool { return v.Maps > maps }); err != nil {
		t.Errorf("a node that comes back during the outage gets no map: %v", err)
	} else {
		t.Logf("a node that came back during the outage had its map after %v", at.Sub(began).Round(time.Millisecond))
	}
	// A change has to wait. It must neither be lost nor end the stream.
	ctx, cancel := context.WithTimeout(t.Context(), lasting/2)
	defer cancel()
	if err := all[1].Report(ctx, endpoint(1, 5)); err == nil {
		t.Error("a change was accepted while the database was away")
	} else {
		t.Logf("a change during the outage: %v", err)
	}
	watch(t, lasting-time.Since(began), 0, all)
	end()
	eventually(t, patience, func() error {
		for _, s := range r.servers {
			if _, err := fetch(t.Context(), &http.Client{}, http.MethodGet, s.URL+"/health", ""); err != nil {
				return err
			}
		}
		return nil
	})
	mustFlow(t, all, 6)
	watch(t, 5*time.Second, 0, all)
	for _, n := range all {
		if ends := n.Ends(); len(ends) > 0 {
			t.Errorf("streams of %s ended: %q", n.Hostname, ends)
		}
	}
}
