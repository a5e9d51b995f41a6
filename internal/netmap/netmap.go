package netmap

import (
	"bytes"
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
}

// SceneOf prepares w. Before, if not nil, is an earlier scene, of which the
// settings are taken over when they did not change.
func SceneOf(w *policy.World, before *Scene) *Scene {
	if before != nil && before.SameSettings(w.Snapshot) {
		return &Scene{w, before.Settings}
	}
	return &Scene{w, SettingsOf(w.Snapshot)}
}

// Full renders all that a viewer knows. The viewer must exist.
func Full(s *Scene, viewer mesh.NodeID) *Response {
	n, _ := s.Node(viewer)
	class := s.Class(n)
	r := Common(s, class)
	r.Node = Self(s.Settings, n)
	r.addProfile(s, n)
	r.Peers = []*Node{}
	for peer := range s.Nodes() {
		if peer.ID != viewer && s.Sees(class, peer) {
			r.Peers = append(r.Peers, Peer(s.Settings, peer))
		}
	}
	return r
}

// Common is the part of Full that all viewers of a class share beside the peers.
func Common(s *Scene, class policy.Class) *Response {
	never := false
	return &Response{
		DERPMap: s.relays, DNSConfig: s.dns, Domain: s.domain, PacketFilters: filters(class), UserProfiles: profiles(s, class),
		CollectServices: &never, Debug: &Debug{DisableLogTail: true},
	}
}

// Farewell tells a node that was removed that its key is no longer good: a
// client that is merely cut off goes on with what it knows for ever.
func Farewell(s *Scene, n *mesh.Node, now mesh.Time) *Response {
	gone := *n
	// A client judges by its own clock, which may be behind.
	gone.Expiry = now.Add(-farewellSlack)
	return &Response{Node: Self(s.Settings, &gone)}
}

const farewellSlack = 24 * time.Hour

// Between renders what a viewer that knows from must hear to know to; nil if
// that is nothing. Touched names at least the nodes that changed on the way;
// nil means unknown. The viewer must exist in both.
func Between(from, to *Scene, viewer mesh.NodeID, touched []mesh.NodeID) *Response {
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	class := to.Class(after)
	if from.Class(before) == class {
		return Personal(from, to, viewer, Shared(from, to, class, touched))
	}
	r := compare(from, to, from.Class(before), class, everyone(from, to))
	r.PacketFilters = filters(class)
	r.UserProfiles = profiles(to, class)
	r.addProfile(to, after)
	return Personal(from, to, viewer, r)
}

// Personal makes of what a class hears, which may be nil and stays as it is, what
// one viewer hears.
func Personal(from, to *Scene, viewer mesh.NodeID, shared *Response) *Response {
	r := &Response{}
	if shared != nil {
		*r = *shared
		r.UserProfiles = slices.Clip(r.UserProfiles)
		r.PeersChanged = without(r.PeersChanged, func(n *Node) bool { return n.ID == viewer })
		r.PeersRemoved = without(r.PeersRemoved, func(id mesh.NodeID) bool { return id == viewer })
		r.PeersChangedPatch = without(r.PeersChangedPatch, func(p *Patch) bool { return p.NodeID == viewer })
	}
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	if !SameSelf(before, after) || from.domain != to.domain {
		r.Node = Self(to.Settings, after)
		r.addProfile(to, after)
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

// Shared is Between for all viewers of a class at once, provided that it names
// none of them whole and that they are the same to themselves; nil if they need
// to hear nothing. It may hold a patch for the viewer, which clients do not apply.
func Shared(from, to *Scene, class policy.Class, touched []mesh.NodeID) *Response {
	switch {
	case from.domain != to.domain: // it is part of every node's name
		touched = everyone(from, to)
	case touched == nil:
		touched = to.ChangedNodes(from.Snapshot)
	}
	r := compare(from, to, class, class, touched)
	for _, id := range to.ChangedUsers(from.Snapshot) {
		if u, ok := to.User(id); ok && to.NodesOwned(id) > 0 && class != policy.Nobody {
			r.addUnique(profileOf(u))
		}
	}
	if r.empty() {
		return nil
	}
	return r
}

// compare is what changed among the nodes given and in the settings.
func compare(from, to *Scene, before, after policy.Class, ids []mesh.NodeID) *Response {
	r := &Response{}
	for _, id := range ids {
		old, was := from.Node(id)
		node, is := to.Node(id)
		was, is = was && from.Sees(before, old), is && to.Sees(after, node)
		switch {
		case was && !is:
			r.PeersRemoved = append(r.PeersRemoved, id)
		case is && !was:
			r.PeersChanged = append(r.PeersChanged, Peer(to.Settings, node))
			r.addProfile(to, node)
		case is && (old != node || from.domain != to.domain):
			patch, whole := change(old, node)
			if whole || from.domain != to.domain {
				r.PeersChanged = append(r.PeersChanged, Peer(to.Settings, node))
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

// profiles are of the users whose nodes a class sees.
func profiles(s *Scene, class policy.Class) []Profile {
	list := []Profile{}
	if class == policy.Nobody {
		return list
	}
	for u := range s.Users() {
		if s.NodesOwned(u.ID) > 0 {
			list = append(list, profileOf(u))
		}
	}
	return append(list, taggedDevices())
}

// addProfile adds the owner of a node, once.
func (r *Response) addProfile(s *Scene, n *mesh.Node) {
	if n.Tagged() {
		r.addUnique(taggedDevices())
	} else if u, ok := s.User(n.Owner); ok {
		r.addUnique(profileOf(u))
	}
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
	if !slices.ContainsFunc(r.UserProfiles, func(q Profile) bool { return q.ID == p.ID }) {
		r.UserProfiles = append(r.UserProfiles, p)
	}
}

// filters lets everyone in, or nobody. One named set is always sent: clients
// keep an older one that nothing replaces.
func filters(class policy.Class) map[string][]Rule {
	rules := []Rule{}
	if class != policy.Nobody {
		rules = append(rules, Rule{SrcIPs: []string{"*"}, DstPorts: []PortRange{{IP: "*", Ports: Ports{0, 65535}}}})
	}
	return map[string][]Rule{"base": rules}
}
