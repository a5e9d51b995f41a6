package mesh_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func TestSuspensionAppliesToTheUntaggedNodesOfTheUser(t *testing.T) {
	s := mesh.Empty()
	commit := func(evs ...mesh.Event) { s, _ = mesh.Apply(s, s.Rev+1, mesh.Settle(s, evs)...) }
	want := func(step string, suspended ...mesh.NodeID) {
		t.Helper()
		var got []mesh.NodeID
		for n := range s.Nodes.All() {
			if n.Suspended() {
				got = append(got, n.ID)
			}
			if n.Suspended() && n.SuspendedAt != 7 {
				t.Errorf("%s: node %s since %d", step, n.ID, n.SuspendedAt)
			}
		}
		if diff := cmp.Diff(suspended, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	tagged := meshgen.Node(3, 0)
	tagged.Tags, tagged.CreatedBy = []string{"tag:a"}, 1
	commit(mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.NodePut{Node: meshgen.Node(1, 1)},
		mesh.NodePut{Node: meshgen.Node(2, 2)}, mesh.NodePut{Node: tagged}, mesh.NodePut{Node: meshgen.Node(4, 1)},
		mesh.NodeNet{ID: 1, Net: meshgen.Net(1)}, mesh.Online{ID: 1, Replica: "a", Conn: 1, At: 1})
	before, _ := s.Nodes.Get(1)
	want("at first")
	commit(mesh.UserPut{User: meshgen.User(1).Suspend(mesh.SuspendedByAdmin, 7)})
	want("suspended", 1, 4)
	commit(mesh.NodePut{Node: meshgen.Node(5, 1)})
	want("a node that nothing else prevents from joining", 1, 4, 5)
	moved := *meshgen.Node(2, 1)
	commit(mesh.NodePut{Node: &moved})
	want("a node of somebody else becomes theirs", 1, 2, 4, 5)
	claimed := *meshgen.Node(4, 0)
	claimed.Tags = []string{"tag:a"}
	commit(mesh.NodePut{Node: &claimed}, mesh.NodeGone{ID: 5})
	want("one is tagged, one deleted", 1, 2)
	commit(mesh.UserPut{User: meshgen.User(1)}, mesh.NodeGone{ID: 2})
	want("restored")
	if after, _ := s.Nodes.Get(1); !reflect.DeepEqual(before, after) {
		t.Errorf("the node is not as before: %+v, %+v", before, after)
	}
}

func TestRouteMovesAwayFromASuspendedUser(t *testing.T) {
	h := newHall(t, 1)
	other := meshgen.Node(2, 2)
	other.RoutableIPs = h.s.Nodes.ByMachine(meshgen.MachineKey(1))[0].RoutableIPs
	other.Routes = other.RoutableIPs
	other.AllRoutes = []mesh.Route{{ID: 2, Prefix: office(), Enabled: true}}
	h.commit(mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.NodePut{Node: other})
	h.online(1)
	h.online(2)
	h.want(1, "the first")
	h.commit(mesh.UserPut{User: meshgen.User(1).Suspend(mesh.SuspendedByAdmin, 7)})
	h.want(2, "its owner is suspended")
}
