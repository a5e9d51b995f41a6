package netmap

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Verify detects every fault in shared data from what one viewer is sent. Two viewers are
// served before the fault, so that everything is cached.
func TestFaultsInSharedBytesAreFound(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)})
	for id := range mesh.NodeID(100) {
		s, _ = mesh.Apply(s, 2, mesh.NodePut{Node: meshgen.Node(id+1, 1)})
	}
	from := SceneOf(policy.NewWorld(s, nil), nil)
	after, touched := mesh.Apply(s, 3, mesh.NodeNet{ID: 5, Net: meshgen.Net(1)}, mesh.NodePut{Node: meshgen.Node(101, 1)})
	to := SceneOf(from.Next(after, touched), from)
	for name, spoil := range map[string]func(*Cache){
		"nothing": func(*Cache) {},
		"an update is replaced": func(c *Cache) {
			for _, d := range c.recent[0].byViewpoint {
				d.messages, _ = c.messages(Viewer{Compress: true}, &Response{PeersRemoved: []mesh.NodeID{3}})
			}
		},
		"a viewer is believed not to be in an update": func(c *Cache) {
			for _, d := range c.recent[0].byViewpoint {
				d.messages, _ = c.messages(Viewer{Compress: true}, &Response{PeersChanged: []*Node{renderPeer(to, mustNode(t, to, 2))}})
			}
		},
		"peers have the frame of others": func(c *Cache) {
			b := c.blocks[64]
			for shown := range b.frames {
				b.frames[shown] = compress(appendShown(nil, b.docs, shown&^1))
			}
		},
		"peers of a viewpoint are forgotten": func(c *Cache) {
			for v := range c.blocks[64].shown {
				c.blocks[64].shown[v] = 1
			}
		},
		"a peer is encoded from an older world": func(c *Cache) {
			b := c.blocks[0]
			b.docs[5], b.frames = encode(renderPeer(from, mustNode(t, from, 5))), map[uint64][]byte{}
		},
		"settings cannot be read": func(c *Cache) {
			for _, p := range c.commons {
				p.frame = compress([]byte(`{}`))
			}
		},
		"filters are empty": func(c *Cache) {
			for _, p := range c.filters {
				p.frame = compress([]byte(`,"PacketFilters":{"base":[]}`))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCache("")
			serve := func(node mesh.NodeID) string {
				v := Viewer{Node: node, Compress: true}
				u, err := c.Update(from, to, v, touched)
				if err != nil || u.Full || u.Gone {
					t.Fatalf("%+v, %v", u, err)
				}
				if diff := Verify(from, to, v, u.Messages); diff != "" {
					return diff
				}
				full, err := c.Full(to, v, now)
				if err != nil {
					t.Fatal(err)
				}
				return Verify(nil, to, v, full)
			}
			for _, node := range []mesh.NodeID{1, 100} {
				if diff := serve(node); diff != "" {
					t.Fatalf("before the fault: %s", diff)
				}
			}
			spoil(c)
			if diff := serve(2); (diff == "") != (name == "nothing") {
				t.Errorf("after the fault: %q", diff)
			}
		})
	}
}

func mustNode(t *testing.T, s *Scene, id mesh.NodeID) *mesh.Node {
	t.Helper()
	n, ok := s.Nodes.Get(id)
	if !ok {
		t.Fatalf("no node %d", id)
	}
	return n
}
