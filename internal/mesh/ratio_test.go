//go:build !race

package mesh_test

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// network returns a snapshot of n nodes of one user, a fifth of them online.
func network(n int) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	d.Apply(1, mesh.UserPut{User: meshgen.User(1)})
	for id := mesh.NodeID(1); int(id) <= n; id++ {
		d.Apply(mesh.Revision(id)+1, mesh.NodePut{Node: meshgen.Node(id, 1)}, mesh.NodeNet{ID: id, Net: meshgen.Net(int(id))})
		if id%5 == 0 {
			d.Apply(mesh.Revision(id)+1, mesh.Online{ID: id, Replica: "a", Conn: 1, At: 1})
		}
	}
	return d.Freeze()
}

// TestRatioApplyAtSize checks that a change costs about the same in a network of 50,000
// nodes as in one of 500: it copies a page, not the network.
func TestRatioApplyAtSize(t *testing.T) {
	small, large := network(500), network(50_000)
	for name, event := range map[string]func(s *mesh.Snapshot, i int) mesh.Event{
		"endpoints": func(_ *mesh.Snapshot, i int) mesh.Event {
			return mesh.NodeNet{ID: mesh.NodeID(1 + i*7%500), Net: meshgen.Net(i)}
		},
		"presence": func(_ *mesh.Snapshot, i int) mesh.Event {
			return mesh.Online{ID: mesh.NodeID(1 + i*7%500), Replica: "a", Conn: int64(i), At: 1}
		},
		"join": func(s *mesh.Snapshot, _ int) mesh.Event {
			return mesh.NodePut{Node: meshgen.Node(s.Counters.Node+1, 1)}
		},
	} {
		cost := func(s *mesh.Snapshot) float64 {
			best := testing.Benchmark(func(b *testing.B) {
				for i := range b.N {
					mesh.Apply(s, s.Rev+1, event(s, i))
				}
			})
			return float64(best.NsPerOp())
		}
		a, b := cost(small), cost(large)
		t.Logf("%s: %.1f µs at 500 nodes, %.1f µs at 50,000, ratio %.1f", name, a/1000, b/1000, b/a)
		if b > 6*a {
			t.Errorf("%s costs %.1f times as much in a large network", name, b/a)
		}
	}
}

// TestRatioDigestCostsWhatChanged checks that recomputing the digest after one change
// costs a small fraction of the first computation.
func TestRatioDigestCostsWhatChanged(t *testing.T) {
	s := network(50_000)
	first := time.Hour
	for range 5 { // building a network takes longer than its digest
		fresh := network(50_000)
		began := time.Now()
		fresh.Digest()
		first = min(first, time.Since(began))
	}
	s.Digest()
	again := testing.Benchmark(func(b *testing.B) {
		for i := range b.N {
			next, _ := mesh.Apply(s, s.Rev+1, mesh.NodeNet{ID: 7, Net: meshgen.Net(i)})
			next.Digest()
		}
	})
	t.Logf("digest of 50,000 nodes: %.1f ms at first, %.3f ms after one change", float64(first)/1e6, float64(again.NsPerOp())/1e6)
	if again.NsPerOp()*20 > first.Nanoseconds() {
		t.Error("the digest is recomputed from scratch for every change")
	}
}
