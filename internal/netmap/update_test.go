package netmap_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// When all names change, viewers are sent a full map, unless a policy hides all
// peers at the same time: clients ignore an empty list of peers.
func TestFullMapIsNotSentToRemoveAllPeers(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	from := netmap.SceneOf(policy.NewWorld(s, nil), nil)
	s, touched := mesh.Apply(s, 2, s.SettingPutFor(mesh.SettingDNS, `{"baseDomain":"new.example","magicDNS":true}`, "config", true, 1)...)
	renamed := netmap.SceneOf(from.Next(s, touched), from)
	hidden := netmap.SceneOf(policy.WorldOf(s, &lang.Doc{}), from)
	v := netmap.Viewer{Node: 1, Compress: true}
	if u, err := netmap.NewCache("").Update(from, renamed, v, nil); err != nil || !u.Full {
		t.Errorf("renamed: %+v, %v", u, err)
	}
	if u, err := netmap.NewCache("").Update(from, hidden, v, nil); err != nil || u.Full || len(u.Messages) == 0 {
		t.Errorf("renamed and hidden: %+v, %v", u, err)
	}
}

// Notes are for administrators: neither the node nor its peers are sent anything.
func TestNotesAreNotSent(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	from := netmap.SceneOf(policy.NewWorld(s, nil), nil)
	noted := meshgen.Node(1, 1)
	noted.Note, noted.UpdatedAt = mesh.Note{Text: "rack 7", Author: "local:root", At: 2}, 2
	s, touched := mesh.Apply(s, 2, mesh.NodePut{Node: noted})
	to := netmap.SceneOf(from.Next(s, touched), from)
	for _, v := range []netmap.Viewer{{Node: 1, Compress: true}, {Node: 1}, {Node: 2, Compress: true}, {Node: 2}} {
		if u, err := netmap.NewCache("").Update(from, to, v, touched); err != nil || u.Full || len(u.Messages) != 0 {
			t.Errorf("%+v: %+v, %v", v, u, err)
		}
	}
}
