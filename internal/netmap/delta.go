package netmap

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// deletedResponse returns a response that tells a deleted node that its key has expired.
// A client that is merely disconnected would keep using the last map that it got.
func deletedResponse(s *Scene, n *mesh.Node, now mesh.Time) *Response {
	gone := *n
	gone.Expiry, gone.SuspendedAt = now.Add(-clockSlack), 0
	return &Response{Node: renderSelf(s, &gone)}
}

// clockSlack is how long ago a key that is to count as expired is said to have expired:
// clients compare the time with their own clock, which may be behind.
const clockSlack = 24 * time.Hour

// personal turns the response that viewers with the same viewpoint share into that of one
// viewer: it removes the viewer from the peers, and adds what changed in the viewer
// itself. shared may be nil, and is not modified. The result is nil if nothing changed for
// the viewer.
func personal(from, to *Scene, viewer mesh.NodeID, shared *Response) *Response {
	r := &Response{}
	if shared != nil {
		*r = *shared
		r.profiled = nil
		r.UserProfiles = slices.Clip(r.UserProfiles)
		r.PeersChanged = without(r.PeersChanged, func(n *Node) bool { return n.ID == viewer })
		r.PeersRemoved = without(r.PeersRemoved, func(id mesh.NodeID) bool { return id == viewer })
		r.PeersChangedPatch = without(r.PeersChangedPatch, func(p *Patch) bool { return p.NodeID == viewer })
	}
	before, _ := from.Nodes.Get(viewer)
	after, _ := to.Nodes.Get(viewer)
	was, is := from.Viewpoint(before), to.Viewpoint(after)
	if !sameSelf(before, after) || !from.sameSelf(to.Settings) || !sameAttributes(from, to, before, after) {
		r.Node = renderSelf(to, after)
		r.addProfile(to, is, after)
	}
	r.addDialPlan(from, to, viewer)
	r.addMessages(before, after)
	if isRouter(before) || isRouter(after) {
		r.PacketFilters = changedFilters(viewerFilters(from, before), viewerFilters(to, after))
	}
	if !sameProfile(from, to, was, is, after.Owner) {
		r.addProfile(to, is, after)
	}
	if r.empty() {
		return nil
	}
	return r
}

// addDialPlan adds the dial plan of a viewer if it changed.
func (r *Response) addDialPlan(from, to *Scene, viewer mesh.NodeID) {
	plan := to.dialPlan(viewer)
	switch {
	case bytes.Equal(from.dialPlan(viewer), plan):
	case plan == nil:
		r.ControlDialPlan = noDialPlan()
	default:
		r.ControlDialPlan = plan
	}
}

// without returns a list without the element for which is returns true. It returns nil
// instead of an empty list, because an empty list must not be sent.
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

// shared returns what changed between two scenes for all viewers with the same viewpoint,
// except for changes in the viewers themselves, or nil if nothing changed. Filters are
// those of viewers that are not routers. A viewer may be among the peers that changed. all
// is the crowd of the two scenes.
func shared(from, to *Scene, v viewpoints, touched []mesh.NodeID, all *crowd) *Response {
	before, after := v.before, v.after
	same := before == after && from.Rules() == to.Rules()
	switch {
	case !same || from.domain != to.domain: // the domain is part of every name
		touched = all.shown(from, to, before, after)
	case touched == nil:
		touched = to.Nodes.ChangedSince(&from.Nodes)
	}
	if same {
		touched = union(touched, policy.Reclassified(from.World, to.World))
		if to.Rules().Steers(after.Class) {
			touched = union(touched, sharedRouters(from, to, touched))
		}
	}
	r := compare(from, to, before, after, touched)
	if !same || !sameInbound(from, to, after) {
		r.PacketFilters = changedFilters(filtersOf(from, before, nil), filtersOf(to, after, nil))
	}
	if !v.noShells && (!same || !policy.SameShells(from.World, to.World, after.Class)) {
		r.SSHPolicy = changedShells(from, to, v)
	}
	for _, id := range otherProfiles(from, to, before, after) {
		if u, ok := to.Users.Get(id); ok && slices.ContainsFunc(to.Owned(id), func(id mesh.NodeID) bool {
			n, ok := to.Nodes.Get(id)
			return ok && to.Shows(after, n)
		}) {
			r.addUnique(profileFor(to, after, u))
		}
	}
	if r.empty() {
		return nil
	}
	return r
}

// changedShells returns the SSH rules of the second scene, or nil if they are the same as in the first.
func changedShells(from, to *Scene, v viewpoints) *SSHPolicy {
	shells := shellsOf(to, v.after)
	if reflect.DeepEqual(shells, shellsOf(from, v.before)) {
		return nil
	}
	return shells
}

// otherProfiles returns the users about whom viewers with one viewpoint in each scene are
// told something else.
func otherProfiles(from, to *Scene, before, after Viewpoint) []mesh.UserID {
	ids := to.Users.ChangedSince(&from.Users)
	if sameGroups := before.Class == after.Class && from.Rules() == to.Rules() ||
		!from.Rules().HasGroups(before.Class) && !to.Rules().HasGroups(after.Class); !sameGroups {
		ids = nil
		for u := range to.Users.All() {
			ids = append(ids, u.ID)
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id mesh.UserID) bool { return sameProfile(from, to, before, after, id) })
}

