package netmap_test

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/util/zstdframe"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Regardless of the history, a full map that is spliced from blocks, some of them encoded
// earlier, decodes to the same document as one that was encoded as a whole, and clients can
// read it.
func FuzzSplicedMapIsTheFullMap(f *testing.F) {
	f.Add(uint64(1), uint8(10))
	f.Add(uint64(2), uint8(47))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		cache := netmap.NewCache("")
		s := mesh.Empty()
		now := time.Unix(1_800_000_000, 0).UTC()
		var before *netmap.Scene
		for range 3 {
			d := s.Edit()
			for range steps % 64 {
				d.Apply(s.Rev+1, mesh.Settle(d.Snapshot(), []mesh.Event{meshgen.Event(r, d.Snapshot())})...)
			}
			s = d.Freeze()
			world := policy.NewWorld(s, nil)
			if before != nil {
				world = before.Next(s, s.Nodes.ChangedSince(&before.Nodes))
			}
			scene := netmap.SceneOf(world, before)
			before = scene
			for n := range s.Nodes.All() {
				if n.KeyExpired || r.IntN(4) != 0 {
					continue
				}
				m, err := cache.FullMessage(scene, n.ID, now)
				if err != nil {
					t.Fatal(err)
				}
				if got := binary.LittleEndian.Uint32(m); int(got) != len(m)-4 {
					t.Fatalf("length %d of %d bytes", got, len(m)-4)
				}
				doc, err := zstdframe.AppendDecode(nil, m[4:])
				if err != nil {
					t.Fatal(err)
				}
				full := netmap.Full(scene, n.ID)
				full.ControlTime = &now
				want, err := json.Marshal(full)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(members(t, want), members(t, doc)); diff != "" {
					t.Fatalf("viewer %d: %s", n.ID, diff)
				}
				var theirs tailcfg.MapResponse
				if err := json.Unmarshal(doc, &theirs); err != nil {
					t.Fatalf("clients cannot read it: %v", err)
				}
				break // one viewer is enough, because there are many inputs
			}
		}
	})
}

// members returns the top-level fields of a document, so that their order does not matter.
func members(t testing.TB, doc []byte) map[string]string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}
