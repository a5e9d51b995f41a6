package api

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// NodeCache is for tests that take snapshots and times of their own.
type NodeCache struct{ cache nodeCache }

// Encoded is a node as lists show it.
func (c *NodeCache) Encoded(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) []byte {
	return c.cache.encoded(s, n, at)
}

// Len is the number of nodes that are kept.
func (c *NodeCache) Len() int { return len(c.cache.entries) }

// EncodedNode is a node made anew.
func EncodedNode(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) []byte {
	return encoded(nodeShape(s, n, at))
}
