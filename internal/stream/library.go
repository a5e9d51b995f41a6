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
	comma, profiles, end, alive []byte

	home string // of netmap.Scene

	mu      sync.Mutex
	scene   *netmap.Scene              // guarded by mu; of the newest world asked for
	blocks  map[mesh.NodeID]*block     // guarded by mu; by their first id
	commons map[netmap.Viewpoint]*part // guarded by mu
	filters map[netmap.Viewpoint]*part // guarded by mu
	recent  [recentEditions]*edition   // guarded by mu; the oldest is replaced
	next    int                        // guarded by mu
}

// recentEditions is how many pairs of worlds are remembered. Streams that keep up
// share one; the others are for those that lag behind.
const recentEditions = 16

const openProfiles = `,"UserProfiles":[`

// maxViewpoints bounds what is kept for full maps: viewpoints of rules that no
// longer hold are not told apart from others.
const maxViewpoints = 4096

func newLibrary(home string) *library {
	return &library{
		home:  home,
		comma: compress([]byte(",")), profiles: compress([]byte(openProfiles)), end: compress([]byte("]}")), alive: keepAlive(true),
		blocks: map[mesh.NodeID]*block{}, commons: map[netmap.Viewpoint]*part{}, filters: map[netmap.Viewpoint]*part{},
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
	s.Home = l.home
	if l.scene == nil || l.scene.Rev < w.Rev {
		l.scene = s
	}
	return s
}

// full returns a message with everything, in parts that make it one after the
// other.
func (l *library) full(s *netmap.Scene, viewer *mesh.Node, now time.Time) ([][]byte, error) {
	v := s.Viewpoint(viewer)
	parts, err := l.head(s, viewer, v, now)
	if err != nil {
		return nil, err
	}
	first := true
	for id, nodes := range s.NodeBlocks() {
		frame, err := l.block(id).frame(s, v, viewer.ID, id, nodes)
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

// head is a full map up to its peers. The frames make one object together: the
// viewer's own opens it, and its member of filters, unless the viewer is a router.
func (l *library) head(s *netmap.Scene, viewer *mesh.Node, v netmap.Viewpoint, now time.Time) ([][]byte, error) {
	response := &netmap.Response{Node: netmap.Self(s, viewer), ControlTime: &now}
	if netmap.Router(viewer) {
		response.PacketFilters = netmap.Filters(s, viewer)
	}
	own, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("encoding node %d: %w", viewer.ID, err)
	}
	parts := [][]byte{nil, compress(own[:len(own)-1])}
	if !netmap.Router(viewer) {
		frame, err := l.filter(s, viewer, v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, frame)
	}
	common, err := l.common(s, v)
	if err != nil {
		return nil, err
	}
	profiles := l.profiles
	if owner, ok := netmap.Owner(s, viewer); ok && !slices.Contains(common.profiles, owner) {
		doc, err := json.Marshal(owner)
		if err != nil {
			return nil, fmt.Errorf("encoding the owner of node %d: %w", viewer.ID, err)
		}
		if len(common.profiles) > 0 {
			doc = append(doc, ',')
		}
		profiles = compress(append([]byte(openProfiles), doc...))
	}
	return append(parts, profiles, common.frame), nil
}

// part is a frame of full maps that viewers with one viewpoint share.
type part struct {
	basis    policy.Basis
	settings *netmap.Settings
	once     sync.Once
	frame    []byte
	profiles []netmap.Profile // in the frame
	err      error
}

// part finds the part for a viewpoint among those kept, or makes room for a new
// one if it no longer holds.
func (l *library) part(kept map[netmap.Viewpoint]*part, s *netmap.Scene, v netmap.Viewpoint, holds func(*part) bool) *part {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := kept[v]; p != nil && holds(p) {
		return p
	}
	if len(kept) >= maxViewpoints {
		clear(kept)
	}
	p := &part{basis: s.Basis(), settings: s.Settings}
	kept[v] = p
	return p
}

// common is between the owner of the viewer and the peers. The list of users is
// opened by the frame before, and the object by the first; the last one closes it.
func (l *library) common(s *netmap.Scene, v netmap.Viewpoint) (*part, error) {
	p := l.part(l.commons, s, v, func(p *part) bool { return p.basis.Same(s.Basis()) && p.settings == s.Settings })
	p.once.Do(func() {
		r := netmap.Common(s, v)
		p.profiles, r.UserProfiles = r.UserProfiles, nil
		var profiles, rest []byte
		if profiles, p.err = json.Marshal(p.profiles); p.err != nil {
			return
		}
		if rest, p.err = json.Marshal(r); p.err != nil {
			return
		}
		p.frame = compress(slices.Concat(profiles[1:], []byte(","), rest[1:len(rest)-1], []byte(`,"Peers":[`)))
	})
	return p, p.err
}

// filter is the filters of viewers that are no routers.
func (l *library) filter(s *netmap.Scene, viewer *mesh.Node, v netmap.Viewpoint) ([]byte, error) {
	p := l.part(l.filters, s, v, func(p *part) bool { return s.Basis().SameInbound(p.basis, v.Class, v.Old, v.Owner != 0) })
	p.once.Do(func() {
		var doc []byte
		doc, p.err = json.Marshal(netmap.Filters(s, viewer))
		p.frame = compress(append([]byte(`,"PacketFilters":`), doc...))
	})
	return p.frame, p.err
}

func (l *library) block(first mesh.NodeID) *block {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.blocks[first]
	if b == nil {
		b = &block{}
		l.blocks[first] = b
	}
	return b
}

// block is the peers of neighbouring ids, encoded. A node that did not change is
// not encoded again, and what several viewers see is put together once.
type block struct {
	mu       sync.Mutex
	basis    policy.Basis                // guarded by mu
	settings *netmap.Settings            // guarded by mu
	nodes    []*mesh.Node                // guarded by mu; shared with the snapshot
	classes  []policy.Class              // guarded by mu; of the nodes, shared with the world
	docs     [][]byte                    // guarded by mu; per node
	sights   map[netmap.Viewpoint]uint64 // guarded by mu; which of the nodes are shown
	frames   map[uint64][]byte           // guarded by mu; by which of the nodes are in it
}

// maxFrames bounds the frames of a block.
const maxFrames = 32

// frame returns the nodes that a viewer sees, as of a scene; nil if there are
// none.
func (b *block) frame(s *netmap.Scene, v netmap.Viewpoint, viewer, first mesh.NodeID, nodes []*mesh.Node) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.move(s, first, nodes); err != nil {
		return nil, err
	}
	sight, ok := b.sights[v]
	if !ok {
		for i, n := range nodes {
			if n != nil && s.Shows(v, n) {
				sight |= 1 << i
			}
		}
		if len(b.sights) >= maxViewpoints {
			clear(b.sights)
		}
		b.sights[v] = sight
	}
	own := viewer >= first && viewer < first+mesh.BlockSize
	if own {
		sight &^= 1 << (viewer - first)
	}
	if s.Steers(v.Class) && slices.ContainsFunc(nodes, func(n *mesh.Node) bool { return n != nil && len(n.Routes) > 0 }) {
		return b.steered(s, v, sight)
	}
	if frame, ok := b.frames[sight]; ok || sight == 0 {
		return frame, nil
	}
	frame := joined(b.docs, sight)
	if !own { // the others see it too
		if len(b.frames) >= maxFrames {
			clear(b.frames)
		}
		b.frames[sight] = frame
	}
	return frame, nil
}

// steered is a frame for viewers that rules lead through certain routers. Few
// policies have such rules, and few blocks routers.
func (b *block) steered(s *netmap.Scene, v netmap.Viewpoint, sight uint64) ([]byte, error) {
	docs := slices.Clone(b.docs)
	for i, n := range b.nodes {
		if n == nil || len(n.Routes) == 0 || sight&(1<<i) == 0 {
			continue
		}
		var err error
		if docs[i], err = json.Marshal(netmap.PeerFor(s, v, n)); err != nil {
			return nil, fmt.Errorf("encoding node %d: %w", n.ID, err)
		}
	}
	if sight == 0 {
		return nil, nil
	}
	return joined(docs, sight), nil
}

// move brings the block to a scene.
func (b *block) move(s *netmap.Scene, first mesh.NodeID, nodes []*mesh.Node) error {
	basis, classes := s.Basis(), s.ClassBlock(first)
	sameRules := b.docs != nil && basis.SameRules(b.basis)
	same := sameRules && b.settings == s.Settings
	if same && sameSlice(b.classes, classes) && sameSlice(b.nodes, nodes) {
		return nil
	}
	docs := make([][]byte, len(nodes))
	keep := sameRules // what is in sight
	for i, n := range nodes {
		if keep {
			keep = sameSight(b.nodes[i], n) && classAt(b.classes, i) == classAt(classes, i)
		}
		switch {
		case n == nil:
		case same && b.nodes[i] == n && classAt(b.classes, i) == classAt(classes, i):
			docs[i] = b.docs[i]
		default:
			var err error
			if docs[i], err = json.Marshal(netmap.Peer(s, n)); err != nil {
				return fmt.Errorf("encoding node %d: %w", n.ID, err)
			}
		}
	}
	b.basis, b.settings, b.nodes, b.classes, b.docs, b.frames = basis, s.Settings, nodes, classes, docs, map[uint64][]byte{}
	if !keep {
		b.sights = map[netmap.Viewpoint]uint64{}
	}
	return nil
}

// sameSight reports whether two values of a node are seen by the same viewers, if
// their class is the same.
func sameSight(a, b *mesh.Node) bool {
	return a == b || a != nil && b != nil && a.Owner == b.Owner
}

// classAt is for blocks of which all is Nobody, too.
func classAt(classes []policy.Class, i int) policy.Class {
	if classes == nil {
		return policy.Nobody
	}
	return classes[i]
}

// sameSlice reports whether two slices share their memory.
func sameSlice[E any](a, b []E) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// joined is a frame of the documents that are in sight, with commas between them.
func joined(docs [][]byte, sight uint64) []byte {
	var all []byte
	for i, d := range docs {
		if sight&(1<<i) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, ',')
		}
		all = append(all, d...)
	}
	return compress(all)
}
