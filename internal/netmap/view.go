package netmap

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// View is the map that a client holds after the messages it was sent, by the
// rules of Tailscale clients.
type View struct {
	node     *Node
	peers    map[mesh.NodeID]*Node
	relays   string
	dns      string
	plan     string
	domain   string
	filters  map[string][]Rule
	shells   *SSHPolicy
	profiles map[int64]Profile
	health   []string
	messages map[string]DisplayMessage
}

// Take applies a message as clients do. They ignore an empty list of peers, and a patch
// for a peer that they do not have.
func (v *View) Take(r *Response) {
	if v.peers == nil {
		v.peers, v.filters, v.profiles, v.messages = map[mesh.NodeID]*Node{}, map[string][]Rule{}, map[int64]Profile{}, map[string]DisplayMessage{}
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
	if r.ControlDialPlan != nil {
		if v.plan = string(r.ControlDialPlan); v.plan == string(noDialPlan()) {
			v.plan = ""
		}
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
	v.takeMessages(r)
}

func (v *View) takeMessages(r *Response) {
	if r.Health != nil {
		v.health = r.Health
	}
	for id, m := range r.DisplayMessages {
		if delete(v.messages, id); m != nil {
			v.messages[id] = *m
		}
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
	if d.CapMap != nil {
		if n.CapMap = d.CapMap; len(d.CapMap) == 0 {
			n.CapMap = nil // as it is rendered
		}
	}
	return &n
}

// Differs returns the first difference between v and w, or an empty string if they are
// equivalent for a client. v may have additional user profiles, because clients never
// remove one.
func (v *View) Differs(w *View) string {
	switch {
	case !same(v.node, w.node):
		return fmt.Sprintf("self: %+v, want %+v", v.node, w.node)
	case v.relays != w.relays:
		return fmt.Sprintf("relays: %s, want %s", v.relays, w.relays)
	case v.dns != w.dns:
		return fmt.Sprintf("dns: %s, want %s", v.dns, w.dns)
	case v.plan != w.plan:
		return fmt.Sprintf("dial plan: %s, want %s", v.plan, w.plan)
	case v.domain != w.domain:
		return fmt.Sprintf("domain: %s, want %s", v.domain, w.domain)
	case !same(v.shells, w.shells):
		return fmt.Sprintf("shells: %+v, want %+v", v.shells, w.shells)
	case !slices.Equal(v.health, w.health) || !maps.Equal(v.messages, w.messages):
		return fmt.Sprintf("messages: %v %v, want %v %v", v.health, v.messages, w.health, w.messages)
	case !same(v.filters, w.filters):
		return fmt.Sprintf("filters: %v, want %v", v.filters, w.filters)
	}
	for id, p := range w.profiles {
		if !equalProfiles(v.profiles[id], p) {
			return fmt.Sprintf("user %d: %+v, want %+v", id, v.profiles[id], p)
		}
	}
	ids := slices.Sorted(maps.Keys(v.peers))
	if want := slices.Sorted(maps.Keys(w.peers)); !slices.Equal(ids, want) {
		return fmt.Sprintf("peers: %v, want %v", ids, want)
	}
	for _, id := range ids {
		if !same(v.peers[id], w.peers[id]) {
			return fmt.Sprintf("peer %d: %+v, want %+v", id, v.peers[id], w.peers[id])
		}
	}
	return ""
}

// same reports whether two values are equivalent for a client. Rendered values and
// decoded ones may differ in ways that JSON does not show, such as empty lists.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || bytes.Equal(encode(a), encode(b)) }

// Verify reads what a viewer was sent, as its client does, and compares the result with
// the full map of to, which it renders for this purpose. from is the scene that the
// viewer had before, or nil if there was none. Verify returns the first difference, or an
// empty string.
func Verify(from, to *Scene, v Viewer, sent [][]byte) string {
	messages, err := readMessages(slices.Concat(sent...), v.Compress)
	if err != nil {
		return "cannot read a message: " + err.Error()
	}
	var got, want View
	if from != nil {
		got.Take(Full(from, v.Node))
	}
	for _, r := range messages {
		got.Take(r)
	}
	want.Take(Full(to, v.Node))
	return got.Differs(&want)
}
