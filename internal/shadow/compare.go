package shadow

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Kind says what differs.
type Kind string

// What can differ.
const (
	Peers     Kind = "peers"
	Identity  Kind = "names or keys"
	Addresses Kind = "addresses"
	Tags      Kind = "tags"
	Expiry    Kind = "expiry"
	Routes    Kind = "routes"
	Traffic   Kind = "traffic"
	Resolving Kind = "DNS"
	Sessions  Kind = "SSH"
)

// Difference is one difference between two maps of a device.
type Difference struct {
	Kind Kind
	Text string
	// Known is the reason for a difference that is expected, or empty.
	Known string
}

// The reasons for expected differences.
const (
	knownRoutes  = "Headscale shows the routes of a router only to devices that may use them; the policy still decides who can use them"
	knownExit    = "Headscale before 0.29 lets exit nodes forward traffic to networks of subnet routers; with Fairlead, it goes through these routers only"
	knownTagged  = "in Headscale before 0.28, a device with tags also belongs to a user"
	knownExpired = "Headscale keeps sending the whole map to a device that has expired; Fairlead sends it no peers"
)

// Network is what is known about the whole network.
type Network struct {
	// Sources are addresses from which traffic can come.
	Sources []netip.Addr
	// Routes are the routes of each router, by its ID.
	Routes map[int64][]netip.Prefix
	Now    time.Time
}

// Compare returns how the map of the new server differs from that of the old one.
func Compare(old, own *Map, net Network) []Difference {
	c := &comparison{old: old, own: own, net: net}
	c.node(self, old.Node, own.Node)
	if expired(old.Node, net.Now) && expired(own.Node, net.Now) {
		c.known(Peers, knownExpired, "it has expired")
		return c.found
	}
	c.peers()
	c.traffic()
	c.dns()
	c.sessions()
	return c.found
}

type comparison struct {
	old, own *Map
	net      Network
	found    []Difference
}

