package netmap

import (
	"cmp"
	"slices"

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
	r := commonPart(s, v)
	r.PacketFilters = viewerFilters(s, n)
	r.Node = renderSelf(s, n)
	if own, ok := ownerProfile(s, n); ok && !slices.Contains(r.UserProfiles, own) {
		r.UserProfiles = slices.Insert(r.UserProfiles, 0, own)
	}
	r.Peers = []*Node{}
	for peer := range s.Nodes() {
		if peer.ID != viewer && s.Shows(v, peer) {
			r.Peers = append(r.Peers, renderPeerFor(s, v, peer))
		}
	}
	return r
}

// commonPart is the part of Full that all viewers with one viewpoint share beside the
// peers and the filters.
func commonPart(s *Scene, v Viewpoint) *Response {
	never := false
	return &Response{
		DERPMap: s.relays, DNSConfig: s.dns, Domain: s.domain, SSHPolicy: shellsOf(s, v), UserProfiles: profiles(s, v),
		CollectServices: &never, Debug: &Debug{DisableLogTail: true},
	}
}

// viewerFilters are the filters of a viewer. Those of nodes that are no routers follow
// from their viewpoint.
func viewerFilters(s *Scene, n *mesh.Node) map[string][]Rule {
	if isRouter(n) {
		return filtersOf(s, s.Viewpoint(n), n)
	}
	return filtersOf(s, s.Viewpoint(n), nil)
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
	if p, ok := ownerProfile(s, n); ok {
		r.addUnique(p)
	}
}

// ownerProfile is whom a node belongs to; false if that user is gone.
func ownerProfile(s *Scene, n *mesh.Node) (Profile, bool) {
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
