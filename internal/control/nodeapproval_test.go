package control_test

import (
	"net/netip"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestRoutesOfANodeAreServedOnlyWhileItIsApproved(t *testing.T) {
	s := open(t)
	lan := netip.MustParsePrefix("10.1.0.0/16")
	route := []mesh.Route{{ID: 1, Prefix: lan, Enabled: true, Decided: true}}
	put(t, s, mesh.Node{NeedsApproval: true, RoutableIPs: []netip.Prefix{lan}, AllRoutes: route}, mesh.Node{})
	for _, approved := range []bool{true, false, true} {
		n, err := s.Nodes.SetApproval(t.Context(), admin, "1", approved, "")
		if err != nil || n.NeedsApproval == approved {
			t.Fatalf("%+v, %v", n, err)
		}
		n = s.node(t, 1) // with the router that the commit elected
		if (len(n.Routes) == 1) != approved || (len(n.Primary) == 1) != approved || !n.AllRoutes[0].Enabled {
			t.Errorf("approved %t: serves %v, primary for %v, all %+v", approved, n.Routes, n.Primary, n.AllRoutes)
		}
		rev := s.ledger.World().Rev
		if _, err := s.Nodes.SetApproval(t.Context(), admin, "1", approved, ""); err != nil || s.ledger.World().Rev != rev {
			t.Errorf("the same again is revision %d after %d, %v", s.ledger.World().Rev, rev, err)
		}
	}
}

func TestManyNodesAreApprovedAtOnce(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{NeedsApproval: true}, mesh.Node{NeedsApproval: true}, mesh.Node{}, mesh.Node{NeedsApproval: true})
	waiting := func() (list []mesh.NodeID) {
		for n := range s.ledger.World().Nodes.All() {
			if n.NeedsApproval {
				list = append(list, n.ID)
			}
		}
		return list
	}
	results, err := s.Nodes.ChangeMany(t.Context(), admin, []int64{1, 2, 3, 9}, control.NodesChange{Action: control.BulkApprove})
	if err != nil || len(results) != 4 || results[2].Refused != nil || results[3].Refused == nil {
		t.Fatalf("%+v, %v", results, err)
	}
	if got := waiting(); len(got) != 1 || got[0] != 4 {
		t.Errorf("after the approval of others, %v wait", got)
	}
	if _, err := s.Nodes.ChangeMany(t.Context(), admin, []int64{2}, control.NodesChange{Action: control.BulkWithdraw}); err != nil || len(waiting()) != 2 {
		t.Errorf("%v wait, %v", waiting(), err)
	}
}
