package headscale

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/types/key"
	"tailscale.com/util/dnsname"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxEndpoints limits the endpoints that are imported. Clients report theirs when they connect.
const maxEndpoints = 32

func (p *Plan) mapNodes(t Tables, o Options) {
	rows, owner := t["nodes"], "node_id"
	if rows == nil {
		rows, owner = t["machines"], "machine_id"
	}
	enabled := map[int64][]string{}
	for _, row := range t["routes"] { // before 0.26
		if row.flag("enabled") && !row.deleted() {
			enabled[row.number(owner)] = append(enabled[row.number(owner)], row.text("prefix"))
		}
	}
	ephemeral := map[mesh.KeyID]bool{}
	for _, k := range p.PreAuthKeys {
		ephemeral[k.ID] = k.Ephemeral
	}
	rows = slices.DeleteFunc(slices.Clone(rows), Row.deleted)
	// If two rows claim the same key, name or address, the one that was used last has it.
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.time("last_seen"), a.time("last_seen")), cmp.Compare(b.number("id"), a.number("id")))
	})
	c := claims{keys: map[key.NodePublic]int64{}, machines: map[machineUser]int64{}}
	for _, row := range rows {
		n, ok := p.mapNode(row, o)
		if !ok || !c.admit(p, n) {
			continue
		}
		if n.Ephemeral = ephemeral[n.PreAuthKey]; n.Ephemeral {
			n.LastSeen = o.Now // the time until it is deleted starts again
		}
		if routes, ok := enabled[row.number("id")]; ok && len(n.Approved) == 0 {
			n.Approved = prefixes(routes)
		}
		p.Nodes = append(p.Nodes, n)
	}
	p.settleNames()
	p.settleAddresses(o)
	slices.SortFunc(p.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *Plan) mapNode(row Row, o Options) (Node, bool) {
	id := row.number("id")
	n := Node{Node: &mesh.Node{
		ID: mesh.NodeID(id), StableID: strconv.FormatInt(id, 10), Hostname: row.text("hostname"), Name: row.text("given_name"), Method: method(row.text("register_method")),
		PreAuthKey: mesh.KeyID(row.number("auth_key_id")), CreatedAt: row.time("created_at"), UpdatedAt: o.Now,
	}, LastSeen: row.time("last_seen")}
	if id <= 0 || id > mesh.MaxID {
		p.refuse("node %q has the invalid id %d", n.Name, id)
		return n, false
	}
	if n.MachineKey.UnmarshalText(prefixed("mkey:", row.text("machine_key"))) != nil || n.NodeKey.UnmarshalText(prefixed("nodekey:", row.text("node_key"))) != nil {
		p.repair("node %d (%s) is left out: its machine key or node key is invalid", id, n.Name)
		return n, false
	}
	if n.CreatedAt == 0 {
		n.CreatedAt = o.Now
	}
	user := p.knownUser(row.number("user_id"))
	n.Tags = sortedTags(row.list("tags"))
	if !row.has("tags") {
		n.Tags = sortedTags(row.list("forced_tags"))
	}
	n.HostInfo = json.RawMessage(row.text("host_info"))
	var host struct {
		RequestTags []string
		NetInfo     *struct{ PreferredDERP int }
	}
	_ = json.Unmarshal(n.HostInfo, &host) // stays empty on an error
	switch {
	case len(n.Tags) > 0:
		n.CreatedBy = user
	case user == 0:
		p.repair("node %d (%s) is left out: its user does not exist, and it has no tags", id, n.Name)
		return n, false
	default:
		n.Owner = user
		if !row.has("tags") {
			n.AskedTags = host.RequestTags
		}
	}
	var zero bool
	if n.Expiry, zero = row.moment("expiry"); zero {
		n.Expiry = 0
	}
	n.KeyExpired = n.Expiry.Reached(o.Now)
	n.IPv4, n.IPv6 = addresses(row)
	n.Approved = prefixes(row.list("approved_routes"))
	if host.NetInfo != nil {
		n.Net.HomeRelay = host.NetInfo.PreferredDERP
	}
	_ = n.Net.DiscoKey.UnmarshalText(prefixed("discokey:", row.text("disco_key"))) // unknown on an error
	for _, text := range row.list("endpoints") {
		if e, err := netip.ParseAddrPort(text); err == nil && len(n.Net.Endpoints) < maxEndpoints {
			n.Net.Endpoints = append(n.Net.Endpoints, e)
		}
	}
	return n, true
}

// prefixed adds the kind to a key. Headscale 0.22 stored keys without it.
func prefixed(kind, text string) []byte {
	if !strings.HasPrefix(text, kind) {
		text = kind + text
	}
	return []byte(text)
}

func method(text string) mesh.RegisterMethod {
	switch text {
	case "authkey":
		return mesh.RegisterAuthKey
	case "oidc":
		return mesh.RegisterOIDC
	}
	return mesh.RegisterApproved
}

