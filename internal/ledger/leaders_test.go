package ledger_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A change of the primary router is recorded in the revision that causes it. Other changes
// to routers are not recorded.
func TestEveryLeaderIsRecordedOnce(t *testing.T) {
	st := openSQLite(t)
	l := run(t, ledger.Config{Store: st, History: st.(history.Store)})
	office := netip.MustParsePrefix("192.168.7.0/24")
	router := func(id mesh.NodeID) *mesh.Node {
		n := meshgen.Node(id, 1)
		n.RoutableIPs = []netip.Prefix{office}
		n.Routes = n.RoutableIPs
		n.AllRoutes = []mesh.Route{{ID: mesh.RouteID(id), Prefix: office, Enabled: true}}
		return n
	}
	commit(t, l, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: router(1)})
	commit(t, l, mesh.NodePut{Node: router(2)})
	commit(t, l, mesh.Online{ID: 1, Replica: "a", Conn: 1, At: 1})
	commit(t, l, mesh.Online{ID: 2, Replica: "a", Conn: 2, At: 2})
	commit(t, l, mesh.Offline{ID: 1, At: 3})
	commit(t, l, mesh.Online{ID: 1, Replica: "a", Conn: 3, At: 4})
	commit(t, l, mesh.NodeGone{ID: 2})
	commit(t, l, mesh.NodeGone{ID: 1})

	list, err := st.(history.Store).Leaders(t.Context(), office, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range list {
		got = append(got, fmt.Sprintf("%d: %d %s", v.Rev, v.Node, v.Name))
	}
	want := []string{"8: 0 ", "7: 1 host-1", "5: 2 host-2", "1: 1 host-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}
