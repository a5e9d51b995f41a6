package netmap

import (
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// renderPeer renders a node as its peers see it.
func renderPeer(s *Scene, n *mesh.Node) *Node {
	p := common(s, n)
	if marks := renderMarks(s, n); len(marks) > 0 {
		p.CapMap = marks
	}
	p.Cap = n.CapVersion
	p.Hostinfo = json.RawMessage(n.Host)
	if !json.Valid(p.Hostinfo) { // missing or damaged
		p.Hostinfo = plainHost(n)
	}
	p.LastSeen = n.Seen().Time()
	p.DiscoKey = n.Net.DiscoKey
	if n.KeyExpired {
		p.Expired = true
		return p
	}
	p.Online = n.Presence.Online
	p.Endpoints = n.Net.Endpoints
	if relay := n.Net.HomeRelay; relay != 0 {
		p.HomeDERP, p.DERP = relay, "127.3.3.40:"+strconv.Itoa(relay)
	}
	return p
}

// renderMarks renders the marks of a node, which may be none.
func renderMarks(s *Scene, n *mesh.Node) map[string][]json.RawMessage {
	marks := s.Marks(n)
	rendered := make(map[string][]json.RawMessage, len(marks))
	for _, m := range marks {
		rendered[m] = []json.RawMessage{}
	}
	return rendered
}

// renderPeerFor renders a node as viewers with a viewpoint see it: rules with via may
// send them through certain routers.
func renderPeerFor(s *Scene, v Viewpoint, n *mesh.Node) *Node {
	p := renderPeer(s, n)
	if s.Rules().Steers(v.Class) && len(n.Routes) > 0 {
		routes := permitted(s, s.RoutesFor(v.Class, n))
		p.AllowedIPs = slices.Concat(p.Addresses, routes)
		if p.PrimaryRoutes = slices.DeleteFunc(routes, mesh.Exit); len(p.PrimaryRoutes) == 0 {
			p.PrimaryRoutes = nil
		}
	}
	return p
}

// sameRoutesFor reports whether viewers are sent the same routes of a node in both
// scenes.
func sameRoutesFor(from, to *Scene, before, after Viewpoint, old, node *mesh.Node) bool {
	if len(old.Routes)+len(node.Routes) == 0 || !from.Rules().Steers(before.Class) && !to.Rules().Steers(after.Class) {
		return true // change has compared the other routes
	}
	a, b := renderPeerFor(from, before, old), renderPeerFor(to, after, node)
	return slices.Equal(a.AllowedIPs, b.AllowedIPs) && slices.Equal(a.PrimaryRoutes, b.PrimaryRoutes)
}

// renderSelf renders a node for itself, without its endpoints and relay: the client
// knows these, and would rebuild its whole map whenever they change. A node whose owner is
// suspended is told that its key has expired: its client stops, keeps its key, and continues
// when it is told of a later expiry.
func renderSelf(s *Scene, n *mesh.Node) *Node {
	p := common(s, n)
	if n.Suspended() {
		p.KeyExpiry = n.SuspendedAt.Add(-clockSlack).Time()
	}
	p.Machine = n.MachineKey
	p.Hostinfo = plainHost(n)
	p.Online, p.LastSeen = true, p.Created
	p.CapMap = map[string][]json.RawMessage{
		"https://tailscale.com/cap/ssh": {},
		"magicdns-aaaa":                 {},
	}
	if !s.clients.NoTaildrop {
		p.CapMap[fileSharing] = []json.RawMessage{}
	}
	if s.clients.RandomPort {
		p.CapMap["randomize-client-port"] = []json.RawMessage{}
	}
	if s.clients.CacheMaps {
		p.CapMap["cache-network-maps"] = []json.RawMessage{}
	}
	maps.Copy(p.CapMap, s.Rules().Attributes(s.Class(n)))
	return p
}

// fileSharing is the capability with which a client sends and receives files.
const fileSharing = "https://tailscale.com/cap/file-sharing"

// sameAttributes reports whether the policy gives a node the same attributes in
// both scenes.
func sameAttributes(from, to *Scene, before, after *mesh.Node) bool {
	a, b := from.Class(before), to.Class(after)
	return a == b && from.Rules() == to.Rules() || reflect.DeepEqual(from.Rules().Attributes(a), to.Rules().Attributes(b))
}

// plainHost returns the minimum host information that clients accept. Some fail without
// it.
func plainHost(n *mesh.Node) json.RawMessage {
	return encode(map[string]string{"Hostname": n.Hostname, "OS": n.OS})
}

func common(s *Scene, n *mesh.Node) *Node {
	p := &Node{
		ID: n.ID, StableID: n.Stable(), Name: n.Name + "." + s.domain + ".", User: userOf(n), Key: n.NodeKey, KeyExpiry: n.Expiry.Time(),
		Created: n.CreatedAt.Time(), Tags: n.Tags, MachineAuthorized: !n.NeedsApproval,
	}
	for _, a := range n.Addrs() {
		p.Addresses = append(p.Addresses, netip.PrefixFrom(a, a.BitLen()))
	}
	p.AllowedIPs = p.Addresses
	if len(n.Routes) > 0 {
		p.PrimaryRoutes = permitted(s, n.Primary)
		p.AllowedIPs = slices.Concat(p.Addresses, p.PrimaryRoutes, exits(n))
	}
	return p
}

// permitted omits routes that would attract the traffic of other nodes. Such routes are
// refused, but nodes stored before a range was reserved may still have some.
func permitted(s *Scene, routes []netip.Prefix) []netip.Prefix {
	taken := func(p netip.Prefix) bool {
		_, overlaps := s.Reserved.Overlap(p)
		return overlaps
	}
	if !slices.ContainsFunc(routes, taken) {
		return routes
	}
	if routes = slices.DeleteFunc(slices.Clone(routes), taken); len(routes) == 0 {
		return nil
	}
	return routes
}

// exits returns the routes to the internet. Unlike other routes, several nodes may
// serve them at once, and each client chooses one.
func exits(n *mesh.Node) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(n.Routes), func(p netip.Prefix) bool { return !mesh.Exit(p) })
}

