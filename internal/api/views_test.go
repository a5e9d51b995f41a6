package api_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// Readers hold different snapshots of the same history and read different clocks.
func TestCachedNodesEqualFreshOnes(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 0))
		var cache api.NodeCache
		shots := []*mesh.Snapshot{mesh.Empty()}
		hits, listed := 0, 0
		for range 150 {
			_, next := meshgen.History(r, shots[len(shots)-1], 1+r.IntN(8))
			shots = append(shots, next)
			s := shots[max(0, len(shots)-1-r.IntN(3))]
			at := meshgen.Start + mesh.Time(s.Rev)*1_000_000 + mesh.Time(r.IntN(int(2*time.Second/time.Microsecond)))
			for n := range s.Nodes.All() {
				got, want := cache.Encoded(s, n, at), api.EncodedNode(s, n, at)
				if !bytes.Equal(got, want) {
					t.Fatalf("seed %d, revision %d:\ncached %s\nfresh  %s", seed, s.Rev, got, want)
				}
				if again := cache.Encoded(s, n, at); &again[0] == &got[0] {
					hits++
				}
				listed++
			}
			if cache.Len() > s.Nodes.Len()+8 {
				t.Fatalf("seed %d: %d nodes are kept of %d", seed, cache.Len(), s.Nodes.Len())
			}
		}
		if hits != listed {
			t.Errorf("seed %d: %d of %d nodes that did not change came from the cache", seed, hits, listed)
		}
	}
}

func TestGoneNodesLeaveTheCache(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)})
	for id := range mesh.NodeID(100) {
		s, _ = mesh.Apply(s, s.Rev+1, mesh.NodePut{Node: meshgen.Node(id+1, 1)})
	}
	var cache api.NodeCache
	list := func() {
		for n := range s.Nodes.All() {
			cache.Encoded(s, n, 1)
		}
	}
	list()
	for id := range mesh.NodeID(90) {
		s, _ = mesh.Apply(s, s.Rev+1, mesh.NodeGone{ID: id + 1})
	}
	list()
	if cache.Len() != 10 {
		t.Errorf("%d are kept of 10", cache.Len())
	}
}
