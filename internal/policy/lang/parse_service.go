package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// protocol reads the field proto. An empty string means no protocol.
func (r *reader) protocol(v hujson.Value, what string) int {
	if kind := v.Value.Kind(); kind != '"' && kind != '0' {
		r.problem(v.StartOffset, "%s must be the name or number of a protocol", what)
		return 0
	}
	text := textOf(v)
	if text == "" {
		return 0
	}
	number, err := ParseProtocol(text)
	if err != nil {
		r.problem(v.StartOffset, "%s", err.Error())
	}
	return number
}

// ParseProtocol reads the name or the number of a protocol, as in rules.
func ParseProtocol(text string) (int, error) {
	switch strings.ToLower(text) {
	case "icmp":
		return ICMP, nil
	case "igmp":
		return 2, nil
	case "ipv4", "ip-in-ip":
		return 4, nil
	case "tcp":
		return TCP, nil
	case "egp":
		return 8, nil
	case "igp":
		return 9, nil
	case "udp":
		return UDP, nil
	case "gre":
		return 47, nil
	case "esp":
		return 50, nil
	case "ah":
		return 51, nil
	case "ipv6-icmp":
		return ICMPv6, nil
	case "sctp":
		return SCTP, nil
	case "fc":
		return 133, nil
	}
	number, err := strconv.ParseUint(text, 10, 8)
	if err != nil || text[0] == '0' {
		return 0, fmt.Errorf("unknown protocol %q: use a name such as tcp or udp, or a number from 1 to 255%s", text,
			Nearest(text, []string{"icmp", "igmp", "ipv4", "tcp", "egp", "igp", "udp", "gre", "esp", "ah", "ipv6-icmp", "sctp", "fc"}))
	}
	return int(number), nil
}

// parsePorts reads "*", or ports and ranges separated by commas. The result is sorted
// and does not overlap.
func parsePorts(text string) ([]PortRange, error) {
	if text == "*" {
		return []PortRange{AllPorts()}, nil
	}
	var ports []PortRange
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fmt.Errorf("invalid port %q: use *, a number up to 65535, or a range such as 8000-8100", part)
		case from > to:
			return nil, fmt.Errorf("invalid port range %q: use %d-%d", part, to, from)
		}
		ports = append(ports, PortRange{uint16(from), uint16(to)})
	}
	return MergePorts(ports), nil
}

// MergePorts sorts ranges in place and merges those that overlap or touch.
func MergePorts(ports []PortRange) []PortRange {
	slices.SortFunc(ports, func(a, b PortRange) int { return cmp.Compare(a.First, b.First) })
	merged := ports[:0]
	for _, p := range ports {
		if n := len(merged); n > 0 && int(p.First) <= int(merged[n-1].Last)+1 {
			merged[n-1].Last = max(merged[n-1].Last, p.Last)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// service reads ports for one protocol; 0 means TCP, UDP and ICMP.
func service(protocol int, text string) (Service, error) {
	ports, err := parsePorts(text)
	if err != nil {
		return Service{}, err
	}
	s := Service{Ports: ports}
	if protocol != 0 {
		s.Protocols = []int{protocol}
	}
	if protocol != 0 && !HasPorts(protocol) && ports[0] != AllPorts() {
		return s, fmt.Errorf("protocol %d has no ports: use *", protocol)
	}
	return s, nil
}

// services reads the field ip of a grant: ports, or a protocol, ":" and ports. Each
// protocol appears once in the result.
func (r *reader) services(v hujson.Value, what string) (all []Service) {
	r.names(v, what, func(text string, at int) {
		name, ports, found := strings.Cut(text, ":")
		if !found {
			name, ports = "", text
		}
		number := 0
		var err error
		if found {
			number, err = ParseProtocol(name)
		} else if _, unknown := ParseProtocol(text); unknown == nil && (text[0] < '0' || text[0] > '9') {
			err = fmt.Errorf("%q has no ports: use %s:*", text, text)
		}
		var s Service
		if err == nil {
			s, err = service(number, ports)
		}
		if err != nil {
			r.problem(at, "%s", err.Error())
			return
		}
		i := slices.IndexFunc(all, func(o Service) bool { return slices.Equal(o.Protocols, s.Protocols) })
		if i < 0 {
			all = append(all, s)
			return
		}
		all[i].Ports = append(all[i].Ports, s.Ports...)
	})
	for i := range all {
		all[i].Ports = MergePorts(all[i].Ports)
	}
	return all
}

// splitPorts splits a destination at its last colon. An IPv6 address without brackets is
// ambiguous; it is read as an address with ports. A tag with colons is unambiguous: the
// last part of a tag never looks like ports.
func splitPorts(text string) (target, ports string, err error) {
	text = strings.TrimSuffix(text, ":")
	i := strings.LastIndexByte(text, ':')
	switch {
	case i < 0, slices.Contains(prefixes(), text[:i+1]), CheckTag(text) == nil:
	case !isAddress(text[:i]) && isAddress(text):
		text = "[" + strings.Trim(text, "[]") + "]"
	default:
		return text[:i], text[i+1:], nil
	}
	return "", "", fmt.Errorf("%s has no ports: use %s:* for all ports, or a list such as %s:80,443", text, text, text)
}
