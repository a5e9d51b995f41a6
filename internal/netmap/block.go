package netmap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// block holds the encoded peers of mesh.BlockSize consecutive ids. A node that did not
// change is not encoded again, and a frame that several viewers see is compressed once.
type block struct {
	mu       sync.Mutex
	basis    policy.Basis         // guarded by mu
	settings *Settings            // guarded by mu
	nodes    []*mesh.Node         // guarded by mu; shared with the snapshot
	classes  []policy.Class       // guarded by mu; of the nodes, shared with the world
	docs     [][]byte             // guarded by mu; per node
	shown    map[Viewpoint]uint64 // guarded by mu; which of the nodes a viewpoint shows
	frames   map[uint64][]byte    // guarded by mu; by the nodes in them
}

// maxFrames limits the number of frames kept per block.
const maxFrames = 32

// fewShown is the number of peers in a block below which they are encoded for one viewer,
// together with those of neighboring blocks. Many small frames would take longer to compress
// than one, also because viewers with different viewpoints could hardly share them.
const fewShown = 16

// add adds the peers of the block that a viewer sees in a scene to a list.
func (b *block) add(s *Scene, v Viewpoint, viewer, first mesh.NodeID, nodes []*mesh.Node, list *peerList) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.update(s, first, nodes); err != nil {
		return err
	}
	shown, ok := b.shown[v]
	if !ok {
		for i, n := range nodes {
			if n != nil && s.Shows(v, n) {
				shown |= 1 << i
			}
		}
		if len(b.shown) >= maxViewpoints {
			clear(b.shown)
		}
		b.shown[v] = shown
	}
	own := viewer >= first && viewer < first+mesh.BlockSize
	if own {
		shown &^= 1 << (viewer - first)
	}
	if s.Rules().Steers(v.Class) && slices.ContainsFunc(nodes, func(n *mesh.Node) bool { return n != nil && len(n.Routes) > 0 }) {
		docs, err := b.steered(s, v, shown)
		if err == nil {
			list.addDocs(docs, shown)
		}
		return err
	}
	switch {
	case bits.OnesCount64(shown) < fewShown:
		list.addDocs(b.docs, shown)
	case own: // a frame without the viewer is of no use to others, so it has as few peers as possible
		const part = 1<<ownPart - 1
		for from := 0; from < mesh.BlockSize; from += ownPart {
			if within := part << from & shown; viewer >= first+mesh.NodeID(from) && viewer < first+mesh.NodeID(from+ownPart) {
				list.addDocs(b.docs, within)
			} else if within != 0 {
				list.addFrame(b, within)
			}
		}
	default:
		list.addFrame(b, shown)
	}
	return nil
}

// ownPart is how many peers of the block of a viewer itself are in a frame.
const ownPart = 16

// frame returns a frame with peers of the block. b.mu must be held. The workspace must not contain documents.
func (b *block) frame(shown uint64, w *workspace) []byte {
	frame, ok := b.frames[shown]
	if !ok {
		w.docs = appendShown(w.docs, b.docs, shown)
		frame = w.compress()
		if len(b.frames) >= maxFrames {
			clear(b.frames)
		}
		b.frames[shown] = frame
	}
	return frame
}

// peerList is a list of peers in the order of their ids: frames, and in its workspace, documents that are not
// in a frame yet.
type peerList struct {
	*workspace
	comma  []byte // a frame
	frames [][]byte
}

func (l *peerList) addDocs(docs [][]byte, shown uint64) {
	if l.docs = appendShown(l.docs, docs, shown); len(l.docs) >= maxLoose {
		l.flush()
	}
}

// addFrame adds peers of a block, whose lock must be held.
func (l *peerList) addFrame(b *block, shown uint64) {
	l.flush()
	l.add(b.frame(shown, l.workspace))
}

func (l *peerList) add(frame []byte) {
	if len(l.frames) > 0 {
		l.frames = append(l.frames, l.comma)
	}
	l.frames = append(l.frames, frame)
}

