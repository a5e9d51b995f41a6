package netmap

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// View is what a client holds: the sum of the messages it was given, by the
// clients' rules.
type View struct {
	node     *Node
	peers    map[mesh.NodeID]*Node
	relays   string
	dns      string
	domain   string
	filters  map[string][]Rule
	shells   *SSHPolicy
	profiles map[int64]Profile
}

// Take adds a message. An empty list of peers means nothing to a client, and a
// patch for a peer that it does not have is lost.
func (v *View) Take(r *Response) {
	if v.peers == nil {
		v.peers, v.filters, v.profiles = map[mesh.NodeID]*Node{}, map[string][]Rule{}, map[int64]Profile{}
	}
	if r.Node != nil {
		v.node = r.Node
	}
	if len(r.Peers) > 0 {
		clear(v.peers)
		for _, n := range r.Peers {
			v.peers[n.ID] = n
		}
	} else {
		v.takePeers(r)
	}
	if r.DERPMap != nil {
		v.relays = string(r.DERPMap)
	}
	if r.DNSConfig != nil {
		v.dns = string(r.DNSConfig)
	}
	if r.Domain != "" {
		v.domain = r.Domain
	}
	for name, rules := range r.PacketFilters {
		if v.filters[name] = rules; len(rules) == 0 {
			delete(v.filters, name)
		}
	}
	if r.SSHPolicy != nil {
		v.shells = r.SSHPolicy
	}
	for _, p := range r.UserProfiles {
		v.profiles[p.ID] = p
	}
}

func (v *View) takePeers(r *Response) {
	for _, id := range r.PeersRemoved {
		delete(v.peers, id)
	}
	for _, n := range r.PeersChanged {
		v.peers[n.ID] = n
	}
	for _, d := range r.PeersChangedPatch {
		if old, ok := v.peers[d.NodeID]; ok {
			v.peers[d.NodeID] = d.applied(old)
		}
	}
}

func (d *Patch) applied(old *Node) *Node {
	n := *old
	if d.DERPRegion != 0 {
		n.HomeDERP, n.DERP = d.DERPRegion, fmt.Sprintf("127.3.3.40:%d", d.DERPRegion)
	}
	if d.Cap != 0 {
		n.Cap = d.Cap
	}
	if d.Endpoints != nil {
		n.Endpoints = d.Endpoints
	}
	if d.Key != nil {
		n.Key = *d.Key
	}
	if d.DiscoKey != nil {
		n.DiscoKey = *d.DiscoKey
	}
	if d.Online != nil {
		n.Online = *d.Online
	}
	if d.LastSeen != nil {
		n.LastSeen = *d.LastSeen
	}
	if d.KeyExpiry != nil {
		n.KeyExpiry = *d.KeyExpiry
	}
	return &n
}

// Differs says where v and w differ; it is empty when a client cannot tell them
// apart. Profiles of users that w does not have may stay: clients never forget
// one.
func (v *View) Differs(w *View) string {
	switch {
	case !reflect.DeepEqual(v.node, w.node):
		return fmt.Sprintf("self: %+v, want %+v", v.node, w.node)
	case v.relays != w.relays:
		return fmt.Sprintf("relays: %s, want %s", v.relays, w.relays)
	case v.dns != w.dns:
		return fmt.Sprintf("dns: %s, want %s", v.dns, w.dns)
	case v.domain != w.domain:
		return fmt.Sprintf("domain: %s, want %s", v.domain, w.domain)
	case !reflect.DeepEqual(v.shells, w.shells):
		return fmt.Sprintf("shells: %+v, want %+v", v.shells, w.shells)
	case !reflect.DeepEqual(v.filters, w.filters):
		return fmt.Sprintf("filters: %v, want %v", v.filters, w.filters)
	}
	for id, p := range w.profiles {
		if v.profiles[id] != p {
			return fmt.Sprintf("user %d: %+v, want %+v", id, v.profiles[id], p)
		}
	}
	ids := slices.Sorted(maps.Keys(v.peers))
	if want := slices.Sorted(maps.Keys(w.peers)); !slices.Equal(ids, want) {
		return fmt.Sprintf("peers: %v, want %v", ids, want)
	}
	for _, id := range ids {
		if !reflect.DeepEqual(v.peers[id], w.peers[id]) {
			return fmt.Sprintf("peer %d: %+v, want %+v", id, v.peers[id], w.peers[id])
		}
	}
	return ""
}

// Check proves the law for one viewer: Full(from) and what changed make Full(to). It
// returns where they differ.
func Check(from, to *Scene, viewer mesh.NodeID, touched []mesh.NodeID) string {
	var got, want View
	got.Take(Full(from, viewer))
	before, _ := from.Node(viewer)
	after, _ := to.Node(viewer)
	if r := personal(from, to, viewer, shared(from, to, from.Viewpoint(before), to.Viewpoint(after), touched)); r != nil {
		got.Take(r)
	}
	want.Take(Full(to, viewer))
	return got.Differs(&want)
}
