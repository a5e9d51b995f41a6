package netmap_test

// Law 1: the full map of a, followed by the update from a to b, is the full map of b.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// step commits one random command, sometimes one about settings.
func step(r *rand.Rand, s *mesh.Snapshot) (*mesh.Snapshot, []mesh.NodeID) {
	evs := []mesh.Event{meshgen.Event(r, s)}
	if r.IntN(12) == 0 {
		values := map[string]string{
			mesh.SettingDNS:         fmt.Sprintf(`{"magicDNS":%t,"baseDomain":"net%d.example.com","nameservers":["192.0.2.%d"],"keepLocal":%t}`, r.IntN(2) == 0, r.IntN(3), r.IntN(3), r.IntN(2) == 0),
			mesh.SettingClients:     fmt.Sprintf(`{"noTaildrop":%t,"randomPort":%t,"cacheMaps":%t,"serverAddrs":%s}`, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, [...]string{`[]`, `["192.0.2.1"]`, `["192.0.2.1","2001:db8::1"]`}[r.IntN(3)]),
			mesh.SettingRecords:     fmt.Sprintf(`[{"name":"a%d.example","type":"A","value":"100.64.0.1"}]`, r.IntN(2)),
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

func TestPoliciesOfTheLawAreRead(t *testing.T) {
	for _, text := range meshgen.Policies() {
		if text == "" {
			continue
		}
		if _, problems := lang.Parse([]byte(text)); len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

func scene(s *mesh.Snapshot, before *netmap.Scene) *netmap.Scene {
	if before == nil {
		return netmap.SceneOf(policy.NewWorld(s, nil), nil)
	}
	return netmap.SceneOf(before.Next(s, s.Nodes.ChangedSince(&before.Nodes)), before)
}

// law generates random histories and checks the law for random viewers over one and many
// steps, with the hint and without. It returns the number of checks, and of viewers that did not
// have to be woken.
func law(t testing.TB, seed uint64, steps int) (checked, others int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	s := mesh.Empty()
	for range 60 {
		s, _ = step(r, s)
	}
	for range steps {
		from := scene(s, nil)
		touched, told, to := []mesh.NodeID{}, []mesh.NodeID{}, from
		for range 1 + r.IntN(6) {
			before := to
			var more []mesh.NodeID
			if r.IntN(3) > 0 {
				s, more = step(r, s)
			} else {
				s, more = reopen(r, s)
			}
			more = append([]mesh.NodeID{}, more...)
			touched = append(touched, more...)
			to = scene(s, before)
			told = append(told, netmap.AudienceOf(before, to, more).Told()...)
		}
		others += countOthers(t, from, to, touched)
		for range 4 {
			viewer := mesh.NodeID(1 + r.IntN(300))
			_, before := from.Nodes.Get(viewer)
			_, after := to.Nodes.Get(viewer)
			if !before || !after {
				continue
			}
			for _, hint := range [][]mesh.NodeID{touched, told, nil} {
				if diff := checkUpdate(netmap.NewCache(""), from, to, viewer, hint); diff != "" {
					t.Fatalf("seed %d, viewer %d, hint %v: %s", seed, viewer, hint, diff)
				}
				checked++
			}
		}
	}
	return checked, others
}

// reopen lets an online node open a new stream, about which its peers are told nothing.
func reopen(r *rand.Rand, s *mesh.Snapshot) (*mesh.Snapshot, []mesh.NodeID) {
	var online []*mesh.Node
	for n := range s.Nodes.All() {
		if n.Presence.Online {
			online = append(online, n)
		}
	}
	if len(online) == 0 {
		return step(r, s)
	}
	n := online[r.IntN(len(online))]
	return mesh.Apply(s, s.Rev+1, mesh.Online{ID: n.ID, Replica: "other", Conn: n.Presence.Conn + 1, At: n.Presence.LastSeen})
}

// checkUpdate sends a viewer an update, as streams do, compressed and plain. It
// returns where the result differs from a full map.
func checkUpdate(c *netmap.Cache, from, to *netmap.Scene, node mesh.NodeID, touched []mesh.NodeID) string {
	for _, v := range []netmap.Viewer{{Node: node, Compress: true}, {Node: node}} {
		u, err := c.Update(from, to, v, touched)
		if err != nil {
			return err.Error()
		}
		sent := u.Messages
		if u.Full {
			full, err := c.Full(to, v, time.Unix(1_800_000_000, 0))
			if err != nil {
				return err.Error()
			}
			sent = slices.Concat(sent, full)
		}
		if diff := netmap.Verify(from, to, v, sent); diff != "" {
			return fmt.Sprintf("compressed %t: %s", v.Compress, diff)
		}
	}
	return ""
}

// countOthers returns the number of viewers that are not in the audience of a change. They must not need an update.
func countOthers(t testing.TB, from, to *netmap.Scene, touched []mesh.NodeID) (others int) {
	t.Helper()
	cache := netmap.NewCache("")
	for n := range to.Nodes.All() {
		if _, ok := from.Nodes.Get(n.ID); !ok || inAudience(from, to, n.ID, touched) {
			continue
		}
		others++
		u, err := cache.Update(from, to, netmap.Viewer{Node: n.ID, Compress: true}, touched)
		if err != nil || u.Full || u.Gone || len(u.Messages) > 0 {
			t.Fatalf("viewer %d, which is not in the audience, needs %+v (%v)", n.ID, u, err)
		}
	}
	return others
}

// inAudience reports whether a viewer that exists in both scenes is in the audience of a change.
func inAudience(from, to *netmap.Scene, node mesh.NodeID, touched []mesh.NodeID) bool {
	n, _ := to.Nodes.Get(node)
	a := netmap.AudienceOf(from, to, touched)
	return a.Everyone() || slices.Contains(a.Viewers(), node) || a.Includes(to.Viewpoint(n))
}

func TestUpdateFollowsFull(t *testing.T) {
	checked, others := 0, 0
	for seed := range uint64(40) {
		c, o := law(t, seed, 60)
		checked, others = checked+c, others+o
	}
	if checked < 1000 || others < 100 {
		t.Fatalf("%d viewers were looked at, %d of them did not have to be woken", checked, others)
	}
}

func FuzzUpdateFollowsFull(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) { law(t, seed, int(steps%16)) })
}

// The shared update of a class is correct for every viewer that did not change itself.
func TestSharedServesViewersThatAreTheSameToThemselves(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := mesh.Empty()
	for range 300 {
		s, _ = step(r, s)
	}
	served, patched, silent := 0, 0, 0
	for range 600 {
		from := scene(s, nil)
		var touched []mesh.NodeID
		s, touched = step(r, s)
		to := scene(s, from)
		viewers := slices.Clone(touched)
		for n := range s.Nodes.All() {
			viewers = append(viewers, n.ID)
		}
		for _, id := range viewers {
			n, is := s.Nodes.Get(id)
			before, was := from.Nodes.Get(id)
			if !is || !was || !netmap.SameSelf(before, n) || netmap.IsRouter(before) || !netmap.SharedServes(from, to, n) || n.KeyExpired {
				continue
			}
			shared := netmap.Shared(from, to, from.Viewpoint(before), to.Viewpoint(n), touched)
			if shared == nil {
				silent++
				shared = &netmap.Response{}
			}
			if slices.ContainsFunc(shared.PeersChanged, func(p *netmap.Node) bool { return p.ID == n.ID }) {
				continue
			}
			if slices.ContainsFunc(shared.PeersChangedPatch, func(p *netmap.Patch) bool { return p.NodeID == n.ID }) {
				patched++
			}
			var got, want netmap.View
			got.Take(netmap.Full(from, n.ID))
			got.Take(shared)
			want.Take(netmap.Full(to, n.ID))
			if diff := got.Differs(&want); diff != "" {
				t.Fatalf("viewer %d: %s", n.ID, diff)
			}
			if served++; served%5 == 0 {
				break
			}
		}
	}
	if served < 500 || patched == 0 || silent == 0 {
		t.Fatalf("%d served, %d of them patched, %d silent", served, patched, silent)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
