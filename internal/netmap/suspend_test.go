package netmap_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

func TestNodeOfASuspendedUserIsToldThatItsKeyHasExpiredAndVanishesFromItsPeers(t *testing.T) {
	s := mesh.Empty()
	commit := func(evs ...mesh.Event) { s, _ = mesh.Apply(s, s.Rev+1, mesh.Settle(s, evs)...) }
	at := meshgen.Start.Add(1e12)
	commit(mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)},
		mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 2)}, mesh.NodePut{Node: meshgen.Node(3, 2)})
	before := scene(s, nil)
	commit(mesh.UserPut{User: meshgen.User(1).Suspend(mesh.SuspendedByAdmin, at)})
	suspended := scene(s, before)
	if own := netmap.Full(suspended, 1); !own.Node.KeyExpiry.Before(at.Time()) || own.Node.KeyExpiry.IsZero() || len(own.Peers) != 0 || len(own.PacketFilters["base"]) != 0 {
		t.Errorf("its own map: expiry %v, peers %v, filters %v", own.Node.KeyExpiry, own.Peers, own.PacketFilters)
	}
	if other := netmap.Full(suspended, 2); len(other.Peers) != 1 || other.Peers[0].ID != 3 {
		t.Errorf("another node has the peers %v", other.Peers)
	}
	commit(mesh.UserPut{User: meshgen.User(1)})
	restored := scene(s, suspended)
	if own := netmap.Full(restored, 1); !own.Node.KeyExpiry.IsZero() || len(own.Peers) != 2 {
		t.Errorf("restored: expiry %v, peers %v", own.Node.KeyExpiry, own.Peers)
	}
	c := netmap.NewCache("https://mesh.example.com")
	for _, step := range [][2]*netmap.Scene{{before, suspended}, {suspended, restored}} {
		for _, viewer := range []mesh.NodeID{1, 2, 3} {
			if diff := checkUpdate(c, step[0], step[1], viewer, nil); diff != "" {
				t.Errorf("node %d: %s", viewer, diff)
			}
		}
	}
}
