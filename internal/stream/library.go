package stream

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// library keeps what streams share: scenes, news and blocks of peers, encoded.
type library struct {
	comma, end, alive []byte

	mu      sync.Mutex
	scene   *netmap.Scene            // guarded by mu; of the newest world asked for
	blocks  map[blockKey]*block      // guarded by mu
	commons map[policy.Class]*common // guarded by mu
	recent  [recentNews]*bulletin    // guarded by mu; the oldest is replaced
	next    int                      // guarded by mu
}

// recentNews is how many pairs of worlds are remembered. Streams that keep up
// share one; the others are for those that lag behind.
const recentNews = 32

func newLibrary() *library {
	return &library{
		comma: compress([]byte(",")), end: compress([]byte("]}")), alive: keepAlive(true),
		blocks: map[blockKey]*block{}, commons: map[policy.Class]*common{},
	}
}

// sceneAt returns the scene of the world a cursor is at, the same one for all
// who ask for the newest.
func (l *library) sceneAt(c *ledger.Cursor) *netmap.Scene {
	w := c.World()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scene != nil && l.scene.World == w {
		return l.scene
	}
	s := netmap.SceneOf(w, l.scene)
	if l.scene == nil || l.scene.Rev < w.Rev {
		l.scene = s
	}
	return s
}

// bulletin is the news between two worlds for a class of viewers.
type bulletin struct {
	from, to *netmap.Scene
	class    policy.Class
	once     sync.Once
	response *netmap.Response // nil: nothing to say
	message  []byte
	err      error
}

// bulletin returns the news for a class.
func (l *library) bulletin(from, to *netmap.Scene, class policy.Class, touched []mesh.NodeID) *bulletin {
	b := l.bulletinFor(from, to, class)
	b.once.Do(func() {
		if b.response = netmap.Shared(from, to, class, touched); b.response != nil {
			b.message, b.err = news(b.response, l.alive, true)
		}
	})
	return b
}

// tells reports whether a viewer is sent the message as it is. It may hold a
// patch for the viewer itself, which clients do not apply: when many nodes changed at
// once, that is far cheaper than to encode it without for each of them.
func (b *bulletin) tells(before, after *mesh.Node) bool {
	const few = 8
	switch r := b.response; {
	case before == after:
		return true
	case r == nil || len(r.PeersChangedPatch) <= few || !netmap.SameSelf(before, after):
		return false
	default:
		return !slices.ContainsFunc(r.PeersChanged, func(n *netmap.Node) bool { return n.ID == after.ID })
	}
}

func (l *library) bulletinFor(from, to *netmap.Scene, class policy.Class) *bulletin {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.recent { // the newest first
		b := l.recent[(l.next-1-i+2*recentNews)%recentNews]
		if b == nil {
			break
		}
		if b.from == from && b.to == to && b.class == class {
			return b
		}
	}
	b := &bulletin{from: from, to: to, class: class}
	l.recent[l.next] = b
	l.next = (l.next + 1) % recentNews
	return b
}

// full returns a message with everything, in parts that make it one after the
// other.
func (l *library) full(s *netmap.Scene, viewer *mesh.Node, now time.Time) ([][]byte, error) {
	class := s.Class(viewer)
	own, err := json.Marshal(&netmap.Response{Node: netmap.Self(s.Settings, viewer), ControlTime: &now})
	if err != nil {
		return nil, fmt.Errorf("encoding node %d: %w", viewer.ID, err)
	}
	common, err := l.common(s, class)
	if err != nil {
		return nil, err
	}
	parts := [][]byte{nil, compress(own[:len(own)-1]), common}
	first := true
	for id, nodes := range s.NodeBlocks() {
		if !slices.ContainsFunc(nodes, func(n *mesh.Node) bool { return n != nil }) {
			l.forget(id, class)
			continue
		}
		b := l.block(id, class)
		var without mesh.NodeID
		if viewer.ID >= id && viewer.ID < id+mesh.BlockSize {
			without = viewer.ID
		}
		frame, err := b.frame(s, nodes, without)
		if err != nil {
			return nil, err
		}
		if frame == nil {
			continue
		}
		if !first {
			parts = append(parts, l.comma)
		}
		parts, first = append(parts, frame), false
	}
	parts = append(parts, l.end)
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	parts[0] = length(size)
	return parts, nil
}

