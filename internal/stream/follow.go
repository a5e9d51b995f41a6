package stream

import (
	"context"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// place is a world that streams can be at.
type place struct {
	scene *netmap.Scene
	last  *step // that led to this place
}

// step is the way from one place to the next. Steps hold no scenes, so a slow stream keeps only the scene that it last used and a
// few ids in memory, not every scene since.
type step struct {
	told []mesh.NodeID // as returned by Audience.Told
	next *step         // set before the next place is visible to streams
}

// toldBetween returns the nodes about which viewers may have to be told something on the way from one place to a later one, sorted and
// without duplicates. Nil means unknown: the stream has to compare everything, which is cheaper anyway if they are more than a
// quarter of the nodes.
func toldBetween(from, to *place) []mesh.NodeID {
	if next := from.last.next; next == to.last && next.told != nil {
		return slices.Clip(next.told) // shared by all streams that keep up
	}
	length := 0
	for k := from.last; k != to.last; {
		k = k.next
		if length += len(k.told); k.told == nil || length > to.scene.Nodes.Len()/4+64 {
			return nil
		}
	}
	ids := make([]mesh.NodeID, 0, length)
	for k := from.last; k != to.last; {
		k = k.next
		ids = append(ids, k.told...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// maxQuestions limits how often a change may be compared with a viewpoint. If it would take
// more, all streams are woken.
const maxQuestions = 1 << 17

// follow moves the hub through the worlds of the ledger until ctx ends.
func (h *Hub) follow(ctx context.Context) {
	for {
		h.mu.Lock()
		h.move()
		more := h.cursor.More()
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-more:
		}
	}
}

// move moves to the newest world, together with all streams except those that may have to
// send something: these are left behind and get a turn. So a change costs nothing for a stream
// that it does not concern. h.mu must be held.
func (h *Hub) move() {
	from := h.at
	touched := h.cursor.Skip()
	if h.cursor.World() == from.scene.World {
		return
	}
	scene := h.cache.Scene(h.cursor.World())
	audience := netmap.AudienceOf(from.scene, scene, touched)
	from.last.next = &step{told: audience.Told()}
	h.at = &place{scene, from.last.next}
	woken := 0
	wake := func(s *session) {
		left := s.behind.CompareAndSwap(nil, from)
		if !s.ready {
			return
		}
		woken++
		if left {
			h.turns.request(s)
		}
	}
	if audience.Everyone() || len(audience.Viewers())*len(h.groups) > maxQuestions {
		for s := range h.running {
			h.leave(s)
			h.join(s)
			wake(s)
		}
	} else {
		for _, id := range audience.Viewers() {
			if s := h.open[id]; s != nil {
				h.leave(s)
				h.join(s)
				wake(s)
			}
		}
		for v, members := range h.groups {
			if audience.Includes(v) {
				for s := range members {
					wake(s)
				}
			}
		}
	}
	h.woken.Store(max(int64(woken), h.woken.Load()/2)) // it declines slowly, because a quiet change may be followed by others
}

// join adds a stream to the group of its viewpoint. h.mu must be held.
func (h *Hub) join(s *session) {
	s.view = netmap.Viewpoint{}
	if n, ok := h.at.scene.Nodes.Get(s.node); ok {
		s.view = h.at.scene.Viewpoint(n)
	}
	members := h.groups[s.view]
	if members == nil {
		members = map[*session]struct{}{}
		h.groups[s.view] = members
	}
	members[s] = struct{}{}
}

// leave removes a stream from its group. h.mu must be held.
func (h *Hub) leave(s *session) {
	members := h.groups[s.view]
	if delete(members, s); len(members) == 0 {
		delete(h.groups, s.view)
	}
}

// newest returns the newest scene, from which on the stream is told about changes.
func (h *Hub) newest(s *session) *netmap.Scene {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.move()
	s.behind.Store(nil)
	s.sending.Store(int64(h.at.scene.Rev))
	return h.at.scene
}

// settle makes a stream that has sent its first map follow changes.
func (h *Hub) settle(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.ready = true
	if s.behind.Load() != nil {
		h.turns.request(s)
	}
}

// take returns where a stream is that was left behind, and where it has to go.
func (h *Hub) take(s *session) (from, to *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from = s.behind.Swap(nil)
	s.sending.Store(int64(from.scene.Rev))
	return from, h.at
}

// rests returns the scene that an idle stream is at, or nil if it was left behind.
func (h *Hub) rests(s *session) *netmap.Scene {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.behind.Load() != nil {
		return nil
	}
	return h.at.scene
}
