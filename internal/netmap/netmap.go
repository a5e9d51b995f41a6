package netmap

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Scene is a world with its settings rendered. A caller that renders a world
// more than once makes its scene once.
type Scene struct {
	*policy.World
	*Settings
	// Home is the host by which clients know the service, as HomeOf gives it.
	Home string
}

// SceneOf prepares w. Before, if not nil, is an earlier scene, of which the
// settings are taken over when they did not change.
func SceneOf(w *policy.World, before *Scene) *Scene {
	if before != nil && before.SameSettings(w.Snapshot) {
		return &Scene{World: w, Settings: before.Settings}
	}
	return &Scene{World: w, Settings: SettingsOf(w.Snapshot)}
}

// Viewpoint is what decides what a viewer is told beside what it is itself:
// viewers with one viewpoint are told the same. It means something together with
// the rules of its world alone.
type Viewpoint struct {
	Class policy.Class
	// Owner is set where rules let people reach their own nodes.
	Owner mesh.UserID
	// Old clients do not know nodes by their marks.
	Old bool
}

// Viewpoint returns that of a node. The zero value is that of nodes that see
// nobody.
func (s *Scene) Viewpoint(n *mesh.Node) Viewpoint {
	c := s.Class(n)
	if c == policy.Nobody {
		return Viewpoint{}
	}
	v := Viewpoint{Class: c, Old: n.CapVersion < marksSince}
	if s.HasOwn(c) || s.ShellsOfOwn(c) {
		v.Owner = n.Owner
	}
	return v
}

// Shows reports whether a node is among the peers from a viewpoint. A viewer is
// not its own peer, whatever this says.
func (s *Scene) Shows(v Viewpoint, n *mesh.Node) bool {
	return s.Sees(v.Class, n) || v.Owner != 0 && n.Owner == v.Owner && s.SeesOwn(v.Class, n)
}

// Full renders all that a viewer knows. The viewer must exist.
func Full(s *Scene, viewer mesh.NodeID) *Response {
	n, _ := s.Node(viewer)
	v := s.Viewpoint(n)
	r := Common(s, v)
	r.PacketFilters = Filters(s, n)
	r.Node = Self(s, n)
	if own, ok := Owner(s, n); ok && !slices.Contains(r.UserProfiles, own) {
		r.UserProfiles = slices.Insert(r.UserProfiles, 0, own)
	}
	r.Peers = []*Node{}
	for peer := range s.Nodes() {
		if peer.ID != viewer && s.Shows(v, peer) {
			r.Peers = append(r.Peers, PeerFor(s, v, peer))
		}
	}
	return r
}

// Common is the part of Full that all viewers with one viewpoint share beside the
// peers and the filters.
func Common(s *Scene, v Viewpoint) *Response {
	never := false
	return &Response{
		DERPMap: s.relays, DNSConfig: s.dns, Domain: s.domain, SSHPolicy: shellsOf(s, v), UserProfiles: profiles(s, v),
		CollectServices: &never, Debug: &Debug{DisableLogTail: true},
	}
}

// Filters are the filters of a viewer. Those of nodes that are no routers follow
// from their viewpoint.
func Filters(s *Scene, n *mesh.Node) map[string][]Rule {
	if Router(n) {
		return filtersOf(s, s.Viewpoint(n), n)
	}
	return filtersOf(s, s.Viewpoint(n), nil)
}

// Farewell tells a node that was removed that its key is no longer good: a
// client that is merely cut off goes on with what it knows for ever.
func Farewell(s *Scene, n *mesh.Node, now mesh.Time) *Response {
	gone := *n
	// A client judges by its own clock, which may be behind.
	gone.Expiry = now.Add(-farewellSlack)
	return &Response{Node: Self(s, &gone)}
}

const farewellSlack = 24 * time.Hour

// Between renders what a viewer that knows from must hear to know to; nil if
// that is nothing. Touched names at least the nodes that changed on the way;
// nil means unknown. The viewer must exist in both.
func Between(from, to *Scene, viewer mesh.NodeID, touched []mesh.NodeID) *Response {
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	return Personal(from, to, viewer, Shared(from, to, from.Viewpoint(before), to.Viewpoint(after), touched))
}

