package netmap

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// TaggedDevices is the user of nodes that belong to tags. No person may own
// them in the eyes of a client: it trusts devices of its own user.
const TaggedDevices = 2147455555

// Peer renders a node for its peers.
func Peer(s *Settings, n *mesh.Node) *Node {
	p := common(s, n)
	p.Cap = n.CapVersion
	if n.Host != "" {
		p.Hostinfo = json.RawMessage(n.Host)
	}
	p.LastSeen = n.Seen().Time()
	p.DiscoKey = n.Net.DiscoKey
	if n.Lapsed {
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

// Self renders a node for itself. How peers reach it is left out: it knows, and
// would rebuild its whole map for the news.
func Self(s *Settings, n *mesh.Node) *Node {
	p := common(s, n)
	p.Machine = n.MachineKey
	p.Hostinfo, _ = json.Marshal(map[string]string{"Hostname": n.Hostname, "OS": n.OS}) // cannot fail
	p.Online, p.LastSeen = true, p.Created
	p.CapMap = map[string][]json.RawMessage{
		"https://tailscale.com/cap/file-sharing": {},
		"magicdns-aaaa":                          {},
	}
	return p
}

func common(s *Settings, n *mesh.Node) *Node {
	p := &Node{
		ID: n.ID, StableID: "n" + n.ID.String(), Name: n.Name + "." + s.domain + ".", User: userOf(n), Key: n.NodeKey, KeyExpiry: n.Expiry.Time(),
		Created: n.CreatedAt.Time(), Tags: n.Tags, MachineAuthorized: true,
	}
	for _, a := range n.Addrs() {
		p.Addresses = append(p.Addresses, netip.PrefixFrom(a, a.BitLen()))
	}
	p.AllowedIPs = p.Addresses
	return p
}

func userOf(n *mesh.Node) int64 {
	if n.Tagged() {
		return TaggedDevices
	}
	return int64(n.Owner)
}

// change says how a peer that was rendered as p becomes q: not at all, by a
// patch, or by sending it whole.
func change(p, q *Node) (patch *Patch, whole bool) {
	same := *p
	same.Key, same.KeyExpiry, same.DiscoKey, same.Cap = q.Key, q.KeyExpiry, q.DiscoKey, q.Cap
	same.Endpoints, same.DERP, same.HomeDERP, same.Online, same.LastSeen = q.Endpoints, q.DERP, q.HomeDERP, q.Online, q.LastSeen
	if !reflect.DeepEqual(&same, q) {
		return nil, true
	}
	// A patch cannot take back what a peer had.
	if q.KeyExpiry.IsZero() != p.KeyExpiry.IsZero() || q.DiscoKey.IsZero() && !p.DiscoKey.IsZero() || q.Cap == 0 && p.Cap != 0 ||
		len(q.Endpoints) == 0 && len(p.Endpoints) != 0 || q.HomeDERP == 0 && p.HomeDERP != 0 {
		return nil, true
	}
	d := Patch{NodeID: q.ID}
	if q.HomeDERP != p.HomeDERP {
		d.DERPRegion = q.HomeDERP
	}
	if q.Cap != p.Cap {
		d.Cap = q.Cap
	}
	if !slices.Equal(q.Endpoints, p.Endpoints) {
		d.Endpoints = q.Endpoints
	}
	if q.Key != p.Key {
		d.Key = &q.Key
	}
	if !q.KeyExpiry.Equal(p.KeyExpiry) {
		d.KeyExpiry = &q.KeyExpiry
	}
	disco := q.DiscoKey != p.DiscoKey
	if disco {
		d.DiscoKey = &q.DiscoKey
	}
	// Clients weigh a new disco key by them.
	if disco || q.Online != p.Online || !q.LastSeen.Equal(p.LastSeen) {
		d.Online, d.LastSeen = &q.Online, &q.LastSeen
	}
	if reflect.DeepEqual(d, Patch{NodeID: q.ID}) {
		return nil, false
	}
	return &d, false
}
