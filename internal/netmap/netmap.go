package netmap

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Scene is a world together with its rendered settings. Everything that is rendered from
// one world shares its scene.
type Scene struct {
	*policy.World
	*Settings
	// Home is the host name of the server as clients know it; see HomeOf.
	Home string
}

// network returns the name of the network, which clients show to people: the host of the server, as Headscale sends it.
func (s *Scene) network() string {
	host, _, err := net.SplitHostPort(s.Home)
	if err != nil { // no port
		host = strings.Trim(s.Home, "[]")
	}
	return cmp.Or(host, s.domain)
}

// SceneOf renders the settings of w. before is an earlier scene or nil; its settings are
// reused if they did not change.
func SceneOf(w *policy.World, before *Scene) *Scene {
	if before != nil && before.SameSettings(w.Snapshot) {
		return &Scene{World: w, Settings: before.Settings}
	}
	return &Scene{World: w, Settings: SettingsOf(w.Snapshot)}
}

// Viewpoint determines which peers a viewer sees, and what it is sent about them. All
// viewers with the same viewpoint are sent the same. Viewpoints of two worlds are
// comparable only if the worlds have the same rules.
type Viewpoint struct {
	Class policy.Class
	// Owner is set only if access rules or SSH rules depend on the owner.
	Owner mesh.UserID
	// Old is set for clients that do not support marks.
	Old bool
}

// Viewpoint returns the viewpoint of a node: the zero value if it has no peers.
func (s *Scene) Viewpoint(n *mesh.Node) Viewpoint {
	c := s.Class(n)
	if c == policy.Nobody {
		return Viewpoint{}
	}
	v := Viewpoint{Class: c, Old: n.CapVersion < marksSince}
	if s.Rules().HasOwn(c) || s.Rules().ShellsOfOwn(c) {
		v.Owner = n.Owner
	}
	return v
}

// Shows reports whether viewers with a viewpoint have a node as their peer. It may report
// true for the viewer itself, which callers must exclude.
func (s *Scene) Shows(v Viewpoint, n *mesh.Node) bool {
	return s.Sees(v.Class, v.Owner, n)
}

// Full renders the whole map of a viewer. The viewer must exist.
func Full(s *Scene, viewer mesh.NodeID) *Response {
	n, _ := s.Nodes.Get(viewer)
	v := s.Viewpoint(n)
	r := commonPart(s, v)
	r.PacketFilters = viewerFilters(s, n)
	r.Node, r.ControlDialPlan = renderSelf(s, n), s.dialPlan(viewer)
	r.addMessages(nil, n)
	if own, ok := ownerProfile(s, v, n); ok && !hasProfile(r.UserProfiles, own) {
		r.UserProfiles = slices.Insert(r.UserProfiles, 0, own)
	}
	r.Peers = []*Node{}
	for peer := range s.Nodes.All() {
		if peer.ID != viewer && s.Shows(v, peer) {
			r.Peers = append(r.Peers, renderPeerFor(s, v, peer))
		}
	}
	return r
}

// commonPart returns the part of Full that all viewers with the same viewpoint
// share, without peers and filters.
func commonPart(s *Scene, v Viewpoint) *Response {
	never := false
	return &Response{
		DERPMap: s.relays, DNSConfig: s.dns, Domain: s.network(), SSHPolicy: shellsOf(s, v), UserProfiles: profiles(s, v),
		CollectServices: &never, Debug: &Debug{DisableLogTail: true},
	}
}

// viewerFilters returns the packet filters of a viewer. Unless it is a router, they
// depend on its viewpoint alone.
func viewerFilters(s *Scene, n *mesh.Node) map[string][]Rule {
	if isRouter(n) {
		return filtersOf(s, s.Viewpoint(n), n)
	}
	return filtersOf(s, s.Viewpoint(n), nil)
}

// profiles returns the profiles of the users whose nodes a viewpoint shows.
func profiles(s *Scene, v Viewpoint) []Profile {
	r := Response{UserProfiles: []Profile{}}
	if v.Class == policy.Nobody {
		return r.UserProfiles
	}
	for n := range s.Nodes.All() {
		if s.Shows(v, n) {
			r.addProfile(s, v, n)
		}
	}
	slices.SortFunc(r.UserProfiles, func(a, b Profile) int { return cmp.Compare(a.ID, b.ID) })
	return r.UserProfiles
}

// hasProfile reports whether a list of profiles of one viewpoint contains a profile.
func hasProfile(list []Profile, p Profile) bool {
	return slices.ContainsFunc(list, func(q Profile) bool { return q.ID == p.ID })
}

// addProfile adds the profile of the owner of a node, as viewers with a viewpoint are
// told it, unless r already has it.
func (r *Response) addProfile(s *Scene, v Viewpoint, n *mesh.Node) {
	if n.Tagged() || !r.profiled[int64(n.Owner)] {
		if p, ok := ownerProfile(s, v, n); ok {
			r.addUnique(p)
		}
	}
}

// ownerProfile returns the profile of the owner of a node, as viewers with a viewpoint
// are told it, or false if the user was deleted.
func ownerProfile(s *Scene, v Viewpoint, n *mesh.Node) (Profile, bool) {
	if n.Tagged() {
		return taggedDevices(), true
	}
	u, ok := s.Users.Get(n.Owner)
	if !ok {
		return Profile{}, false
	}
	return profileFor(s, v, u), true
}

func taggedDevices() Profile {
	return Profile{ID: int64(mesh.TaggedDevices), LoginName: "tagged-devices", DisplayName: "Tagged Devices"}
}

// profileFor returns the profile of a user as viewers with a viewpoint are told it. They
// are told only the groups by which rules let people reach them: which other groups
// someone has is none of their business, and would have to be sent to everyone.
func profileFor(s *Scene, v Viewpoint, u *mesh.User) Profile {
	p := profileOf(u)
	p.Groups = s.Rules().GroupsOf(v.Class, u)
	return p
}

// profileOf returns the profile of a user without groups.
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
