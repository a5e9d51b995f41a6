package netmap_test

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// When many nodes open new streams at once, their peers are sent nothing, and full maps that are already encoded stay
// valid.
func TestNodeWithNewStreamCostsItsPeersNothing(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)})
	d := s.Edit()
	for id := range mesh.NodeID(3*mesh.BlockSize - 1) {
		d.Apply(2, mesh.NodePut{Node: meshgen.Node(id+1, 1)}, mesh.Online{ID: id + 1, Replica: "a", Conn: 1, At: 5})
	}
	before := d.Freeze()
	cache := netmap.NewCache("")
	from := scene(before, nil)
	full := func(s *netmap.Scene) [][]byte {
		parts, err := cache.Full(s, netmap.Viewer{Node: 1, Compress: true}, time.Unix(1_800_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	first := full(from)
	reopened := func(e mesh.Event) *netmap.Scene {
		after, _ := mesh.Apply(before, 3, e)
		return scene(after, from)
	}

	to := reopened(mesh.Online{ID: 150, Replica: "b", Conn: 2, At: 5})
	audience := netmap.AudienceOf(from, to, []mesh.NodeID{150})
	viewer, _ := to.Nodes.Get(1)
	if audience.Everyone() || audience.Includes(to.Viewpoint(viewer)) {
		t.Error("peers of a node are woken when it opens a new stream")
	}
	if told := audience.Told(); told == nil || len(told) > 0 {
		t.Errorf("those who are woken for something else look at it: %v", told)
	}
	same := func(second [][]byte) (n int) {
		for i, part := range second {
			if i < len(first) && len(part) > 0 && &part[0] == &first[i][0] {
				n++
			}
		}
		return n
	}
	// All but the length, the viewer's own frame and the rest of its block.
	if got, want := same(full(to)), len(first)-3; got != want {
		t.Errorf("%d of %d parts of a full map are not encoded again, want %d", got, len(first), want)
	}

	to = reopened(mesh.Offline{ID: 150, At: 6})
	if !netmap.AudienceOf(from, to, []mesh.NodeID{150}).Includes(to.Viewpoint(viewer)) {
		t.Error("peers of a node are not woken when it disconnects")
	}
	if got, most := same(full(to)), len(first)-4; got > most {
		t.Errorf("%d of %d parts of a full map are not encoded again although a node disconnected, want at most %d", got, len(first), most)
	}
}
