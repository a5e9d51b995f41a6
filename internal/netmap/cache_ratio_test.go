//go:build !race

package netmap_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// households returns a mesh of users with ten nodes each, under a policy.
func households(t *testing.T, users int, text string) *netmap.Scene {
	t.Helper()
	d := mesh.Empty().Edit()
	for u := range users {
		d.Apply(1, mesh.UserPut{User: meshgen.User(mesh.UserID(u + 1))})
	}
	for id := range mesh.NodeID(users * 10) {
		d.Apply(2, mesh.NodePut{Node: household(id+1, users)}, mesh.NodeNet{ID: id + 1, Net: meshgen.Net(int(id))})
	}
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return netmap.SceneOf(policy.WorldOf(d.Freeze(), doc), nil)
}

func household(id mesh.NodeID, users int) *mesh.Node {
	n := meshgen.Node(id, mesh.UserID(1+int(id)%users))
	n.CapVersion = 140
	n.Host = `{"Hostname":"host","OS":"linux","Services":[{"Proto":"peerapi4","Port":1}]}`
	return n
}

// round measures the cost of sending every viewer a change, and of sending every tenth
// viewer a full map.
func round(t *testing.T, from *netmap.Scene) (change, full time.Duration) {
	t.Helper()
	cache := netmap.NewCache("")
	began := time.Now()
	const changes = 10
	for i := range mesh.NodeID(changes) {
		s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.NodeNet{ID: 7 + i, Net: meshgen.Net(int(i + 99))})
		to := netmap.SceneOf(from.Next(s, touched), from)
		for n := range to.Nodes.All() {
			if _, err := cache.UpdateMessages(from, to, n.ID, touched); err != nil {
				t.Fatal(err)
			}
		}
		from = to
	}
	change = time.Since(began) / changes
	began = time.Now()
	for n := range from.Nodes.All() {
		if n.ID%10 == 0 {
			if _, err := cache.FullMessage(from, n.ID, time.Unix(1_800_000_000, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return change, time.Since(began)
}

// Rules with autogroup:self, for a thousand users, cost little more than the same mesh
// without them. Full maps are smaller if nodes see fewer peers, so everyone sees everyone
// in both.
func TestRatioOwnNodes(t *testing.T) {
	const users = 1000
	best := func(text string) (change, full time.Duration) {
		scene := households(t, users, text)
		for range 3 {
			c, f := round(t, scene)
			if change == 0 || c < change {
				change = c
			}
			if full == 0 || f < full {
				full = f
			}
		}
		return change, full
	}
	const everyone = `{"action": "accept", "src": ["*"], "dst": ["*:443"]}`
	plainChange, plainFull := best(`{"acls": [` + everyone + `]}`)
	ownChange, ownFull := best(`{"acls": [` + everyone + `, {"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]}]}`)
	onlyChange, onlyFull := best(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]}]}`)
	t.Logf("a change, 10,000 viewers: %v, with rules about own nodes %v (%.2f ×), with these alone %v", plainChange, ownChange, ratio(ownChange, plainChange), onlyChange)
	t.Logf("1,000 full maps: %v, with rules about own nodes %v (%.2f ×), with these alone %v", plainFull, ownFull, ratio(ownFull, plainFull), onlyFull)
	if ratio(ownChange, plainChange) > 3 || ratio(ownFull, plainFull) > 3 || onlyChange > 3*plainChange || onlyFull > 3*plainFull {
		t.Error("rules about own nodes cost more than three times as much")
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// When a node joins, a viewer whose class stays the same is sent one peer entry, whatever
// the rules are. Filters are not sent again.
func TestFigureRegistrationCostsAViewerAPeerEntry(t *testing.T) {
	const users = 1000
	var rules []string
	for g := range 500 {
		rules = append(rules, fmt.Sprintf(`{"action": "accept", "src": ["user%d", "group:all"], "dst": ["autogroup:member:%d"]}`, g+1, g+1))
	}
	from := households(t, users, `{"groups": {"group:all": ["user1", "user2", "user7"]}, "acls": [`+strings.Join(rules, ",")+`]}`)
	s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.NodePut{Node: household(10_001, users)})
	to := netmap.SceneOf(from.Next(s, touched), from)
	joined, _ := to.Nodes.Get(10_001)
	cache := netmap.NewCache("")
	entry, err := netmap.ResponseMessage(&netmap.Response{PeersChanged: []*netmap.Node{netmap.RenderPeer(to, joined)}, UserProfiles: []netmap.Profile{{LoginName: "user2", DisplayName: "user2", Groups: []string{"group:all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	heard := 0
	for n := range from.Nodes.All() {
		messages, err := cache.UpdateMessages(from, to, n.ID, touched)
		if err != nil {
			t.Fatal(err)
		}
		m := slices.Concat(messages...)
		if len(m) > 0 {
			heard++
		}
		if len(m) > len(entry)+16 {
			t.Fatalf("node %d is told %d bytes, an entry has %d", n.ID, len(m), len(entry))
		}
	}
	if heard == 0 {
		t.Error("nobody is told")
	}
	t.Logf("%d of 10,000 viewers are told, at most %d bytes", heard, len(entry)+16)
}

// A full map that viewers do not share leaves little garbage: the documents that it is made of are several times as long. If
// thousands of nodes reconnect, most of the work would otherwise be to collect it.
func TestFigureFullMapLeavesLittleGarbage(t *testing.T) {
	const nodes = 2000
	s, cache := teams(nodes, 20), netmap.NewCache("")
	full := func(viewer mesh.NodeID) int {
		m, err := cache.FullMessage(s, viewer, time.Unix(1_800_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		return len(m)
	}
	for viewer := range mesh.NodeID(100) { // what viewers share
		full(viewer + 1)
	}
	sent := 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for viewer := mesh.NodeID(100); viewer < nodes; viewer++ {
		sent += full(viewer + 1)
	}
	runtime.ReadMemStats(&after)
	perByte := float64(after.TotalAlloc-before.TotalAlloc) / float64(sent)
	t.Logf("%d bytes per full map, %.1f bytes allocated for each", sent/(nodes-100), perByte)
	if perByte > 10 { // it was 108 when each map had buffers of its own
		t.Error("more than 10")
	}
}
