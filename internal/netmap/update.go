package netmap

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Update holds what to send to a viewer that has the map of one scene, so that it has the
// map of another.
type Update struct {
	// Messages are sent in this order; none if nothing changed for the viewer.
	// Other viewers may be sent the same bytes.
	Messages [][]byte
	// Full says that a full map follows the messages.
	Full bool
	// Gone says that the node no longer exists. The messages are the last ones.
	Gone bool
}

// Update returns what to send to a viewer that has the map of from, so that it has the map
// of to. touched contains at least the nodes that changed in between, or those of them that Audience.Told returned for each step;
// nil means unknown.
// The viewer must exist in from.
//
// This is the only place that decides whether a viewer is sent bytes that it shares with
// others, bytes of its own, or a full map.
func (c *Cache) Update(from, to *Scene, v Viewer, touched []mesh.NodeID) (Update, error) {
	before, _ := from.Nodes.Get(v.Node)
	after, ok := to.Nodes.Get(v.Node)
	switch {
	case !ok:
		messages, err := c.messages(v, deletedResponse(from, before, to.At))
		return Update{Messages: messages, Gone: true}, err
	case from.domain != to.domain && hasPeers(to, after): // every name changed
		messages, err := c.messages(v, dropped(from, to, before, after))
		return Update{Messages: messages, Full: true}, err
	}
	d := c.delta(from, to, from.Viewpoint(before), to.Viewpoint(after), touched)
	if d.err != nil {
		return Update{}, d.err
	}
	if !v.Compress || !d.fits(from, to, before, after) {
		messages, err := c.messages(v, personal(from, to, v.Node, d.response))
		return Update{Messages: messages}, err
	}
	if !d.whole[v.Node] {
		return Update{Messages: d.messages}, nil
	}
	// The shared message makes the viewer a peer of itself, as when a policy lets
	// all nodes of a class see each other. A second message removes it.
	correction, err := c.messages(v, &Response{PeersRemoved: []mesh.NodeID{v.Node}})
	return Update{Messages: slices.Concat(d.messages, correction)}, err
}

// hasPeers reports whether a viewer has peers. A full map cannot express that it has none,
// because clients ignore an empty list.
func hasPeers(s *Scene, viewer *mesh.Node) bool {
	v := s.Viewpoint(viewer)
	for n := range s.Nodes.All() {
		if n.ID != viewer.ID && s.Shows(v, n) {
			return true
		}
	}
	return false
}

// delta is what changed between two scenes, as seen from one viewpoint.
type delta struct {
	once     sync.Once
	response *Response            // nil if nothing changed
	messages [][]byte             // the response, encoded; none if it is nil
	whole    map[mesh.NodeID]bool // the peers that it contains completely, not as a patch
	err      error
}

// few is the largest number of peers in a delta for which a viewer that is among them gets
// its own message. Beyond that, it is cheaper to send it the shared message, although that
// contains the viewer.
const few = 8

// fits reports whether a viewer may be sent the shared message, followed by a correction
// if it contains the whole viewer. A patch of the viewer itself may stay in it: clients do
// not apply it.
func (d *delta) fits(from, to *Scene, before, after *mesh.Node) bool {
	switch r := d.response; {
	case !sharedServes(from, to, after):
		return false
	case before == after:
		return !d.whole[after.ID] || len(d.whole) > few
	case r == nil || len(r.PeersChangedPatch) <= few || !sameSelf(before, after) || isRouter(before) || isRouter(after):
		return false
	default:
		return !d.whole[after.ID]
	}
}

// deltaSet holds the deltas between two scenes.
type deltaSet struct {
	from, to *Scene
	all      crowd

	mu          sync.Mutex
	byViewpoint map[viewpoints]*delta // guarded by mu
	byVisible   map[string]*delta     // guarded by mu; by the result of visible
	affected    []mesh.NodeID         // guarded by mu; see affectedBy
	known       bool                  // guarded by mu; whether affected is set
}

// viewpoints holds the viewpoints of a viewer in the two scenes of a delta.
type viewpoints struct {
	before, after Viewpoint
	noShells      bool // without SSH rules
}

// delta returns the delta between two scenes for the viewers of one viewpoint.
func (c *Cache) delta(from, to *Scene, before, after Viewpoint, touched []mesh.NodeID) *delta {
	return c.deltaOf(c.deltaSet(from, to), viewpoints{before: before, after: after}, touched)
}

