package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A node that moves to another replica, reconnects or reports while offline has gone
// neither online nor offline. A node that is deleted while online has gone offline.
func TestOnlyTransitionsBecomePresence(t *testing.T) {
	st := openSQLite(t)
	l := run(t, ledger.Config{Store: st})
	const minute, start = mesh.Time(60_000_000), meshgen.Start
	commit(t, l, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)})
	commit(t, l, mesh.Offline{ID: 1, At: start})
	commit(t, l, mesh.Online{ID: 1, Replica: "a", Conn: 1, At: start + 1*minute})
	commit(t, l, mesh.Online{ID: 1, Replica: "b", Conn: 2, At: start + 1*minute})
	commit(t, l, mesh.Offline{ID: 1, At: start + 3*minute})
	commit(t, l, mesh.Offline{ID: 1, At: start + 4*minute})
	commit(t, l, mesh.NodePut{Node: meshgen.Node(2, 1)}, mesh.Online{ID: 2, Replica: "a", Conn: 3, At: start + 5*minute})
	commit(t, l, mesh.Online{ID: 9, Replica: "a", Conn: 4, At: start + 6*minute}) // node 9 does not exist
	commit(t, l, mesh.Offline{ID: 2, At: start + 7*minute}, mesh.Online{ID: 2, Replica: "b", Conn: 5, At: start + 8*minute})
	commit(t, l, mesh.NodePut{Node: meshgen.Node(2, 1)})
	deleted := commit(t, l, mesh.NodeGone{ID: 1}, mesh.NodeGone{ID: 2})

	list, err := st.(history.Store).Transitions(t.Context(), history.Position{}, history.Position{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range list {
		at := fmt.Sprint((v.At - start) / minute)
		if v.Position.Rev == deleted {
			at = "its end"
		}
		got = append(got, fmt.Sprintf("node %d at %s: %t", v.Node, at, v.Online))
	}
	want := []string{"node 1 at 1: true", "node 1 at 3: false", "node 2 at 5: true", "node 2 at 7: false", "node 2 at 8: true", "node 2 at its end: false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}