// flush compresses the documents that are not in a frame yet.
func (l *peerList) flush() {
	if len(l.docs) > 0 {
		l.add(l.compress())
	}
}

// maxLoose is how many bytes of documents are compressed at once, approximately. A longer frame would hardly be smaller, because it
// would have more than one window.
const maxLoose = 2 * window

// workspace holds buffers that full maps reuse. Documents are several times as long as the frames that remain of them, so
// garbage collection would otherwise be most of the work for a map.
type workspace struct{ docs, frame []byte }

// maxWorkspace is the capacity up to which the documents of a workspace are reused.
const maxWorkspace = 8 * window

func newWorkspace() any { return &workspace{} }

// compress returns the documents as a frame, and removes them from the workspace.
func (w *workspace) compress() []byte {
	w.frame = appendFrame(w.frame[:0], w.docs)
	w.docs = w.docs[:0]
	return bytes.Clone(w.frame)
}

// steered returns the documents for viewers that rules with via send through certain
// routers. They are not cached: few policies have such rules, and few blocks contain routers.
func (b *block) steered(s *Scene, v Viewpoint, shown uint64) ([][]byte, error) {
	docs := slices.Clone(b.docs)
	for i, n := range b.nodes {
		if n == nil || len(n.Routes) == 0 || shown&(1<<i) == 0 {
			continue
		}
		var err error
		if docs[i], err = json.Marshal(renderPeerFor(s, v, n)); err != nil {
			return nil, fmt.Errorf("encoding node %d: %w", n.ID, err)
		}
	}
	return docs, nil
}

// update brings the block up to date with a scene.
func (b *block) update(s *Scene, first mesh.NodeID, nodes []*mesh.Node) error {
	basis, classes := s.Basis(), s.ClassBlock(first)
	sameRules := b.docs != nil && basis.SameRules(b.basis)
	same := sameRules && b.settings == s.Settings
	if same && sameSlice(b.classes, classes) && sameSlice(b.nodes, nodes) {
		return nil
	}
	docs, frames := make([][]byte, len(nodes)), b.frames
	if !same {
		frames = nil
	}
	keepShown := sameRules
	for i, n := range nodes {
		if keepShown {
			keepShown = sameViewers(b.nodes[i], n) && classAt(b.classes, i) == classAt(classes, i)
		}
		switch {
		case same && sameDocument(b.nodes[i], n) && classAt(b.classes, i) == classAt(classes, i):
			docs[i] = b.docs[i]
		case n == nil:
			frames = nil
		default:
			frames = nil
			var err error
			if docs[i], err = json.Marshal(renderPeer(s, n)); err != nil {
				return fmt.Errorf("encoding node %d: %w", n.ID, err)
			}
		}
	}
	if frames == nil {
		frames = map[uint64][]byte{}
	}
	b.basis, b.settings, b.nodes, b.classes, b.docs, b.frames = basis, s.Settings, nodes, classes, docs, frames
	if !keepShown {
		b.shown = map[Viewpoint]uint64{}
	}
	return nil
}

// sameViewers reports whether two values of a node are seen by the same viewers,
// provided that their class is the same.
func sameViewers(a, b *mesh.Node) bool {
	return a == b || a != nil && b != nil && a.Owner == b.Owner
}

// classAt returns a class of a block; the block is nil if all its classes are Nobody.
func classAt(classes []policy.Class, i int) policy.Class {
	if classes == nil {
		return policy.Nobody
	}
	return classes[i]
}

// sameSlice reports whether two slices share their memory.
func sameSlice[E any](a, b []E) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// appendShown appends the documents that are shown, with commas in between, also after what
// is there already.
func appendShown(all []byte, docs [][]byte, shown uint64) []byte {
	for i, d := range docs {
		if shown&(1<<i) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, ',')
		}
		all = append(all, d...)
	}
	return all
}