// Personal makes of what is heard from its viewpoint, which may be nil and stays
// as it is, what one viewer hears.
func Personal(from, to *Scene, viewer mesh.NodeID, shared *Response) *Response {
	r := &Response{}
	if shared != nil {
		*r = *shared
		r.profiled = nil
		r.UserProfiles = slices.Clip(r.UserProfiles)
		r.PeersChanged = without(r.PeersChanged, func(n *Node) bool { return n.ID == viewer })
		r.PeersRemoved = without(r.PeersRemoved, func(id mesh.NodeID) bool { return id == viewer })
		r.PeersChangedPatch = without(r.PeersChangedPatch, func(p *Patch) bool { return p.NodeID == viewer })
	}
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	if !SameSelf(before, after) || from.domain != to.domain || !sameAttributes(from, to, before, after) {
		r.Node = Self(to, after)
		r.addProfile(to, after)
	}
	if Router(before) || Router(after) {
		r.PacketFilters = changedFilters(Filters(from, before), Filters(to, after))
	}
	was, _ := from.User(after.Owner)
	if is, _ := to.User(after.Owner); is != was {
		r.addProfile(to, after)
	}
	if r.empty() {
		return nil
	}
	return r
}

// without is the list less one element. An empty list would say something else
// than none.
func without[E any](list []E, is func(E) bool) []E {
	i := slices.IndexFunc(list, is)
	switch {
	case i < 0:
		return list
	case len(list) == 1:
		return nil
	}
	return slices.Concat(list[:i], list[i+1:])
}

// Shared is Between for all viewers with one viewpoint at once, provided that it
// names none of them whole, that they are the same to themselves, and that they are
// no routers; nil if they need to hear nothing. It may hold a patch for the viewer,
// which clients do not apply.
func Shared(from, to *Scene, before, after Viewpoint, touched []mesh.NodeID) *Response {
	same := before == after && from.SameRules(to.World)
	switch {
	case !same || from.domain != to.domain: // it is part of every node's name
		touched = everyone(from, to)
	case touched == nil:
		touched = to.ChangedNodes(from.Snapshot)
	}
	if same {
		touched = union(touched, to.Reclassified(from.World))
		if to.Steers(after.Class) {
			touched = union(touched, rivals(from, to, touched))
		}
	}
	r := compare(from, to, before, after, touched)
	if !same || !to.SameInbound(from.World, after.Class, after.Old, after.Owner != 0) {
		r.PacketFilters = changedFilters(filtersOf(from, before, nil), filtersOf(to, after, nil))
	}
	if !same || !to.SameShells(from.World, after.Class) {
		if shells := shellsOf(to, after); !reflect.DeepEqual(shells, shellsOf(from, before)) {
			r.SSHPolicy = shells
		}
	}
	for _, id := range to.ChangedUsers(from.Snapshot) {
		if u, ok := to.User(id); ok && slices.ContainsFunc(to.Owned(id), func(id mesh.NodeID) bool {
			n, ok := to.Node(id)
			return ok && to.Shows(after, n)
		}) {
			r.addUnique(profileOf(u))
		}
	}
	if r.empty() {
		return nil
	}
	return r
}

// Serves reports whether Shared is all that a viewer hears which did not change
// itself.
func Serves(from, to *Scene, viewer *mesh.Node) bool {
	before, after := from.Viewpoint(viewer), to.Viewpoint(viewer)
	was, _ := from.User(viewer.Owner)
	is, _ := to.User(viewer.Owner)
	return was == is && from.domain == to.domain && sameAttributes(from, to, viewer, viewer) && (!Router(viewer) ||
		before == after && from.SameRules(to.World) && to.SameInbound(from.World, after.Class, after.Old, after.Owner != 0))
}

// SightOnly reports whether Shared follows from which of the touched nodes are
// shown, for viewers with one viewpoint.
func SightOnly(from, to *Scene, v Viewpoint, touched []mesh.NodeID) bool {
	return from.SameRules(to.World) && !to.Steers(v.Class) && from.domain == to.domain && to.SameInbound(from.World, v.Class, v.Old, v.Owner != 0) &&
		to.SameShells(from.World, v.Class) && len(to.ChangedUsers(from.Snapshot)) == 0 &&
		!slices.ContainsFunc(to.Reclassified(from.World), func(id mesh.NodeID) bool { return !slices.Contains(touched, id) })
}

