package netmap

import (
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// These are exported for tests outside the package.
var (
	SharedServes = sharedServes
	SameSelf     = sameSelf
	IsRouter     = isRouter
	Filters      = viewerFilters
	Dropped      = dropped
	RenderPeer   = renderPeer
	RenderSelf   = renderSelf
)

// Shared returns what changed between two scenes for all viewers with the same viewpoint.
func Shared(from, to *Scene, before, after Viewpoint, touched []mesh.NodeID) *Response {
	return shared(from, to, viewpoints{before: before, after: after}, touched, &crowd{})
}

// ResponseMessage encodes a message that is not a keep-alive.
func ResponseMessage(v any) ([]byte, error) { return responseMessage(v, keepAliveMessage(true), true) }

// FullMessage returns a full map as one message.
func (c *Cache) FullMessage(s *Scene, viewer mesh.NodeID, now time.Time) ([]byte, error) {
	parts, err := c.Full(s, Viewer{Node: viewer, Compress: true}, now)
	return slices.Concat(parts...), err
}

// UpdateMessages returns the messages of an update.
func (c *Cache) UpdateMessages(from, to *Scene, viewer mesh.NodeID, touched []mesh.NodeID) ([][]byte, error) {
	u, err := c.Update(from, to, Viewer{Node: viewer, Compress: true}, touched)
	return u.Messages, err
}

// Deltas returns how many different deltas between two scenes have been rendered.
func (c *Cache) Deltas(from, to *Scene) int {
	s := c.deltaSet(from, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	distinct := map[*delta]bool{}
	for _, d := range s.byViewpoint {
		distinct[d] = true
	}
	return len(distinct)
}
