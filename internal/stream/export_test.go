package stream

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// Conn returns the number of a node's stream.
func (h *Hub) Conn(id mesh.NodeID) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[id].conn
}

// Rev returns the revision that a node's stream has reached.
func (h *Hub) Rev(id mesh.NodeID) mesh.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mesh.Revision(h.open[id].rev.Load())
}
