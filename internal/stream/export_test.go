package stream

import (
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// Conn returns the number of a node's stream.
func (h *Hub) Conn(id mesh.NodeID) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[id].conn
}

// News is a message that is no keep-alive.
func News(v any) ([]byte, error) { return news(v, keepAlive(true), true) }

// KeepAliveSize is the length of a keep-alive message.
func KeepAliveSize() int { return len(keepAlive(true)) }

// Rev returns the revision that a node's stream has reached.
func (h *Hub) Rev(id mesh.NodeID) mesh.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mesh.Revision(h.open[id].rev.Load())
}

// Library keeps encoded blocks, as a hub does.
type Library = library

// NewLibrary returns an empty one.
func NewLibrary() *Library { return newLibrary("") }

// Full returns a whole message with a full map.
func (l *library) Full(s *netmap.Scene, viewer *mesh.Node, now time.Time) ([]byte, error) {
	parts, err := l.full(s, viewer, now)
	return slices.Concat(parts...), err
}

// News is what a viewer is sent between two scenes.
func (l *library) News(from, to *netmap.Scene, viewer mesh.NodeID, touched []mesh.NodeID) ([]byte, error) {
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	b := l.bulletin(from, to, from.Viewpoint(before), to.Viewpoint(after), touched)
	if b.err != nil {
		return nil, b.err
	}
	if b.tells(from, to, before, after) {
		r := b.correction(viewer)
		if r == nil {
			return b.message, nil
		}
		m, err := news(r, l.alive, true)
		return slices.Concat(b.message, m), err
	}
	r := netmap.Personal(from, to, viewer, b.response)
	if r == nil {
		return nil, nil
	}
	return news(r, l.alive, true)
}