func (c *comparison) differ(kind Kind, format string, args ...any) {
	c.found = append(c.found, Difference{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// known adds a difference that is expected if why is not empty.
func (c *comparison) known(kind Kind, why, format string, args ...any) {
	c.found = append(c.found, Difference{Kind: kind, Text: fmt.Sprintf(format, args...), Known: why})
}

func expired(n *Node, now time.Time) bool {
	return n.Expired || !n.KeyExpiry.IsZero() && n.KeyExpiry.Before(now)
}

func (c *comparison) peers() {
	index := func(list []*Node) map[int64]*Node {
		all := map[int64]*Node{}
		for _, n := range list {
			all[n.ID] = n
		}
		return all
	}
	old, own := index(c.old.Peers), index(c.own.Peers)
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if own[id] == nil {
			c.differ(Peers, "it no longer sees %s", label(old[id]))
			continue
		}
		c.node("peer "+label(old[id]), old[id], own[id])
	}
	for _, id := range slices.Sorted(maps.Keys(own)) {
		if old[id] == nil {
			c.differ(Peers, "it now sees %s", label(own[id]))
		}
	}
}

func label(n *Node) string {
	name, _, _ := strings.Cut(n.Name, ".")
	return fmt.Sprintf("%d (%s)", n.ID, name)
}

// taggedDevices is the user to whom both servers assign devices with tags.
const taggedDevices = 2147455555

// self stands for the device whose maps are compared.
const self = ""

// node compares what a device knows about itself or a peer.
func (c *comparison) node(who string, old, own *Node) {
	for _, f := range []struct {
		kind     Kind
		what     string
		old, own string
	}{
		{kind: Identity, what: "name", old: strings.TrimSuffix(old.Name, "."), own: strings.TrimSuffix(own.Name, ".")},
		{kind: Identity, what: "stable ID", old: old.StableID, own: own.StableID},
		{kind: Identity, what: "node key", old: old.Key, own: own.Key},
		{kind: Identity, what: "owner", old: fmt.Sprint(old.User), own: fmt.Sprint(own.User)},
		{kind: Addresses, what: "addresses", old: list(old.Addresses), own: list(own.Addresses)},
		{kind: Tags, what: "tags", old: list(old.Tags), own: list(own.Tags)},
		{kind: Expiry, what: "expiry", old: expiryText(old, c.net.Now), own: expiryText(own, c.net.Now)},
	} {
		if f.old == f.own {
			continue
		}
		why := ""
		if f.what == "owner" && len(own.Tags) > 0 && own.User == taggedDevices {
			why = knownTagged
		}
		c.known(f.kind, why, "%s: now %s, was %s", whose(f.what, who), orNone(f.own), orNone(f.old))
	}
	if who == self {
		return // a router uses its own routes whatever the map says
	}
	for _, p := range without(old.AllowedIPs, own.AllowedIPs, own.Addresses) {
		if !slices.Contains(old.Addresses, p) {
			c.differ(Routes, "%s no longer has the route %s", who, p)
		}
	}
	for _, p := range without(own.AllowedIPs, old.AllowedIPs, old.Addresses) {
		switch {
		case slices.Contains(own.Addresses, p):
		case slices.Contains(c.net.Routes[own.ID], p):
			c.known(Routes, knownRoutes, "%s also has the route %s", who, p)
		default:
			c.differ(Routes, "%s also has the route %s", who, p)
		}
	}
}

func whose(what, who string) string {
	if who == self {
		return "own " + what
	}
	return what + " of " + who
}

func expiryText(n *Node, now time.Time) string {
	switch {
	case expired(n, now):
		return "expired"
	case n.KeyExpiry.IsZero():
		return "never"
	}
	return n.KeyExpiry.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

func orNone(text string) string { return cmp.Or(text, "none") }

// list returns values as a text that does not depend on their order.
func list[T any](values []T) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// without returns the values of a list that are in none of the others.
func without[T comparable](values []T, others ...[]T) []T {
	return slices.DeleteFunc(slices.Clone(values), func(v T) bool {
		return slices.ContainsFunc(others, func(o []T) bool { return slices.Contains(o, v) })
	})
}

func (c *comparison) dns() {
	old, own := dnsTexts(c.old.DNSConfig), dnsTexts(c.own.DNSConfig)
	for _, what := range slices.Sorted(maps.Keys(old)) {
		if old[what] != own[what] {
			c.differ(Resolving, "%s: now %s, was %s", what, orNone(own[what]), orNone(old[what]))
		}
	}
}

// dnsTexts describes how names are resolved. The order of resolvers and search domains counts.
func dnsTexts(d *DNS) map[string]string {
	if d == nil {
		d = &DNS{}
	}
	var routes []string
	for domain, to := range d.Routes {
		if len(to) > 0 { // otherwise the device answers itself, as it does for records
			routes = append(routes, fmt.Sprint(strings.TrimSuffix(domain, "."), " to ", to))
		}
	}
	var records []string
	for _, r := range d.ExtraRecords {
		if r.Type == "" { // an address, whose family is that of the value
			r.Type = "A"
			if strings.Contains(r.Value, ":") {
				r.Type = "AAAA"
			}
		}
		records = append(records, strings.TrimSuffix(r.Name, ".")+" "+r.Type+" "+r.Value)
	}
	texts := map[string]string{
		"MagicDNS": "off", "search domains": "", "resolvers": fmt.Sprint(d.Resolvers), "fallback resolvers": fmt.Sprint(d.FallbackResolvers),
		"split DNS": list(routes), "extra records": list(records),
	}
	if d.Proxied {
		texts["MagicDNS"] = "on"
	}
	for _, domain := range d.Domains {
		texts["search domains"] += strings.TrimSuffix(domain, ".") + " "
	}
	return texts
}

// sessions compares who may open SSH sessions as which user.
func (c *comparison) sessions() {
	old, own := c.old.shells(), c.own.shells()
	if gone := without(old, own); len(gone) > 0 {
		c.differ(Sessions, "no longer allowed: %s", strings.Join(gone, "; "))
	}
	if added := without(own, old); len(added) > 0 {
		c.differ(Sessions, "now allowed: %s", strings.Join(added, "; "))
	}
}

// shells lists the sessions that a device accepts, without duplicates.
func (m *Map) shells() (all []string) {
	if m.SSHPolicy == nil {
		return nil
	}
	for _, r := range m.SSHPolicy.Rules {
		how := "refused"
		switch {
		case r.Action.HoldAndDelegate != "":
			how = "after a check"
		case r.Action.Accept:
			how = "accepted"
		}
		for _, p := range r.Principals {
			from := []string{p.NodeIP}
			switch {
			case p.Any:
				from = []string{"anyone"}
			case p.UserLogin != "":
				from = m.ownedBy(p.UserLogin)
			}
			for _, f := range from {
				for as, to := range r.SSHUsers {
					if _, others := r.SSHUsers["*"]; to == "" && !others {
						continue // refuses a user whom nothing allows
					}
					if to == "=" && as != "*" {
						to = as
					}
					all = append(all, fmt.Sprintf("%s as %s=%s %s", f, as, to, how))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ownedBy returns the addresses of the devices of a person.
func (m *Map) ownedBy(login string) (all []string) {
	for _, p := range m.UserProfiles {
		if p.LoginName != login {
			continue
		}
		for _, n := range append([]*Node{m.Node}, m.Peers...) {
			if n.User == p.ID && len(n.Tags) == 0 {
				for _, a := range n.Addresses {
					all = append(all, a.Addr().String())
				}
			}
		}
	}
	return all
}
