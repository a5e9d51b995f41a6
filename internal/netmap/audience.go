package netmap

import (
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Audience contains at least the viewers that have to be sent something when one scene
// follows another. For everyone else, Update returns nothing.
type Audience struct {
	from, to *Scene
	everyone bool
	viewers  []mesh.NodeID
	changes  []nodeChange
	told     []mesh.NodeID
}

// nodeChange is a node before and after a change; nil if it did not exist.
type nodeChange struct{ was, is *mesh.Node }

// AudienceOf returns the audience of the step from one scene to another. touched contains
// at least the nodes that changed in between; nil means unknown.
func AudienceOf(from, to *Scene, touched []mesh.NodeID) *Audience {
	a := &Audience{from: from, to: to, told: touched}
	if touched == nil || from.Rules() != to.Rules() || from.Settings != to.Settings || from.Home != to.Home {
		a.everyone = true
		return a
	}
	a.viewers = union(affectedBy(from, to, touched), unapproved(from, to))
	a.told = []mesh.NodeID{}
	for _, id := range a.viewers {
		var c nodeChange
		c.was, _ = from.Nodes.Get(id)
		c.is, _ = to.Nodes.Get(id)
		if c.was != nil && c.is != nil && sameViewers(c.was, c.is) && from.PeerClass(c.was) == to.PeerClass(c.is) {
			if sameForViewers(from, to, c) {
				if isRouter(c.was) || isRouter(c.is) { // rules may steer viewers to it
					a.told = append(a.told, id)
				}
				continue
			}
			c.was = nil // seen by the same viewers as is
		}
		a.changes, a.told = append(a.changes, c), append(a.told, id)
	}
	return a
}

// sameForViewers reports whether the viewers of a node, which are the same in both scenes, are told nothing about the
// step, provided that no rule steers them: for example, the node has only opened a new stream. Both scenes must have the
// same rules.
func sameForViewers(from, to *Scene, c nodeChange) bool {
	return sameForAll(from, to, c.is.Owner) && sameDocument(c.was, c.is) && policy.SameMarks(from.World, to.World, c.was, c.is)
}

// unapproved returns the nodes that nobody sees yet, but that are told the new profile of
// their owner. Both scenes must have the same rules.
func unapproved(from, to *Scene) (list []mesh.NodeID) {
	changed := slices.DeleteFunc(slices.Clone(to.Users.ChangedSince(&from.Users)), func(id mesh.UserID) bool { return sameForAll(from, to, id) })
	if len(changed) == 0 {
		return nil
	}
	for n := range to.Nodes.All() {
		if n.NeedsApproval && slices.Contains(changed, n.Owner) {
			list = append(list, n.ID)
		}
	}
	return list
}

// Everyone reports whether all viewers are in the audience. Viewers and Includes must be
// called only if it returns false.
func (a *Audience) Everyone() bool { return a.everyone }

// Viewers returns the viewers that are in the audience because of what changed in
// themselves. All others have the same viewpoint in both scenes.
func (a *Audience) Viewers() []mesh.NodeID { return a.viewers }

// Told returns at least those of the touched nodes about which other viewers have to be told something, or nil if they are unknown.
// Update needs no others. So nodes that only open new streams, of which there may be thousands, cost the viewers of other changes
// nothing.
func (a *Audience) Told() []mesh.NodeID { return a.told }

// Includes reports whether the viewers with a viewpoint are in the audience.
func (a *Audience) Includes(v Viewpoint) bool {
	if !dependsOnVisible(a.from, a.to, v) {
		return true
	}
	return v.Class != policy.Nobody && slices.ContainsFunc(a.changes, func(c nodeChange) bool {
		return c.was != nil && a.from.Shows(v, c.was) || c.is != nil && a.to.Shows(v, c.is)
	})
}
