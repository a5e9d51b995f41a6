package shadow

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
)

// shown limits how many sources or ports of a difference are named.
const shown = 3

// The numbers of protocols.
const icmp, tcp, udp, icmp6, sctp = 1, 6, 17, 58, 132

// usualProtocols returns those that a rule without any applies to.
func usualProtocols() []int { return []int{icmp, tcp, udp, icmp6} }

// traffic compares which packets the device accepts: from each source, to its own addresses and to those of its routes, for all
// ports and protocols. Of addresses and ports that no rule tells apart, one is tried.
func (c *comparison) traffic() {
	old, own := compile(c.old.rules()), compile(c.own.rules())
	var targets []netip.Addr
	for _, p := range c.own.Node.Addresses {
		targets = append(targets, p.Addr())
	}
	for _, route := range c.net.Routes[c.own.Node.ID] {
		if routable(route.Addr()) {
			targets = append(targets, route.Addr())
		}
		for _, r := range append(slices.Clone(old), own...) {
			for _, to := range r.to {
				for _, a := range to.at {
					for _, edge := range []netip.Addr{a.From(), a.To().Next()} {
						if edge.IsValid() && route.Contains(edge) && routable(edge) && !isMesh(edge) {
							targets = append(targets, edge)
						}
					}
				}
			}
		}
	}
	slices.SortFunc(targets, netip.Addr.Compare)
	targets = slices.Compact(targets)
	ports, protocols := distinct(append(slices.Clone(old), own...))
	type change struct {
		allowed bool
		from    string
		goal    netip.Addr
	}
	changes := map[change][]string{} // the protocols and ports
	var order []change
	for _, target := range targets {
		for _, protocol := range protocols {
			if protocol == icmp && target.Is6() || protocol == icmp6 && target.Is4() {
				continue
			}
			for i, port := range ports {
				if !hasPorts(protocol) && port != 0 {
					continue
				}
				gained, lost := c.changed(sourcesOf(old, target, protocol, port).set(), sourcesOf(own, target, protocol, port).set(), target)
				for _, at := range []change{{true, someOf(gained), target}, {false, someOf(lost), target}} {
					if at.from == "" {
						continue
					}
					if changes[at] == nil {
						order = append(order, at)
					}
					changes[at] = append(changes[at], portText(protocol, ports, i))
				}
			}
		}
	}
	for _, at := range order {
		verb := "no longer allowed"
		if at.allowed {
			verb = "now allowed"
		}
		why := ""
		if !at.allowed && c.isElsewhere(at.goal) {
			why = knownExit
		}
		c.known(Traffic, why, "%s: from %s to %s %s", verb, at.from, at.goal, someOf(changes[at]))
	}
}

// isElsewhere reports whether an address is behind another router, while the device is only an exit node for it.
func (c *comparison) isElsewhere(a netip.Addr) bool {
	contains := func(r netip.Prefix) bool { return r.Bits() > 0 && r.Contains(a) }
	for id, routes := range c.net.Routes {
		if id != c.own.Node.ID && slices.ContainsFunc(routes, contains) {
			return !slices.ContainsFunc(c.net.Routes[c.own.Node.ID], contains)
		}
	}
	return false
}

// changed returns the sources that are in one set only.
func (c *comparison) changed(before, after *netipx.IPSet, target netip.Addr) (gained, lost []string) {
	if before.Equal(after) {
		return nil, nil
	}
	for _, source := range c.net.Sources {
		own := slices.ContainsFunc(c.own.Node.Addresses, func(p netip.Prefix) bool { return p.Addr() == source })
		switch is := after.Contains(source); {
		case own || source.Is4() != target.Is4() || before.Contains(source) == is:
		case is:
			gained = append(gained, source.String())
		default:
			lost = append(lost, source.String())
		}
	}
	return gained, lost
}

// someOf names some of many things.
func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// routable reports whether packets to an address leave the machine that sends them. Rules for other addresses have no effect.
func routable(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsMulticast() && !a.IsUnspecified() && (a.Is6() || a.As4()[0] != 0 && a.As4()[0] < 224)
}

// isMesh reports whether an address is in the ranges of clients. They send packets to such an address only to the device that has
// it, so rules for it have no effect on a router or an exit node.
func isMesh(a netip.Addr) bool {
	return netip.MustParsePrefix("100.64.0.0/10").Contains(a) || netip.MustParsePrefix("fd7a:115c:a1e0::/48").Contains(a)
}

// compiled is a rule in a form that is fast to evaluate.
type compiled struct {
	from      addresses
	to        []destination
	protocols []int
}

type destination struct {
	at          addresses
	first, last uint16
}

func compile(rules []Rule) (all []compiled) {
	for _, r := range rules {
		c := compiled{protocols: r.IPProto}
		if len(c.protocols) == 0 {
			c.protocols = usualProtocols()
		}
		for _, s := range r.SrcIPs {
			c.from = append(c.from, parseAddresses(s)...)
		}
		for _, d := range r.DstPorts {
			c.to = append(c.to, destination{parseAddresses(d.IP), d.Ports.First, d.Ports.Last})
		}
		all = append(all, c)
	}
	return all
}

// sourcesOf returns from where packets to a port are accepted.
func sourcesOf(rules []compiled, target netip.Addr, protocol int, port uint16) (from addresses) {
	for _, r := range rules {
		// A client accepts ICMP from everyone who may reach some port.
		if (isICMP(protocol) || slices.Contains(r.protocols, protocol)) && slices.ContainsFunc(r.to, func(d destination) bool {
			return (!hasPorts(protocol) || d.first <= port && port <= d.last) && d.at.contains(target)
		}) {
			from = append(from, r.from...)
		}
	}
	return from
}

func isICMP(protocol int) bool { return protocol == icmp || protocol == icmp6 }

// hasPorts reports whether a protocol has ports: TCP, UDP and SCTP do.
func hasPorts(protocol int) bool { return protocol == tcp || protocol == udp || protocol == sctp }

// distinct returns the first port of each range that some rule tells apart, and all protocols.
func distinct(rules []compiled) (ports []uint16, protocols []int) {
	ports = []uint16{0}
	for _, r := range rules {
		protocols = append(protocols, r.protocols...)
		for _, d := range r.to {
			ports = append(ports, d.first)
			if d.last < 65535 {
				ports = append(ports, d.last+1)
			}
		}
	}
	slices.Sort(ports)
	slices.Sort(protocols)
	return slices.Compact(ports), slices.Compact(protocols)
}

// portText names a protocol and the range of ports that begins with one.
func portText(protocol int, ports []uint16, i int) string {
	name := map[int]string{icmp: "ICMP", tcp: "TCP", udp: "UDP", icmp6: "ICMPv6", sctp: "SCTP"}[protocol]
	if name == "" {
		name = fmt.Sprintf("protocol %d", protocol)
	}
	if !hasPorts(protocol) {
		return name
	}
	first, last := ports[i], uint16(65535)
	if i+1 < len(ports) {
		last = ports[i+1] - 1
	}
	if first == last {
		return fmt.Sprintf("%s port %d", name, first)
	}
	return fmt.Sprintf("%s ports %d-%d", name, first, last)
}
