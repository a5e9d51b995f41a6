package netmap_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// A change of membership reaches exactly the viewers whose maps it changes, like a change of the policy.
func TestMembershipChangeIsSentOnlyToThoseItAffects(t *testing.T) {
	const doc = `{"tagOwners": {"tag:db": [], "tag:web": []}, "acls": [
		{"action": "accept", "src": ["group:dev"], "dst": ["tag:db:5432"]},
		{"action": "accept", "src": ["autogroup:member"], "dst": ["tag:web:80"]}],
		"ssh": [{"action": "accept", "src": ["user2@"], "dst": ["tag:web"], "users": ["root"]}]}`
	const laptop, phone, other, db, web = 1, 2, 3, 4, 5
	d := mesh.Empty().Edit()
	d.Apply(1, mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: doc}},
		mesh.NodePut{Node: meshgen.Node(laptop, 1)}, mesh.NodePut{Node: meshgen.Node(phone, 1)}, mesh.NodePut{Node: meshgen.Node(other, 2)})
	for id, tag := range map[mesh.NodeID]string{db: "tag:db", web: "tag:web"} {
		n := meshgen.Node(id, 0)
		n.Tags = []string{tag}
		d.Apply(1, mesh.NodePut{Node: n})
	}
	from := netmap.SceneOf(policy.NewWorld(d.Freeze(), nil), nil)
	change := func(groups ...string) *netmap.Scene {
		u := *meshgen.User(1)
		u.Groups = groups
		s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.UserPut{User: &u})
		if len(touched) > 0 {
			t.Errorf("touched %v", touched)
		}
		return netmap.SceneOf(from.Next(s, touched), from)
	}
	told := func(to *netmap.Scene) (list []mesh.NodeID) {
		cache := netmap.NewCache("")
		for _, id := range []mesh.NodeID{laptop, phone, other, db, web} {
			u, err := cache.Update(from, to, netmap.Viewer{Node: id, Compress: true}, nil)
			if err != nil || u.Full || u.Gone {
				t.Errorf("node %d: %+v, %v", id, u, err)
			}
			if len(u.Messages) > 0 {
				list = append(list, id)
			}
		}
		return list
	}
	same := func(got []mesh.NodeID, want ...mesh.NodeID) bool {
		if len(got) != len(want) {
			return false
		}
		for i := range got {
			if got[i] != want[i] {
				return false
			}
		}
		return true
	}
	if got := told(change("unused")); len(got) != 0 {
		t.Errorf("a group that no rule names is told to %v", got)
	}
	joined := change("dev", "unused")
	// The web server is told the new marks of its peers laptop and phone.
	if got := told(joined); !same(got, laptop, phone, db, web) {
		t.Errorf("a new member is told to %v", got)
	}
	if n, _ := joined.Nodes.Get(other); joined.Class(n) != from.Class(n) || joined.Rules() != from.Rules() {
		t.Error("another user's node changed its class, or the policy was compiled again")
	}
	if got := policy.Reclassified(from.World, joined.World); !same(got, laptop, phone) {
		t.Errorf("reclassified %v", got)
	}
	from = joined
	if got := told(change("unused")); !same(got, laptop, phone, db, web) {
		t.Errorf("a member who left is told to %v", got)
	}
}
