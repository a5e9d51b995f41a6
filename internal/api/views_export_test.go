package api

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// NodeCache exposes the cache to tests that use their own snapshots and times.
type NodeCache struct{ cache nodeCache }

// Encoded returns a node as lists show it, cached if possible.
func (c *NodeCache) Encoded(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) []byte {
	return c.cache.encoded(s, n, at)
}

// Len returns the number of cached nodes.
func (c *NodeCache) Len() int { return len(c.cache.entries) }

// EncodedNode returns a node encoded without the cache.
func EncodedNode(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) []byte {
	return encoded(nodeShape(s, n, at))
}
