package stream

import (
	"context"
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

// Rev returns the revision that a node's stream has reached.
func (h *Hub) Rev(id mesh.NodeID) mesh.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mesh.Revision(h.rev(h.open[id]))
}

// SpoilUpdates changes every update that streams of the hub send from now on. No
// stream may be open.
func (h *Hub) SpoilUpdates(spoil func(netmap.Update) netmap.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cache = spoiled{h.cache, spoil}
}

type spoiled struct {
	encoder
	spoil func(netmap.Update) netmap.Update
}

func (s spoiled) Update(from, to *netmap.Scene, v netmap.Viewer, touched []mesh.NodeID) (netmap.Update, error) {
	u, err := s.encoder.Update(from, to, v, touched)
	return s.spoil(u), err
}

// BeforeFull calls do before each full map is encoded. No stream may be open.
func (h *Hub) BeforeFull(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cache = preceded{h.cache, do}
}

type preceded struct {
	encoder
	do func()
}

func (p preceded) Full(s *netmap.Scene, v netmap.Viewer, now time.Time) ([][]byte, error) {
	p.do()
	return p.encoder.Full(s, v, now)
}

// IsBehind reports whether a node's stream has to move on.
func (h *Hub) IsBehind(id mesh.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[id].behind.Load() != nil
}

// RequestSamples requests samples, as Run does once a minute.
func (h *Hub) RequestSamples() { h.requestSamples() }

// VerifySample waits for a sample and verifies it, as Run does.
func (h *Hub) VerifySample() { h.verify(<-h.samples) }

// Follow wakes streams when the network changes, as Run does.
func (h *Hub) Follow(ctx context.Context) { h.follow(ctx) }

// Forget makes the hub not wake the stream of a node when its peers change.
func (h *Hub) Forget(id mesh.NodeID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(h.open[id])
}

// These are exported for TestBurstIsOverOnce.
type Burst struct{ burst }

const (
	ManyFulls  = manyFulls
	BurstPause = burstPause
)

func (b *Burst) Add(now time.Time)         { b.add(now.UnixNano()) }
func (b *Burst) IsOver(now time.Time) bool { return b.isOver(now.UnixNano()) }
