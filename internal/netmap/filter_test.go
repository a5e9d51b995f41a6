package netmap_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// A client that is sent another full map keeps the parts of its filter that the
// map does not name.
func TestFiltersOfAnOlderMapAreTakenBack(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	scene := func(text string) *netmap.Scene {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return netmap.SceneOf(policy.WorldOf(s, doc), nil)
	}
	from := scene(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]}]}`)
	to := scene(`{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:member:22"]}]}`)
	n, _ := s.Nodes.Get(1)
	var got, want netmap.View
	got.Take(netmap.Full(from, n.ID))
	got.Take(netmap.Full(to, n.ID))
	want.Take(netmap.Full(to, n.ID))
	if got.Differs(&want) == "" {
		t.Fatal("nothing is to be taken back")
	}
	got.Take(netmap.Dropped(from, to, n, n))
	if diff := got.Differs(&want); diff != "" {
		t.Error(diff)
	}
	if r := netmap.Dropped(to, to, n, n); r != nil {
		t.Errorf("%+v", r)
	}
}