// addresses returns the addresses of a node. Headscale 0.22 had both in one column.
func addresses(row Row) (v4, v6 netip.Addr) {
	for _, text := range append(strings.Split(row.text("ip_addresses"), ","), row.text("ipv4"), row.text("ipv6")) {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		switch {
		case err != nil:
		case a.Is4() && !v4.IsValid():
			v4 = a
		case a.Is6() && !v6.IsValid():
			v6 = a
		}
	}
	return v4, v6
}

// sortedTags returns valid tags, sorted and without duplicates.
func sortedTags(tags []string) []string {
	tags = slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return !strings.HasPrefix(t, "tag:") || strings.ContainsAny(t, ", \t\n") })
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) == 0 {
		return nil
	}
	return tags
}

type machineUser struct {
	machine key.MachinePublic
	user    mesh.UserID
}

// claims notes which node has a key.
type claims struct {
	keys     map[key.NodePublic]int64
	machines map[machineUser]int64
}

// admit reports whether no other node has the node key, or is the same machine of the same user. A machine on which
// several people signed in has one node for each.
func (c claims) admit(p *Plan, n Node) bool {
	if other, taken := c.keys[n.NodeKey]; taken {
		p.repair("node %d (%s) is left out: node %d has the same node key and was used later", n.ID, n.Name, other)
		return false
	}
	m := machineUser{n.MachineKey, n.Owner}
	if other, taken := c.machines[m]; taken {
		p.repair("node %d (%s) is left out: node %d is the same machine and was used later", n.ID, n.Name, other)
		return false
	}
	c.keys[n.NodeKey], c.machines[m] = int64(n.ID), int64(n.ID)
	return true
}

// settleNames gives every node a valid name that no other node has. Valid names are kept if possible.
func (p *Plan) settleNames() {
	taken := map[string]bool{}
	var unnamed []Node
	d := mesh.Empty().Edit()
	for _, n := range p.Nodes {
		// A client reports its hostname whenever it connects. A name that differs from it was chosen, or made unique.
		if n.Renamed = n.Name != dnsname.SanitizeHostname(n.Hostname); dnsname.ValidHostname(n.Name) == nil && n.Name == dnsname.SanitizeHostname(n.Name) && !taken[n.Name] {
			taken[n.Name] = true
			d.Apply(1, mesh.NodePut{Node: n.Node})
		} else {
			unnamed = append(unnamed, n)
		}
	}
	for _, n := range unnamed {
		was := n.Name
		n.Name = d.Snapshot().UniqueName(cmp.Or(was, n.Hostname), n.ID)
		n.Renamed = n.Name != dnsname.SanitizeHostname(n.Hostname)
		d.Apply(1, mesh.NodePut{Node: n.Node})
		p.repair("node %d: the name %q is invalid or used twice, and becomes %s", n.ID, was, n.Name)
	}
}

// settleAddresses gives every node an address in each range. Addresses in the ranges are kept.
func (p *Plan) settleAddresses(o Options) {
	d := mesh.Empty().Edit()
	type lack struct {
		node  Node
		v4    bool
		which netip.Addr
	}
	var lacking []lack
	taken := map[netip.Addr]bool{}
	for _, n := range p.Nodes {
		for _, f := range []struct {
			addr        *netip.Addr
			in, old     netip.Prefix
			v4          bool
			key, family string
		}{{&n.IPv4, o.V4, o.OldV4, true, "prefixes.v4", "IPv4"}, {&n.IPv6, o.V6, o.OldV6, false, "prefixes.v6", "IPv6"}} {
			switch was := *f.addr; {
			case was.IsValid() && f.in.Contains(was) && !taken[was]:
				taken[was] = true
				continue
			case was.IsValid() && !f.in.Contains(was) && f.old.IsValid() && f.old.Contains(was):
				p.refuse("node %d (%s) has the address %s: set %s to %s, as in the configuration of Headscale", n.ID, n.Name, was, f.key, f.old)
			}
			lacking = append(lacking, lack{n, f.v4, *f.addr})
			*f.addr = netip.Addr{}
		}
		d.Apply(1, mesh.NodePut{Node: n.Node})
	}
	for _, l := range lacking {
		addr, in := &l.node.IPv6, o.V6
		if l.v4 {
			addr, in = &l.node.IPv4, o.V4
		}
		free, err := d.Snapshot().NextAddr(in, netip.Addr{})
		if err != nil {
			p.refuse("node %d (%s): %s: %v", l.node.ID, l.node.Name, in, err)
			return
		}
		*addr = free
		d.Apply(1, mesh.NodePut{Node: l.node.Node})
		switch {
		case !l.which.IsValid():
			p.repair("node %d (%s) had no address in %s, and gets %s", l.node.ID, l.node.Name, in, free)
		case taken[l.which]:
			p.repair("node %d (%s): another node has the address %s; it gets %s", l.node.ID, l.node.Name, l.which, free)
		default:
			p.repair("node %d (%s): the address %s is outside %s; it gets %s", l.node.ID, l.node.Name, l.which, in, free)
		}
	}
}