// rivals are the nodes that have a route of one of those given: which of them leads
// there may have changed for viewers that are led through certain routers.
func rivals(from, to *Scene, ids []mesh.NodeID) (list []mesh.NodeID) {
	for _, s := range []*Scene{from, to} {
		for _, id := range ids {
			if n, ok := s.Node(id); ok {
				for _, p := range n.Routes {
					list = append(list, s.RoutersOf(p)...)
				}
			}
		}
	}
	return list
}

// union is both lists as one, in order and once.
func union(a, b []mesh.NodeID) []mesh.NodeID {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// compare is what changed among the nodes given and in the settings.
func compare(from, to *Scene, before, after Viewpoint, ids []mesh.NodeID) *Response {
	r := &Response{}
	for _, id := range ids {
		old, was := from.Node(id)
		node, is := to.Node(id)
		was, is = was && from.Shows(before, old), is && to.Shows(after, node)
		switch {
		case was && !is:
			r.PeersRemoved = append(r.PeersRemoved, id)
		case is && !was:
			r.PeersChanged = append(r.PeersChanged, PeerFor(to, after, node))
			r.addProfile(to, node)
		case is:
			patch, whole := change(old, node)
			if whole || from.domain != to.domain || !to.SameMarks(node, from.World, old) || !sameRoutesFor(from, to, before, after, old, node) {
				r.PeersChanged = append(r.PeersChanged, PeerFor(to, after, node))
				r.addProfile(to, node)
			} else if patch != nil {
				r.PeersChangedPatch = append(r.PeersChangedPatch, patch)
			}
		}
	}
	if !bytes.Equal(from.dns, to.dns) {
		r.DNSConfig = to.dns
	}
	if !bytes.Equal(from.relays, to.relays) {
		r.DERPMap = to.relays
	}
	if from.domain != to.domain {
		r.Domain = to.domain
	}
	return r
}

// everyone names all nodes of both worlds, in order.
func everyone(from, to *Scene) []mesh.NodeID {
	ids := make([]mesh.NodeID, 0, to.NodeCount())
	for _, s := range []*Scene{from, to} {
		for n := range s.Nodes() {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// profiles are of the users whose nodes are shown from a viewpoint.
func profiles(s *Scene, v Viewpoint) []Profile {
	r := Response{UserProfiles: []Profile{}}
	if v.Class == policy.Nobody {
		return r.UserProfiles
	}
	for n := range s.Nodes() {
		if s.Shows(v, n) {
			r.addProfile(s, n)
		}
	}
	slices.SortFunc(r.UserProfiles, func(a, b Profile) int { return cmp.Compare(a.ID, b.ID) })
	return r.UserProfiles
}

// addProfile adds the owner of a node, once.
func (r *Response) addProfile(s *Scene, n *mesh.Node) {
	if p, ok := Owner(s, n); ok {
		r.addUnique(p)
	}
}

// Owner is whom a node belongs to; false if that user is gone.
func Owner(s *Scene, n *mesh.Node) (Profile, bool) {
	if n.Tagged() {
		return taggedDevices(), true
	}
	u, ok := s.User(n.Owner)
	if !ok {
		return Profile{}, false
	}
	return profileOf(u), true
}

func taggedDevices() Profile {
	return Profile{ID: int64(mesh.TaggedDevices), LoginName: "tagged-devices", DisplayName: "Tagged Devices"}
}

func profileOf(u *mesh.User) Profile {
	p := Profile{ID: int64(u.ID), LoginName: u.Name, DisplayName: u.DisplayName, ProfilePicURL: u.ProfilePicURL}
	if u.Email != "" {
		p.LoginName = u.Email
	}
	if p.DisplayName == "" {
		p.DisplayName = u.Name
	}
	return p
}

func (r *Response) addUnique(p Profile) {
	if r.profiled == nil {
		r.profiled = map[int64]bool{}
		for _, q := range r.UserProfiles {
			r.profiled[q.ID] = true
		}
	}
	if !r.profiled[p.ID] {
		r.profiled[p.ID] = true
		r.UserProfiles = append(r.UserProfiles, p)
	}
}
