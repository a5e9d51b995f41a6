package shadow

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// shownSources limits how many sources of a difference are named.
const shownSources = 3

// The protocols that a rule without any applies to: ICMP, TCP, UDP and ICMPv6.
func usualProtocols() []int { return []int{1, 6, 17, 58} }

// traffic compares which packets the device accepts: from each source, to its own addresses and to those of its routes, for all
// ports and protocols. Of addresses and ports that no rule tells apart, one is tried.
func (c *comparison) traffic() {
	old, own := compile(c.old.rules()), compile(c.own.rules())
	var targets []netip.Addr
	for _, p := range c.own.Node.Addresses {
		targets = append(targets, p.Addr())
	}
	for _, route := range c.net.Routes[c.own.Node.ID] {
		targets = append(targets, route.Addr())
		for _, r := range append(slices.Clone(old), own...) {
			for _, to := range r.to {
				for _, a := range to.at {
					for _, edge := range []netip.Addr{a.From(), a.To().Next()} {
						if edge.IsValid() && route.Contains(edge) {
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
		where   string
	}
	changes := map[change][]string{}
	var order []change
	for _, target := range targets {
		for _, protocol := range protocols {
			for i, port := range ports {
				if !hasPorts(protocol) && port != 0 {
					continue
				}
				before, after := sourcesOf(old, target, protocol, port).set(), sourcesOf(own, target, protocol, port).set()
				if before.Equal(after) {
					continue
				}
				for _, source := range c.net.Sources {
					is := after.Contains(source)
					if source.Is4() != target.Is4() || before.Contains(source) == is || source == target {
						continue
					}
					at := change{is, fmt.Sprintf("%s %s", target, portText(protocol, ports, i))}
					if changes[at] == nil {
						order = append(order, at)
					}
					changes[at] = append(changes[at], source.String())
				}
			}
		}
	}
	for _, at := range order {
		from := changes[at]
		text := strings.Join(from[:min(len(from), shownSources)], ", ")
		if more := len(from) - shownSources; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		verb := "no longer allowed"
		if at.allowed {
			verb = "now allowed"
		}
		c.differ(Traffic, "%s: from %s to %s", verb, text, at.where)
	}
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
		if slices.Contains(r.protocols, protocol) && slices.ContainsFunc(r.to, func(d destination) bool {
			return (!hasPorts(protocol) || d.first <= port && port <= d.last) && d.at.contains(target)
		}) {
			from = append(from, r.from...)
		}
	}
	return from
}

// hasPorts reports whether a protocol has ports: TCP, UDP and SCTP do.
func hasPorts(protocol int) bool { return protocol == 6 || protocol == 17 || protocol == 132 }

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
	name := map[int]string{1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP"}[protocol]
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
