package lang

import (
	"slices"
	"strconv"
	"strings"
)

// The numbers of the protocols that have a special meaning in rules.
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
	SCTP   = 132
)

// HasPorts reports whether a protocol has ports.
func HasPorts(protocol int) bool { return protocol == TCP || protocol == UDP || protocol == SCTP }

// AllPorts returns the range of all ports.
func AllPorts() PortRange { return PortRange{0, 65535} }

// Has reports whether a service includes a protocol.
func (s *Service) Has(protocol int) bool {
	if len(s.Protocols) > 0 {
		return slices.Contains(s.Protocols, protocol)
	}
	switch protocol {
	case ICMP, TCP, UDP, ICMPv6:
		return true
	}
	return false
}

// String returns a service for a message: "port 443", "UDP ports 53, 60000-61000".
func (s *Service) String() string {
	var name string
	for _, p := range s.Protocols {
		name += ProtocolName(p) + " "
	}
	if len(s.Protocols) == 1 && !HasPorts(s.Protocols[0]) {
		return strings.TrimSpace(name)
	}
	return name + portsText(s.Ports)
}

// maxPortsNamed limits the port ranges in a message. A draft may have tens of thousands,
// and a response lists them for each pair.
const maxPortsNamed = 200

func portsText(ports []PortRange) string {
	if len(ports) == 1 && ports[0] == AllPorts() {
		return "all ports"
	}
	var texts []string
	for _, p := range ports[:min(len(ports), maxPortsNamed)] {
		text := strconv.Itoa(int(p.First))
		if p.Last > p.First {
			text += "-" + strconv.Itoa(int(p.Last))
		}
		texts = append(texts, text)
	}
	if len(ports) == 1 && ports[0].First == ports[0].Last {
		return "port " + texts[0]
	}
	if len(ports) > maxPortsNamed {
		texts = append(texts, "and more")
	}
	return "ports " + strings.Join(texts, ", ")
}

// ProtocolName returns the usual name of a protocol.
func ProtocolName(protocol int) string {
	switch protocol {
	case ICMP:
		return "ICMP"
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case ICMPv6:
		return "ICMPv6"
	case SCTP:
		return "SCTP"
	}
	return "protocol " + strconv.Itoa(protocol)
}
