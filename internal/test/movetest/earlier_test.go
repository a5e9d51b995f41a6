//go:build !race

package movetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// taggedDevices is the user to whom Fairlead and Headscale since 0.28 assign devices with tags.
const taggedDevices = 2147455555

// moved returns what a device must show with Fairlead if it showed this with Headscale. It changes only what is known to
// differ from earlier versions.
func (n *network) moved(v view) view {
	v.Status, _ = clone(v.Status).(map[string]any)
	v.Lines = slices.Clone(v.Lines)
	if v.Wire != nil {
		w := *v.Wire
		w.Peers, w.Logins = maps.Clone(w.Peers), maps.Clone(w.Logins)
		v.Wire = &w
	}
	if n.from < 28 {
		v.disown()
	}
	if n.from < 26 {
		v.rename()
	}
	if n.from < 24 {
		v.renameMesh()
	}
	if n.from == 22 {
		v.order()
		v.locate(n.server.Addr.String())
	}
	slices.Sort(v.Lines)
	return v
}

// clone returns a copy of a value from JSON.
func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for k, v := range value {
			copied[k] = clone(v)
		}
		return copied
	case []any:
		copied := slices.Clone(value)
		for i, v := range copied {
			copied[i] = clone(v)
		}
		return copied
	}
	return value
}

// nodes calls do with the device itself and each of its peers in a status.
func (v *view) nodes(do func(node map[string]any)) {
	if self, ok := v.Status["Self"].(map[string]any); ok {
		do(self)
	}
	peers, _ := v.Status["Peer"].(map[string]any)
	for _, p := range peers {
		if peer, ok := p.(map[string]any); ok {
			do(peer)
		}
	}
}

// wireNodes replaces what the device was sent about itself and each peer.
func (v *view) wireNodes(change func(wireNode) wireNode) {
	if v.Wire == nil {
		return
	}
	v.Wire.Self = change(v.Wire.Self)
	for id, p := range v.Wire.Peers {
		v.Wire.Peers[id] = change(p)
	}
}

// disown assigns devices with tags to nobody. Headscale before 0.28 left them with the user who added them.
func (v *view) disown() {
	users, _ := v.Status["User"].(map[string]any)
	v.nodes(func(node map[string]any) {
		if tags, _ := node["Tags"].([]any); len(tags) == 0 {
			return
		}
		node["UserID"] = float64(taggedDevices)
		for _, u := range users { // which members it has depends on the client
			user, _ := clone(u).(map[string]any)
			user["ID"], user["LoginName"], user["DisplayName"] = float64(taggedDevices), "tagged-devices", "Tagged Devices"
			users[fmt.Sprint(taggedDevices)] = user
			break
		}
		for i, line := range v.Lines {
			if fields := strings.Fields(line); len(fields) > 2 && fields[1] == node["HostName"] {
				fields[2] = "tagged-devices"
				v.Lines[i] = strings.Join(fields, " ")
			}
		}
	})
	v.wireNodes(func(node wireNode) wireNode {
		if len(node.Tags) > 0 {
			node.User = taggedDevices
			v.Wire.Logins[fmt.Sprint(taggedDevices)] = "tagged-devices"
		}
		return node
	})
}

// rename completes the names of devices. Headscale before 0.26 sent them without the dot at the end, and 0.22 put the name of
// the owner before the base domain.
func (v *view) rename() {
	whole := func(name string) string {
		label, _, _ := strings.Cut(name, ".")
		return label + "." + baseDomain + "."
	}
	v.nodes(func(node map[string]any) {
		if name, _ := node["DNSName"].(string); name != "" {
			node["DNSName"] = whole(name)
		}
	})
	v.wireNodes(func(node wireNode) wireNode { node.Name = whole(node.Name); return node })
}

// locate adds the address of the relay, a setting that Headscale 0.22 did not have.
func (v *view) locate(address string) {
	if v.Wire == nil {
		return
	}
	v.Wire.Relays = maps.Clone(v.Wire.Relays)
	for id, r := range v.Wire.Relays {
		r.Nodes = slices.Clone(r.Nodes)
		for i := range r.Nodes {
			r.Nodes[i].IPv4 = address
		}
		v.Wire.Relays[id] = r
	}
}

// order puts IPv4 addresses first. Headscale 0.22 sends the addresses of a device in any order.
func (v *view) order() {
	v.nodes(func(node map[string]any) {
		ips, _ := node["TailscaleIPs"].([]any) // sorted
		for i, line := range v.Lines {
			if address, rest, _ := strings.Cut(line, " "); slices.Contains(ips, any(address)) {
				v.Lines[i] = fmt.Sprint(ips[0], " ", rest)
			}
		}
	})
	v.wireNodes(func(node wireNode) wireNode {
		node.Addresses = slices.Sorted(slices.Values(node.Addresses))
		return node
	})
}