// common is the part of a full map between the viewer and the peers.
type common struct {
	scene *netmap.Scene
	frame []byte
}

func (l *library) common(s *netmap.Scene, class policy.Class) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.commons[class]; c != nil && c.scene.SameIdentities(s.Snapshot) && c.scene.SameSettings(s.Snapshot) {
		return c.frame, nil
	}
	doc, err := json.Marshal(netmap.Common(s, class))
	if err != nil {
		return nil, fmt.Errorf("encoding what all nodes share: %w", err)
	}
	// The object is opened by the frame before and closed by the last one.
	c := &common{s, compress(slices.Concat([]byte(","), doc[1:len(doc)-1], []byte(`,"Peers":[`)))}
	l.commons[class] = c
	return c.frame, nil
}

type blockKey struct {
	first mesh.NodeID
	class policy.Class
}

func (l *library) block(first mesh.NodeID, class policy.Class) *block {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := blockKey{first, class}
	b := l.blocks[k]
	if b == nil {
		b = &block{class: class}
		l.blocks[k] = b
	}
	return b
}

// forget lets go of a block whose nodes are all gone.
func (l *library) forget(first mesh.NodeID, class policy.Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.blocks, blockKey{first, class})
}

// block is the peers of neighbouring ids that a class sees, encoded. A node that
// did not change is not encoded again.
type block struct {
	class policy.Class

	mu       sync.Mutex
	settings *netmap.Settings // guarded by mu
	nodes    []*mesh.Node     // guarded by mu; shared with the snapshot
	docs     [][]byte         // guarded by mu; per node, nil if there is none to see; replaced, never written
	whole    []byte           // guarded by mu; nil if nobody is to be seen
}

// frame returns the block as of a scene, without one of its nodes if told so.
func (b *block) frame(s *netmap.Scene, nodes []*mesh.Node, without mesh.NodeID) ([]byte, error) {
	docs, whole, err := b.at(s, nodes)
	if err != nil || without == 0 {
		return whole, err
	}
	rest := slices.Clone(docs)
	rest[without%mesh.BlockSize] = nil
	return joined(rest), nil
}

func (b *block) at(s *netmap.Scene, nodes []*mesh.Node) (docs [][]byte, whole []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes != nil && &b.nodes[0] == &nodes[0] && b.settings == s.Settings {
		return b.docs, b.whole, nil
	}
	docs = make([][]byte, len(nodes))
	for i, n := range nodes {
		switch {
		case n == nil || !s.Sees(b.class, n):
		case b.nodes != nil && b.nodes[i] == n && b.settings == s.Settings && b.docs[i] != nil:
			docs[i] = b.docs[i]
		default:
			if docs[i], err = json.Marshal(netmap.Peer(s.Settings, n)); err != nil {
				return nil, nil, fmt.Errorf("encoding node %d: %w", n.ID, err)
			}
		}
	}
	b.settings, b.nodes, b.docs, b.whole = s.Settings, nodes, docs, joined(docs)
	return b.docs, b.whole, nil
}

// joined is a frame of documents with commas between them; nil if there are none.
func joined(docs [][]byte) []byte {
	size := 0
	for _, d := range docs {
		if d != nil {
			size += len(d) + 1
		}
	}
	if size == 0 {
		return nil
	}
	all := make([]byte, 0, size)
	for _, d := range docs {
		if d == nil {
			continue
		}
		if len(all) > 0 {
			all = append(all, ',')
		}
		all = append(all, d...)
	}
	return compress(all)
}
