package netmap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// large returns a world of ten thousand nodes, and the world after an endpoint change.
func large() (from, to *netmap.Scene) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)})
	d := s.Edit()
	for id := range mesh.NodeID(10_000) {
		n := meshgen.Node(id+1, 1)
		n.Host = `{"Hostname":"host","OS":"linux","Services":[{"Proto":"peerapi4","Port":1}]}`
		d.Apply(2, mesh.NodePut{Node: n}, mesh.NodeNet{ID: id + 1, Net: meshgen.Net(int(id))})
	}
	before := d.Freeze()
	after, _ := mesh.Apply(before, 3, mesh.NodeNet{ID: 7, Net: meshgen.Net(1)})
	from = scene(before, nil)
	return from, scene(after, from)
}

// BenchmarkShared measures the update for an endpoint change, which all viewers of a
// class share.
func BenchmarkShared(b *testing.B) {
	from, to := large()
	viewer, _ := to.Nodes.Get(1)
	for b.Loop() {
		if netmap.Shared(from, to, to.Viewpoint(viewer), to.Viewpoint(viewer), []mesh.NodeID{7}) == nil {
			b.Fatal("nothing to say")
		}
	}
}

// BenchmarkSharedWithoutHint measures the same without knowing which node changed.
func BenchmarkSharedWithoutHint(b *testing.B) {
	from, to := large()
	viewer, _ := to.Nodes.Get(1)
	for b.Loop() {
		if netmap.Shared(from, to, to.Viewpoint(viewer), to.Viewpoint(viewer), nil) == nil {
			b.Fatal("nothing to say")
		}
	}
}

func BenchmarkFull(b *testing.B) {
	_, to := large()
	for b.Loop() {
		netmap.Full(to, 1)
	}
}

// BenchmarkVerifyUpdate measures what a running server does once a minute if something
// changes.
func BenchmarkVerifyUpdate(b *testing.B) {
	from, to := large()
	v := netmap.Viewer{Node: 1, Compress: true}
	u, err := netmap.NewCache("").Update(from, to, v, []mesh.NodeID{7})
	if err != nil || len(u.Messages) != 1 {
		b.Fatalf("%d messages, %v", len(u.Messages), err)
	}
	for b.Loop() {
		if diff := netmap.Verify(from, to, v, u.Messages); diff != "" {
			b.Fatal(diff)
		}
	}
}

// BenchmarkVerifyFull measures what a running server does once a minute if nodes
// connect.
func BenchmarkVerifyFull(b *testing.B) {
	_, to := large()
	v := netmap.Viewer{Node: 1, Compress: true}
	parts, err := netmap.NewCache("").Full(to, v, time.Unix(1_800_000_000, 0))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if diff := netmap.Verify(nil, to, v, parts); diff != "" {
			b.Fatal(diff)
		}
	}
}

// teams returns a mesh in which each node sees only the nodes of its own team.
func teams(nodes, teams int) *netmap.Scene {
	d := mesh.Empty().Edit()
	rules, tags := "", ""
	for i := range teams {
		rules += fmt.Sprintf(`{"action": "accept", "src": ["tag:t%d"], "dst": ["tag:t%d:22"]},`, i, i)
		tags += fmt.Sprintf(`"tag:t%d": [],`, i)
	}
	d.Apply(1, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: `{"tagOwners": {` + tags + `}, "acls": [` + rules + `]}`}})
	for id := range mesh.NodeID(nodes) {
		n := meshgen.Node(id+1, 0)
		n.Tags, n.CapVersion = []string{fmt.Sprintf("tag:t%d", int(id)%teams)}, 140
		d.Apply(2, mesh.NodePut{Node: n}, mesh.NodeNet{ID: id + 1, Net: meshgen.Net(int(id))})
	}
	return scene(d.Freeze(), nil)
}

// BenchmarkSparseFull measures the full map of a viewer that sees one in 200 of 20,000 nodes.
func BenchmarkSparseFull(b *testing.B) {
	const nodes = 20_000
	s := teams(nodes, 200)
	cache, size, viewer := netmap.NewCache(""), 0, mesh.NodeID(0)
	for b.Loop() {
		m, err := cache.FullMessage(s, 1+viewer%nodes, time.Unix(1_800_000_000, 0))
		if err != nil {
			b.Fatal(err)
		}
		viewer, size = viewer+1, len(m)
	}
	b.ReportMetric(float64(size), "bytes")
}
