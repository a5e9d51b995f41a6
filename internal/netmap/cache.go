package netmap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Viewer is a client that follows the map of its node.
type Viewer struct {
	Node mesh.NodeID
	// Compress is off for tools that read plain JSON. Tailscale clients set it.
	Compress bool
}

// Cache encodes what viewers are sent and keeps what they share: scenes, deltas
// and blocks of peers. It is safe for concurrent use.
type Cache struct {
	home string // Home of every Scene

	// Messages and frames that are always the same.
	keepAlive, plainKeepAlive []byte
	comma, profiles, end      []byte

	workspaces sync.Pool // of *workspace

	mu      sync.Mutex
	scene   *Scene                     // guarded by mu; of the newest world requested so far
	blocks  map[mesh.NodeID]*block     // guarded by mu; blocks by their first id
	commons map[Viewpoint]*part        // guarded by mu
	filters map[Viewpoint]*part        // guarded by mu
	recent  [recentDeltaSets]*deltaSet // guarded by mu; the oldest is replaced
	next    int                        // guarded by mu
}

// recentDeltaSets is the number of pairs of scenes whose deltas are kept. Streams that
// keep up share one pair; the others are for streams that lag behind.
const recentDeltaSets = 16

// openProfiles begins the list of users in a full map.
const openProfiles = `,"UserProfiles":[`

// maxViewpoints limits the cache for full maps. Viewpoints of an old policy are not
// removed one by one; the table is cleared when it is full.
const maxViewpoints = 4096

// spareBlocks is how many blocks without nodes are kept in any case.
const spareBlocks = 16

// NewCache returns an empty cache. serverURL is the URL by which clients know the server.
func NewCache(serverURL string) *Cache {
	return &Cache{
		home: HomeOf(serverURL), keepAlive: keepAliveMessage(true), plainKeepAlive: keepAliveMessage(false),
		comma: compress([]byte(",")), profiles: compress([]byte(openProfiles)), end: compress([]byte("]}")),
		workspaces: sync.Pool{New: newWorkspace},
		blocks:     map[mesh.NodeID]*block{}, commons: map[Viewpoint]*part{}, filters: map[Viewpoint]*part{},
	}
}

// Scene returns the scene of a world. Everyone who asks for the newest world gets
// the same one.
func (c *Cache) Scene(w *policy.World) *Scene {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scene != nil && c.scene.World == w {
		return c.scene
	}
	s := SceneOf(w, c.scene)
	s.Home = c.home
	if c.scene == nil || c.scene.Rev < w.Rev {
		c.scene = s
	}
	return s
}

// KeepAlive returns the message that keeps an idle stream open.
func (c *Cache) KeepAlive(v Viewer) []byte {
	if v.Compress {
		return c.keepAlive
	}
	return c.plainKeepAlive
}

// Ping returns a message that makes a viewer send a request to a URL of this
// server, on its connection.
func (c *Cache) Ping(v Viewer, url string) ([][]byte, error) {
	return c.messages(v, &Response{PingRequest: &PingRequest{URL: url, URLIsNoise: true}})
}

// messages encodes a response for one viewer. For nil it returns no message.
func (c *Cache) messages(v Viewer, r *Response) ([][]byte, error) {
	if r == nil {
		return nil, nil
	}
	m, err := responseMessage(r, c.KeepAlive(v), v.Compress)
	if err != nil {
		return nil, fmt.Errorf("encoding for node %d: %w", v.Node, err)
	}
	return [][]byte{m}, nil
}

// Full returns a message with the whole map of a viewer, in parts to be written one after
// the other. The viewer must exist.
func (c *Cache) Full(s *Scene, v Viewer, now time.Time) ([][]byte, error) {
	n, _ := s.Nodes.Get(v.Node)
	if v.Compress && s.Class(n) != policy.Nobody {
		return c.spliced(s, n, now)
	}
	r := Full(s, v.Node)
	r.ControlTime = &now
	return c.messages(v, r)
}

// spliced returns a full map whose parts are frames that viewers share, except for the
// first, which is about the viewer itself.
func (c *Cache) spliced(s *Scene, viewer *mesh.Node, now time.Time) ([][]byte, error) {
	v := s.Viewpoint(viewer)
	parts, err := c.head(s, viewer, v, now)
	if err != nil {
		return nil, err
	}
	space := c.workspaces.Get().(*workspace)
	defer c.release(space)
	peers, blocks := &peerList{workspace: space, comma: c.comma}, 0
	for id, nodes := range s.Nodes.Blocks() {
		blocks++
		if err := c.block(id).add(s, v, viewer.ID, id, nodes, peers); err != nil {
			return nil, err
		}
	}
	c.forgetBlocks(s, blocks)
	peers.flush()
	parts = append(parts, peers.frames...)
	parts = append(parts, c.end)
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	parts[0] = length(size)
	return parts, nil
}