func (c *Cache) deltaOf(set *deltaSet, v viewpoints, touched []mesh.NodeID) *delta {
	d := set.find(v, touched)
	d.once.Do(func() {
		if set.isForOwners(v) {
			c.fillForOwner(d, set, v, touched)
			return
		}
		if d.response = shared(set.from, set.to, v, touched, &set.all); d.response == nil {
			return
		}
		d.messages, d.err = c.messages(Viewer{Compress: true}, d.response)
		if changed := d.response.PeersChanged; len(changed) > 0 {
			d.whole = make(map[mesh.NodeID]bool, len(changed))
			for _, n := range changed {
				d.whole[n.ID] = true
			}
		}
	})
	return d
}

// isForOwners reports whether new rules make a delta necessary for each owner of nodes, although only SSH rules depend on the owner.
func (s *deltaSet) isForOwners(v viewpoints) bool {
	return (v.before.Owner != 0 || v.after.Owner != 0) && s.from.Rules() != s.to.Rules() &&
		!s.from.Rules().HasOwn(v.before.Class) && !s.to.Rules().HasOwn(v.after.Class)
}

// fillForOwner fills a delta that differs from those of other owners only in the SSH rules. All of them share the peers and their
// encoding, which can take megabytes.
func (c *Cache) fillForOwner(d *delta, set *deltaSet, v viewpoints, touched []mesh.NodeID) {
	all := viewpoints{before: v.before, after: v.after, noShells: true}
	all.before.Owner, all.after.Owner = 0, 0
	common := c.deltaOf(set, all, touched)
	if d.response, d.messages, d.whole, d.err = common.response, common.messages, common.whole, common.err; d.err != nil {
		return
	}
	shells := changedShells(set.from, set.to, v)
	if shells == nil {
		return
	}
	d.response = &Response{}
	if common.response != nil {
		*d.response = *common.response
	}
	d.response.SSHPolicy = shells
	var own [][]byte
	own, d.err = c.messages(Viewer{Compress: true}, &Response{SSHPolicy: shells})
	d.messages = slices.Concat(common.messages, own)
}

// deltaSet returns the deltas between two scenes.
func (c *Cache) deltaSet(from, to *Scene) *deltaSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.recent { // the newest first
		s := c.recent[(c.next-1-i+2*recentDeltaSets)%recentDeltaSets]
		if s == nil {
			break
		}
		if s.from == from && s.to == to {
			return s
		}
	}
	s := &deltaSet{from: from, to: to, byViewpoint: map[viewpoints]*delta{}, byVisible: map[string]*delta{}}
	c.recent[c.next] = s
	c.next = (c.next + 1) % recentDeltaSets
	return s
}

// find returns the delta for viewpoints, which may not be rendered yet. Viewpoints that
// show the same changes share one delta.
func (s *deltaSet) find(v viewpoints, touched []mesh.NodeID) *delta {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.byViewpoint[v]; ok {
		return d
	}
	d := &delta{}
	if v.before == v.after && touched != nil && dependsOnVisible(s.from, s.to, v.after) {
		if !s.known {
			s.affected, s.known = affectedBy(s.from, s.to, touched), true
		}
		key := s.visible(v, s.affected)
		if same, ok := s.byVisible[key]; ok {
			d = same
		} else {
			s.byVisible[key] = d
		}
	}
	s.byViewpoint[v] = d
	return d
}

// visible returns which of the affected nodes a viewpoint shows, before and after, as one
// bit each, and then the groups of their owners that it is told.
func (s *deltaSet) visible(v viewpoints, affected []mesh.NodeID) string {
	const perByte = 4
	key := make([]byte, (len(affected)+perByte-1)/perByte)
	for i, id := range affected {
		var bits byte
		if n, ok := s.from.Nodes.Get(id); ok && s.from.Shows(v.before, n) {
			bits |= 1
		}
		if n, ok := s.to.Nodes.Get(id); ok && s.to.Shows(v.after, n) {
			bits |= 2
		}
		key[i/perByte] |= bits << (2 * (i % perByte))
	}
	if rules := s.to.Rules(); rules.HasGroups(v.after.Class) {
		var last mesh.UserID
		for i, id := range affected {
			n, ok := s.to.Nodes.Get(id)
			if !ok || n.Owner == last || key[i/perByte]>>(2*(i%perByte))&2 == 0 {
				continue
			}
			last = n.Owner
			for k, scene := range []*Scene{s.from, s.to} {
				if u, ok := scene.Users.Get(n.Owner); ok {
					if groups := rules.GroupsOf(v.after.Class, u); len(groups) > 0 {
						key = fmt.Appendf(key, "/%d/%d/%s", i, k, strings.Join(groups, ","))
					}
				}
			}
		}
	}
	return string(key)
}