func userOf(n *mesh.Node) int64 {
	if n.Tagged() {
		return int64(mesh.TaggedDevices)
	}
	return int64(n.Owner)
}

// sameSelf reports whether a node is sent the same about itself for two of its values, given
// the same settings.
func sameSelf(a, b *mesh.Node) bool {
	return a == b || sameName(a, b) && sameMessages(a, b) && a.NeedsApproval == b.NeedsApproval && a.NodeKey == b.NodeKey && a.Expiry == b.Expiry && a.SuspendedAt == b.SuspendedAt && a.MachineKey == b.MachineKey && a.OS == b.OS
}

// sameName reports whether two values of a node agree in the fields that are sent both to
// the node and to its peers, and that a patch cannot change.
func sameName(a, b *mesh.Node) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Hostname == b.Hostname && a.Owner == b.Owner && a.IPv4 == b.IPv4 && a.IPv6 == b.IPv6 &&
		a.CreatedAt == b.CreatedAt && slices.Equal(a.Tags, b.Tags) && slices.Equal(a.Routes, b.Routes) && slices.Equal(a.Primary, b.Primary)
}

// sameDocument reports whether renderPeer renders two values of a node in the same way, apart from its marks.
func sameDocument(a, b *mesh.Node) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.NeedsApproval != b.NeedsApproval {
		return false
	}
	patch, whole := change(a, b)
	return patch == nil && !whole
}

// change returns how peers are informed of a change in a node: not at all, by a patch, or
// by sending the whole node. It compares the fields that renderPeer uses.
func change(old, node *mesh.Node) (patch *Patch, whole bool) {
	if !sameName(old, node) || old.Host != node.Host || old.OS != node.OS || old.KeyExpired != node.KeyExpired {
		return nil, true
	}
	a, b := old.Net, node.Net
	online := node.Presence.Online
	sameOnline := old.Presence.Online == online
	if node.KeyExpired { // endpoints, relay and online status are not rendered
		a.Endpoints, a.HomeRelay, b.Endpoints, b.HomeRelay = nil, 0, nil, 0
		online, sameOnline = false, true
	}
	// A patch cannot remove a value.
	if (old.Expiry == 0) != (node.Expiry == 0) || b.DiscoKey.IsZero() && !a.DiscoKey.IsZero() || node.CapVersion == 0 && old.CapVersion != 0 ||
		len(b.Endpoints) == 0 && len(a.Endpoints) != 0 || b.HomeRelay == 0 && a.HomeRelay != 0 {
		return nil, true
	}
	d := &Patch{NodeID: node.ID}
	changed := false
	if b.HomeRelay != a.HomeRelay {
		d.DERPRegion, changed = b.HomeRelay, true
	}
	if node.CapVersion != old.CapVersion {
		d.Cap, changed = node.CapVersion, true
	}
	if !slices.Equal(b.Endpoints, a.Endpoints) {
		d.Endpoints, changed = b.Endpoints, true
	}
	if node.NodeKey != old.NodeKey {
		d.Key, changed = &node.NodeKey, true
	}
	if node.Expiry != old.Expiry {
		at := node.Expiry.Time()
		d.KeyExpiry, changed = &at, true
	}
	disco := b.DiscoKey != a.DiscoKey
	if disco {
		d.DiscoKey = &node.Net.DiscoKey
	}
	// Clients also need the online status and last-seen time to decide whether to accept
	// a new disco key.
	if disco || !sameOnline || node.Seen() != old.Seen() {
		seen := node.Seen().Time()
		d.Online, d.LastSeen, changed = &online, &seen, true
	}
	if !changed {
		return nil, false
	}
	return d, false
}
