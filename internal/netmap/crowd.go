package netmap

import (
	"slices"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// crowd holds the nodes of two scenes by class, so that those that a viewpoint shows can be
// found without looking at all nodes. It is filled when it is first used.
type crowd struct {
	once sync.Once
	ids  map[classes][]mesh.NodeID // sorted
}

// classes holds the classes of a node in two scenes; Nobody if it does not exist.
type classes struct{ before, after policy.Class }

// shown returns the ids of all nodes that viewers see in either scene, sorted. They have
// the viewpoint before in the first scene, and after in the second.
func (c *crowd) shown(from, to *Scene, before, after Viewpoint) (ids []mesh.NodeID) {
	c.once.Do(func() { c.fill(from, to) })
	for k, members := range c.ids {
		if from.Rules().Connects(before.Class, k.before) || to.Rules().Connects(after.Class, k.after) {
			ids = append(ids, members...)
		}
	}
	if before.Owner != 0 {
		ids = append(ids, from.Owned(before.Owner)...)
	}
	if after.Owner != 0 {
		ids = append(ids, to.Owned(after.Owner)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (c *crowd) fill(from, to *Scene) {
	c.ids = map[classes][]mesh.NodeID{}
	add := func(id mesh.NodeID, k classes) { c.ids[k] = append(c.ids[k], id) }
	for n := range to.Nodes.All() {
		k := classes{after: to.PeerClass(n)}
		if was, ok := from.Nodes.Get(n.ID); ok {
			k.before = from.PeerClass(was)
		}
		add(n.ID, k)
	}
	for n := range from.Nodes.All() {
		if _, ok := to.Nodes.Get(n.ID); !ok {
			add(n.ID, classes{before: from.PeerClass(n)})
		}
	}
}