// renameMesh names the mesh after the server. Headscale before 0.24 named it after the base domain.
func (v *view) renameMesh() {
	if v.Wire != nil {
		v.Wire.Domain = serverName
	}
	if tailnet, ok := v.Status["CurrentTailnet"].(map[string]any); ok {
		tailnet["Name"], tailnet["MagicDNSSuffix"] = serverName, baseDomain
	}
	if _, ok := v.Status["MagicDNSSuffix"]; ok {
		v.Status["MagicDNSSuffix"] = baseDomain
	}
	users, _ := v.Status["User"].(map[string]any)
	for _, u := range users {
		if user, _ := u.(map[string]any); user["LoginName"] != "tagged-devices" {
			user["DisplayName"] = user["LoginName"] // 0.22 added the base domain
		}
	}
}

// forgetExpired removes the expired device from a status, and its owner, who has no other. Headscale 0.22 shows expired
// devices to nobody.
func forgetExpired(status map[string]any) {
	peers, _ := status["Peer"].(map[string]any)
	maps.DeleteFunc(peers, func(_ string, p any) bool {
		peer, _ := p.(map[string]any)
		return peer["HostName"] == "old"
	})
	users, _ := status["User"].(map[string]any)
	maps.DeleteFunc(users, func(_ string, u any) bool {
		user, _ := u.(map[string]any)
		return user["LoginName"] == "bob"
	})
}

// movedNode returns what the API of Fairlead must list if that of Headscale listed this.
func (n *network) movedNode(v node) node {
	if n.from < 28 && len(v.Tags) > 0 {
		v.User.ID, v.User.Name = fmt.Sprint(taggedDevices), "tagged-devices"
	}
	if n.from == 22 {
		v.MachineKey, v.NodeKey, v.DiscoKey = "mkey:"+v.MachineKey, "nodekey:"+v.NodeKey, "discokey:"+v.DiscoKey
		v.RegisterMethod = "REGISTER_METHOD_AUTH_KEY" // 0.22 does not tell
		v.Online = true                               // 0.22 lists expired devices as offline, even if they are connected
		v.IPAddresses = slices.Sorted(slices.Values(v.IPAddresses))
	}
	return v
}

// listedNode has the members that Headscale before 0.28 had instead of those of a node.
type listedNode struct {
	node
	ForcedTags []string `json:"forcedTags"`
	ValidTags  []string `json:"validTags"`
}

func (l listedNode) asNode() node {
	v := l.node
	if v.Tags == nil {
		v.Tags = slices.Concat(l.ForcedTags, l.ValidTags)
		slices.Sort(v.Tags)
		v.Tags = slices.Compact(v.Tags)
	}
	if v.Tags == nil {
		v.Tags = []string{}
	}
	return v
}

// route is a route in the lists of Headscale before 0.26, which Fairlead still has.
type route struct {
	Node, Machine                  *struct{ ID string } // one of them
	Prefix                         string
	Advertised, Enabled, IsPrimary bool
}

// addRoutes adds the routes that Headscale before 0.26 did not list with nodes, by ID of the node.
func (n *network) addRoutes(apiKey string, nodes []node) error {
	var body struct{ Routes []route }
	if err := n.proxy.api(n.t.Context(), "GET", "/api/v1/routes", apiKey, &body); err != nil {
		return err
	}
	for i := range nodes {
		v := &nodes[i]
		v.ApprovedRoutes, v.AvailableRoutes, v.SubnetRoutes = []string{}, []string{}, []string{}
		for _, r := range body.Routes {
			if cmp.Or(r.Node, r.Machine).ID != v.ID {
				continue
			}
			if r.Enabled {
				v.ApprovedRoutes = append(v.ApprovedRoutes, r.Prefix)
			}
			if r.Advertised {
				v.AvailableRoutes = append(v.AvailableRoutes, r.Prefix)
			}
			if r.IsPrimary || r.Enabled && strings.HasSuffix(r.Prefix, "/0") {
				v.SubnetRoutes = append(v.SubnetRoutes, r.Prefix)
			}
		}
	}
	return nil
}

// nodesPath returns where the current server lists nodes. Headscale 0.22 called them machines.
func (n *network) nodesPath() string {
	if n.from == 22 && n.proxy.upstream == headscalePort {
		return "/api/v1/machine"
	}
	return "/api/v1/node"
}
