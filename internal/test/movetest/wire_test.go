//go:build !race

package movetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// wire is what a device was sent about who is who: the part of its network map that must not change in a move, because the
// client stores it or derives something from it.
type wire struct {
	Domain string
	Self   wireNode
	Stable string              // the stable ID of the device
	Peers  map[string]wireNode // by stable ID
	Logins map[string]string   // login names by user ID, of the owners of these nodes
	Relays map[string]region
}

type wireNode struct {
	ID         int64
	Name       string
	User       int64
	Key        string
	Addresses  []string
	Tags       []string
	HomeRegion string // of peers; a client decides itself which one is its own
}

// region is a region of relays. The names of relays differ and have no meaning.
type region struct {
	RegionID               int
	RegionCode, RegionName string
	Nodes                  []struct {
		HostName, IPv4, IPv6 string
		STUNPort, DERPPort   int
	}
}

// netmap is the form in which "tailscale debug netmap" prints a network map.
type netmap struct {
	Domain       string
	SelfNode     netmapNode
	Peers        []netmapNode
	UserProfiles map[string]struct{ LoginName string }
	DERPMap      struct{ Regions map[string]region }
}

type netmapNode struct {
	wireNode
	StableID string
	HomeDERP int
	DERP     string // in older clients, 127.3.3.40: and the home region
}

// lookAtWire returns what a device was sent. Which client it has decides what it makes of it, so each version is tried.
func (n *network) lookAtWire(name string) (*wire, error) {
	out, text, code := n.devices[name].CLI(n.t.Context(), "debug", "netmap")
	var m netmap
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil {
		return nil, fmt.Errorf("%s: tailscale debug netmap: %s %w", name, text, err)
	}
	for _, r := range m.DERPMap.Regions {
		for i := range r.Nodes {
			r.Nodes[i].DERPPort = cmp.Or(r.Nodes[i].DERPPort, 443)
			r.Nodes[i].STUNPort = cmp.Or(r.Nodes[i].STUNPort, 3478)
		}
	}
	w := &wire{Domain: m.Domain, Self: m.SelfNode.wire(), Stable: m.SelfNode.StableID, Peers: map[string]wireNode{}, Logins: map[string]string{}, Relays: m.DERPMap.Regions}
	if n.from == 22 { // see forgetExpired
		m.Peers = slices.DeleteFunc(m.Peers, func(p netmapNode) bool { return strings.HasPrefix(p.Name, "old.") })
	}
	for _, p := range append(m.Peers, m.SelfNode) {
		user := fmt.Sprint(p.User)
		w.Logins[user] = m.UserProfiles[user].LoginName
	}
	for _, p := range m.Peers {
		peer := p.wire()
		if strings.HasPrefix(peer.Name, "old.") {
			peer.Key = usable(peer.Key)
			peer.HomeRegion = "" // the region of an expired device, which nobody can reach
		}
		w.Peers[p.StableID] = peer
	}
	w.Self.HomeRegion = ""
	return w, nil
}

func (n netmapNode) wire() wireNode {
	w := n.wireNode
	w.HomeRegion = strings.TrimPrefix(n.DERP, "127.3.3.40:")
	if n.HomeDERP != 0 {
		w.HomeRegion = fmt.Sprint(n.HomeDERP)
	}
	return w
}

// controlKey returns the key by which clients recognise the server.
func (n *network) controlKey() (keys struct{ PublicKey string }) {
	n.t.Helper()
	eventually(n.t, func() error {
		return n.proxy.api(n.t.Context(), "GET", "/key?v=131", "", &keys)
	})
	return keys
}
