package netmap_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// A client remembers the exit node that a person chose by its stable ID. If no peer has this ID, the client
// blocks all traffic to the internet.
func TestImportedNodesKeepTheirStableID(t *testing.T) {
	own, imported := meshgen.Node(1, 1), meshgen.Node(2, 1)
	imported.StableID = "2"
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: &mesh.User{ID: 1, Name: "ann"}}, mesh.NodePut{Node: own}, mesh.NodePut{Node: imported})
	for viewer, want := range map[mesh.NodeID][2]string{1: {"n1", "2"}, 2: {"2", "n1"}} {
		full := netmap.Full(scene(s, nil), viewer)
		if len(full.Peers) != 1 || full.Node.StableID != want[0] || full.Peers[0].StableID != want[1] {
			t.Errorf("node %d: %s, peers %v; want %v", viewer, full.Node.StableID, full.Peers, want)
		}
	}
}
