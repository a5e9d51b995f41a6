//go:build !race

package meshtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

func TestDatabaseAwayDisconnectsNobodyAndShowsNobodyOffline(t *testing.T) {
	t.Parallel()
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
	r.Check(t, "/ready")
	r.servers[0].CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), nodes)

	end := outage(t, server, way)
	began := time.Now()
	eventually(t, patience, func() error {
		for _, s := range r.servers {
			if _, err := fetch(t.Context(), &http.Client{}, http.MethodGet, s.URL+"/health", ""); err == nil || !strings.Contains(err.Error(), "503") {
				return fmt.Errorf("/health does not fail with 503: %w", err)
			}
		}
		return nil
	})
	t.Logf("all replicas are unhealthy %v after the outage began", time.Since(began).Round(time.Millisecond))
	mustBeReady(t, r.servers...)
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
	mustBeReady(t, r.servers...)
	// By now each replica knows that no other replica has the database either.
	late := all[2]
	late.Disconnect()
	late.Look(func(v *View) { maps = v.Maps })
	late.Connect()
	if _, err := late.Await(within(t, lasting), func(v *View) bool { return v.Maps > maps }); err != nil {
		t.Errorf("a node that comes back late in the outage gets no map: %v", err)
	}
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
	mustAgree(t, r.servers...)
}

// mustBeReady checks that servers report that they can serve maps.
func mustBeReady(t *testing.T, servers ...*Server) {
	t.Helper()
	for _, s := range servers {
		if _, err := fetch(t.Context(), &http.Client{}, http.MethodGet, s.URL+"/ready", ""); err != nil {
			t.Error(err)
		}
		s.CLI("health", "--ready") // also over the local socket
	}
}

// The network is down until the server has given up on all clients, which do not
// notice.
func TestNodesAreBackAfterTheNetworkWasAway(t *testing.T) {
	t.Parallel()
	const nodes, lasting = 50, 2 * time.Minute
	r := startReplicas(t, pg, 2, nil)
	r.servers[0].CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, r.URL), r.servers[0].PreAuthKey("alice", "--reusable"), nodes)
	r.Freeze()
	mustHold(t, lasting, 0, r.servers...)
	eventually(t, patience, func() error {
		online, err := r.servers[0].Metric(t.Context(), "mesh_nodes_online")
		if err == nil && online != 0 {
			err = fmt.Errorf("%v nodes are online", online)
		}
		return err
	})
	r.Thaw()
	began := time.Now()
	mustHold(t, patience, nodes, r.servers...)
	awaitPeers(t, all, nodes-1)
	t.Logf("all nodes saw each other again %v after the network was back", time.Since(began).Round(time.Millisecond))
	mustFlow(t, all[:10], 4)
	mustAgree(t, r.servers...)
}
