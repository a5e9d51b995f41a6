//go:build !race

package meshtest

import (
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

// A database that moves to the other engine and back keeps every client: none registers again, and each sees
// the same as before.
func TestMoveToTheOtherEngineAndBackLosesNobody(t *testing.T) {
	t.Parallel()
	const virtual, limit = 20, 90 * time.Second
	front, dir := NewBalancer(t), t.TempDir()
	file, name := filepath.Join(dir, "db.sqlite"), pg.Database(t)
	relay := startRelay(t)
	config := Config{
		Binary: fairlead, URL: front.URL, NoiseKey: filepath.Join(dir, "noise.key"),
		Set: map[string]string{"derp.paths": relay, "database.sqlite.path": file},
	}
	sqlite := Start(t, config)
	config.Postgres, config.Database, config.Set = pg, name, map[string]string{"derp.paths": relay}
	postgres := Start(t, config)
	postgres.Stop()

	front.Add(sqlite.Addr)
	sqlite.CLI("users", "create", "alice")
	key := sqlite.PreAuthKey("alice", "--reusable")
	client := joinClients(t, front.URL, key, 1)[0]
	nodes := make([]*Node, virtual)
	crowd := NewCrowd(t, front.URL)
	each(t, nodes, func(i int) error {
		nodes[i] = crowd.Node("node")
		err := nodes[i].Register(t.Context(), key)
		nodes[i].Connect()
		return err
	})
	awaitPeers(t, nodes, virtual)
	before := make([]map[tailcfg.NodeID][]netip.Prefix, virtual)
	for i, n := range nodes {
		before[i] = addresses(n)
	}
	if err := client.Wait(within(t, limit), seesPeers(virtual)); err != nil {
		t.Fatal(err)
	}
	seen, err := picture(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		from, to *Server
		name     string
	}{{sqlite, postgres, pg.URL(name)}, {postgres, sqlite, "sqlite:" + file}} {
		step.from.Stop()
		front.Remove(step.from.Addr)
		step.from.CLI("db", "move", "--to", step.name, "--replace", "--force")
		step.to.Resume()
		front.Add(step.to.Addr)
		mustHold(t, limit, virtual+1, step.to)
		awaitPeers(t, nodes, virtual)
		for i, n := range nodes {
			if after := addresses(n); !maps.EqualFunc(before[i], after, slices.Equal) {
				t.Fatalf("a node sees others than before: %s", cmp.Diff(before[i], after, cmp.Comparer(samePrefix)))
			}
		}
		if err := client.Wait(within(t, limit), seesPeers(virtual)); err != nil {
			t.Fatal(err)
		}
		after, err := picture(t.Context(), client)
		if diff := cmp.Diff(seen, after, cmp.Comparer(sameAddr)); err != nil || diff != "" {
			t.Errorf("the client sees other nodes than before: %v %s", err, diff)
		}
		if again, err := step.to.Metric(t.Context(), "mesh_node_registrations_total"); err != nil || again != 0 {
			t.Errorf("%v nodes registered again (%v)", again, err)
		}
	}
}