// sameProfile reports whether viewers with one viewpoint in each scene are told the same
// about a user.
func sameProfile(from, to *Scene, before, after Viewpoint, id mesh.UserID) bool {
	was, had := from.Users.Get(id)
	is, has := to.Users.Get(id)
	switch {
	case !had || !has:
		return had == has
	case was != is && !equalProfiles(profileOf(was), profileOf(is)):
		return false
	}
	return was == is && before == after && from.Rules() == to.Rules() ||
		slices.Equal(from.Rules().GroupsOf(before.Class, was), to.Rules().GroupsOf(after.Class, is))
}

// sameForAll reports whether all viewers whose viewpoint is the same are told the same
// about a user. Both scenes must have the same rules.
func sameForAll(from, to *Scene, id mesh.UserID) bool {
	was, had := from.Users.Get(id)
	is, has := to.Users.Get(id)
	return was == is || had && has && equalProfiles(profileOf(was), profileOf(is)) &&
		slices.Equal(was.Groups, is.Groups) && slices.Equal(lang.NamesOf(was), lang.NamesOf(is))
}

func equalProfiles(a, b Profile) bool {
	return a.ID == b.ID && a.LoginName == b.LoginName && a.DisplayName == b.DisplayName && a.ProfilePicURL == b.ProfilePicURL && slices.Equal(a.Groups, b.Groups)
}

// sharedServes reports whether the result of shared is all that a viewer needs, provided
// that the viewer itself did not change.
func sharedServes(from, to *Scene, viewer *mesh.Node) bool {
	before, after := from.Viewpoint(viewer), to.Viewpoint(viewer)
	return sameProfile(from, to, before, after, viewer.Owner) && from.sameSelf(to.Settings) && bytes.Equal(from.dialPlan(viewer.ID), to.dialPlan(viewer.ID)) && sameAttributes(from, to, viewer, viewer) && (!isRouter(viewer) ||
		before == after && from.Rules() == to.Rules() && sameInbound(from, to, after))
}

// dependsOnVisible reports whether the result of shared depends only on which of the
// affected nodes a viewpoint shows, and on which groups of their owners it is told.
func dependsOnVisible(from, to *Scene, v Viewpoint) bool {
	return from.Rules() == to.Rules() && !to.Rules().Steers(v.Class) && from.domain == to.domain && sameInbound(from, to, v) &&
		policy.SameShells(from.World, to.World, v.Class)
}

// affectedBy returns the nodes about which viewers may have to be told something: those
// that were touched or got another class, and those whose owner has another profile.
// Both scenes must have the same rules.
func affectedBy(from, to *Scene, touched []mesh.NodeID) []mesh.NodeID {
	affected := union(touched, policy.Reclassified(from.World, to.World))
	for _, id := range to.Users.ChangedSince(&from.Users) {
		if !sameForAll(from, to, id) {
			affected = union(affected, to.Owned(id))
		}
	}
	return affected
}

// sameInbound reports whether viewers with a viewpoint accept traffic from the same
// nodes, described in the same way, in both scenes.
func sameInbound(from, to *Scene, v Viewpoint) bool {
	return to.Basis().SameInbound(from.Basis(), v.Class, v.Old, v.Owner != 0)
}

// sharedRouters returns the nodes that have a route in common with one of ids. For viewers
// that rules with via send through certain routers, that route may now have a different
// router.
func sharedRouters(from, to *Scene, ids []mesh.NodeID) (list []mesh.NodeID) {
	for _, s := range []*Scene{from, to} {
		for _, id := range ids {
			if n, ok := s.Nodes.Get(id); ok {
				for _, p := range n.Routes {
					list = append(list, s.Nodes.RoutersOf(p)...)
				}
			}
		}
	}
	return list
}

// union returns the elements of both lists, sorted and without duplicates.
func union(a, b []mesh.NodeID) []mesh.NodeID {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// compare returns what changed in the nodes named by ids, and in the settings.
func compare(from, to *Scene, before, after Viewpoint, ids []mesh.NodeID) *Response {
	r := &Response{}
	for _, id := range ids {
		old, was := from.Nodes.Get(id)
		node, is := to.Nodes.Get(id)
		was, is = was && from.Shows(before, old), is && to.Shows(after, node)
		switch {
		case was && !is:
			r.PeersRemoved = append(r.PeersRemoved, id)
		case is && !was:
			r.PeersChanged = append(r.PeersChanged, renderPeerFor(to, after, node))
			r.addProfile(to, after, node)
		case is:
			patch, whole := change(old, node)
			if whole || from.domain != to.domain || !sameRoutesFor(from, to, before, after, old, node) {
				r.PeersChanged = append(r.PeersChanged, renderPeerFor(to, after, node))
				r.addProfile(to, after, node)
				continue
			}
			if !policy.SameMarks(from.World, to.World, old, node) {
				if patch == nil {
					patch = &Patch{NodeID: id}
				}
				patch.CapMap = renderMarks(to, node)
			}
			if patch != nil {
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
	if from.network() != to.network() {
		r.Domain = to.network()
	}
	return r
}