func (c *Cache) release(w *workspace) {
	if cap(w.docs) <= maxWorkspace {
		w.docs = w.docs[:0] // not empty after an error
		c.workspaces.Put(w)
	}
}

// head returns a full map up to its peers; its first part is reserved for the length.
// Together, the frames are one JSON object, which the viewer's own frame opens.
func (c *Cache) head(s *Scene, viewer *mesh.Node, v Viewpoint, now time.Time) ([][]byte, error) {
	response := &Response{Node: renderSelf(s, viewer), ControlDialPlan: s.dialPlan(viewer.ID), ControlTime: &now}
	response.addMessages(nil, viewer)
	if isRouter(viewer) {
		response.PacketFilters = viewerFilters(s, viewer)
	}
	own, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("encoding node %d: %w", viewer.ID, err)
	}
	parts := [][]byte{nil, compress(own[:len(own)-1])}
	if !isRouter(viewer) {
		frame, err := c.filter(s, viewer, v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, frame)
	}
	common, err := c.common(s, v)
	if err != nil {
		return nil, err
	}
	profiles := c.profiles
	if owner, ok := ownerProfile(s, v, viewer); ok && !common.hasProfile(owner) {
		doc, err := json.Marshal(owner)
		if err != nil {
			return nil, fmt.Errorf("encoding the owner of node %d: %w", viewer.ID, err)
		}
		if len(common.users) > 0 {
			doc = append(doc, ',')
		}
		profiles = compress(append([]byte(openProfiles), doc...))
	}
	return append(parts, profiles, common.frame), nil
}

// part is a frame of full maps that viewers with one viewpoint share.
type part struct {
	basis    policy.Basis
	settings *Settings
	once     sync.Once
	frame    []byte
	users    []int64 // those whose profiles are in the frame, sorted
	err      error
}

func (p *part) hasProfile(profile Profile) bool {
	_, found := slices.BinarySearch(p.users, profile.ID)
	return found
}

// part returns the cached part of a viewpoint if it is still valid, or a new one to be
// encoded.
func (c *Cache) part(kept map[Viewpoint]*part, s *Scene, v Viewpoint, valid func(*part) bool) *part {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := kept[v]; p != nil && valid(p) {
		return p
	}
	if len(kept) >= maxViewpoints {
		clear(kept)
	}
	p := &part{basis: s.Basis(), settings: s.Settings}
	kept[v] = p
	return p
}

// common returns the part between the viewer's owner and the peers. It continues
// the list of users, which the frame before opens, and opens the list of peers.
func (c *Cache) common(s *Scene, v Viewpoint) (*part, error) {
	p := c.part(c.commons, s, v, func(p *part) bool { return p.basis.Same(s.Basis()) && p.settings == s.Settings })
	p.once.Do(func() {
		r := commonPart(s, v)
		var profiles, rest []byte
		if profiles, p.err = json.Marshal(r.UserProfiles); p.err != nil {
			return
		}
		for _, profile := range r.UserProfiles {
			p.users = append(p.users, profile.ID)
		}
		r.UserProfiles = nil
		if rest, p.err = json.Marshal(r); p.err != nil {
			return
		}
		p.frame = bytes.Clone(compress(slices.Concat(profiles[1:], []byte(","), rest[1:len(rest)-1], []byte(`,"Peers":[`))))
	})
	return p, p.err
}

// filter returns a frame with the filters of viewers that are not routers.
func (c *Cache) filter(s *Scene, viewer *mesh.Node, v Viewpoint) ([]byte, error) {
	p := c.part(c.filters, s, v, func(p *part) bool { return s.Basis().SameInbound(p.basis, v.Class, v.Old, v.Owner != 0) })
	p.once.Do(func() {
		var doc []byte
		doc, p.err = json.Marshal(viewerFilters(s, viewer))
		p.frame = bytes.Clone(compress(append([]byte(`,"PacketFilters":`), doc...)))
	})
	return p.frame, p.err
}

func (c *Cache) block(first mesh.NodeID) *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.blocks[first]
	if b == nil {
		b = &block{}
		c.blocks[first] = b
	}
	return b
}

// forgetBlocks forgets the blocks whose nodes have all been deleted, once most of the cache consists of them. The scene has the given
// number of blocks.
func (c *Cache) forgetBlocks(s *Scene, blocks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.blocks) <= 2*blocks+spareBlocks {
		return
	}
	kept := make(map[mesh.NodeID]*block, blocks)
	for id := range s.Nodes.Blocks() {
		if b := c.blocks[id]; b != nil {
			kept[id] = b
		}
	}
	c.blocks = kept
}
