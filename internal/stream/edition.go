package stream

import (
	"encoding/binary"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// edition is all the news between two worlds.
type edition struct {
	from, to *netmap.Scene

	mu        sync.Mutex
	bulletins map[pair]*bulletin   // guarded by mu
	articles  map[string]*bulletin // guarded by mu; by what can be seen of what changed
}

// pair is a viewpoint before and after.
type pair struct{ before, after netmap.Viewpoint }

// bulletin is the news from one viewpoint.
type bulletin struct {
	once     sync.Once
	response *netmap.Response // nil: nothing to say
	message  []byte
	whole    map[mesh.NodeID]bool // the nodes that it names whole
	err      error
}

// edition returns that between two scenes.
func (l *library) edition(from, to *netmap.Scene) *edition {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.recent { // the newest first
		e := l.recent[(l.next-1-i+2*recentEditions)%recentEditions]
		if e == nil {
			break
		}
		if e.from == from && e.to == to {
			return e
		}
	}
	e := &edition{from: from, to: to, bulletins: map[pair]*bulletin{}, articles: map[string]*bulletin{}}
	l.recent[l.next] = e
	l.next = (l.next + 1) % recentEditions
	return e
}

// bulletin returns the news from a viewpoint.
func (l *library) bulletin(from, to *netmap.Scene, before, after netmap.Viewpoint, touched []mesh.NodeID) *bulletin {
	e := l.edition(from, to)
	b := e.bulletin(pair{before, after}, touched)
	b.once.Do(func() {
		if b.response = netmap.Shared(from, to, before, after, touched); b.response != nil {
			b.message, b.err = news(b.response, l.alive, true)
			if changed := b.response.PeersChanged; len(changed) > 0 {
				b.whole = make(map[mesh.NodeID]bool, len(changed))
				for _, n := range changed {
					b.whole[n.ID] = true
				}
			}
		}
	})
	return b
}

// manyTouched is where to look at what each viewpoint sees costs more than to put
// its news together.
const manyTouched = 64

// bulletin finds the bulletin of a viewpoint. Viewpoints from which the same is
// seen of what changed share one.
func (e *edition) bulletin(p pair, touched []mesh.NodeID) *bulletin {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.bulletins[p]; ok {
		return b
	}
	b := &bulletin{}
	if p.before == p.after && touched != nil && len(touched) <= manyTouched && netmap.SightOnly(e.from, e.to, p.after, touched) {
		key := e.sight(p, touched)
		if shared, ok := e.articles[key]; ok {
			b = shared
		} else {
			e.articles[key] = b
		}
	}
	e.bulletins[p] = b
	return b
}

// sight says which of the nodes are seen before and after.
func (e *edition) sight(p pair, touched []mesh.NodeID) string {
	var before, after uint64
	for i, id := range touched {
		if n, ok := e.from.Node(id); ok && e.from.Shows(p.before, n) {
			before |= 1 << i
		}
		if n, ok := e.to.Node(id); ok && e.to.Shows(p.after, n) {
			after |= 1 << i
		}
	}
	return string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, before), after))
}

// few is up to how many nodes news are put together for each viewer, if they name
// the viewer itself.
const few = 8

// tells reports whether a viewer is sent the message as it is, with the correction
// if there is one. It may hold a patch for the viewer itself, which clients do not
// apply: when many nodes changed at once, that is far cheaper than to encode it
// without for each of them.
func (b *bulletin) tells(from, to *netmap.Scene, before, after *mesh.Node) bool {
	switch r := b.response; {
	case !netmap.Serves(from, to, after):
		return false
	case before == after:
		return !b.whole[after.ID] || len(b.whole) > few
	case r == nil || len(r.PeersChangedPatch) <= few || !netmap.SameSelf(before, after) || netmap.Router(before) || netmap.Router(after):
		return false
	default:
		return !b.whole[after.ID]
	}
}

// correction is what a viewer is sent after the message, nil if that is nothing. A
// message that names the viewer whole makes it a peer of itself, as when a policy
// lets all nodes of its class see each other.
func (b *bulletin) correction(viewer mesh.NodeID) *netmap.Response {
	if !b.whole[viewer] {
		return nil
	}
	return &netmap.Response{PeersRemoved: []mesh.NodeID{viewer}}
}
