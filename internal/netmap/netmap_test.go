package netmap_test

// Law 1: Full(a) followed by Between(a, b) equals Full(b).

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// step commits one random command, now and then one about settings.
func step(r *rand.Rand, s *mesh.Snapshot) (*mesh.Snapshot, []mesh.NodeID) {
	evs := []mesh.Event{meshgen.Event(r, s)}
	if r.IntN(12) == 0 {
		values := map[string]string{
			mesh.SettingDNS:         fmt.Sprintf(`{"magicDNS":%t,"baseDomain":"net%d.example.com","nameservers":["192.0.2.%d"]}`, r.IntN(2) == 0, r.IntN(3), r.IntN(3)),
			mesh.SettingRelays:      fmt.Sprintf(`{"Regions":{"1":{"RegionID":1,"RegionCode":"r%d"}}}`, r.IntN(3)),
			mesh.SettingRelay + "9": fmt.Sprintf(`{"replica":"a","region":{"RegionID":9,"RegionName":"%d"}}`, r.IntN(2)),
		}
		for key, value := range values {
			evs = append(evs, s.SettingPutFor(key, value, "config", false, 1)...)
			break
		}
	}
	return mesh.Apply(s, s.Rev+1, mesh.Settle(s, evs)...)
}

func scene(s *mesh.Snapshot, before *netmap.Scene) *netmap.Scene {
	return netmap.SceneOf(&policy.World{Snapshot: s}, before)
}

// law walks random histories and checks the law for random viewers over one and
// many steps, with the hint and without. It returns how often it looked.
func law(t testing.TB, seed uint64, steps int) int {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	s := mesh.Empty()
	for range 60 {
		s, _ = step(r, s)
	}
	checked := 0
	for range steps {
		from := scene(s, nil)
		touched := []mesh.NodeID{}
		for range 1 + r.IntN(6) {
			var more []mesh.NodeID
			s, more = step(r, s)
			touched = append(touched, more...)
		}
		to := scene(s, from)
		for range 4 {
			viewer := mesh.NodeID(1 + r.IntN(300))
			_, before := from.Node(viewer)
			_, after := to.Node(viewer)
			if !before || !after {
				continue
			}
			for _, hint := range [][]mesh.NodeID{touched, nil} {
				if diff := netmap.Check(from, to, viewer, hint); diff != "" {
					t.Fatalf("seed %d, viewer %d, hint %v: %s", seed, viewer, hint, diff)
				}
				checked++
			}
		}
	}
	return checked
}

func TestBetweenFollowsFull(t *testing.T) {
	checked := 0
	for seed := range uint64(40) {
		checked += law(t, seed, 60)
	}
	if checked < 1000 {
		t.Fatalf("only %d viewers were looked at", checked)
	}
}

func FuzzBetweenFollowsFull(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) { law(t, seed, int(steps%16)) })
}

// A viewer that did not change itself hears what its class hears.
func TestSharedIsBetweenForWhoDidNotChange(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := mesh.Empty()
	for range 300 {
		s, _ = step(r, s)
	}
	alike, silent := 0, 0
	for range 200 {
		from := scene(s, nil)
		before := s
		var touched []mesh.NodeID
		s, touched = step(r, s)
		to := scene(s, from)
		changed := map[mesh.NodeID]bool{}
		for _, id := range s.ChangedNodes(before) {
			changed[id] = true
		}
		for n := range s.Nodes() {
			if _, ok := from.Node(n.ID); !ok || changed[n.ID] {
				continue
			}
			if diffDomain(from, to) { // then everyone changed
				continue
			}
			shared := encoded(t, netmap.Shared(from, to, to.Class(n), touched))
			if own := encoded(t, netmap.Between(from, to, n.ID, touched)); own != shared {
				t.Fatalf("node %d hears\n%s\nits class\n%s", n.ID, own, shared)
			}
			alike++
			if shared == "null" {
				silent++
			}
			break
		}
	}
	if alike < 100 || silent == 0 || silent == alike {
		t.Fatalf("%d compared, %d of them silent", alike, silent)
	}
}

func diffDomain(a, b *netmap.Scene) bool { return a.DNS().BaseDomain != b.DNS().BaseDomain }

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
