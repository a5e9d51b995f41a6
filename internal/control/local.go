package control

import (
	"net"
	"net/netip"
	"slices"
)

// IsLocal is whether an address is of this machine, of its link or of the mesh,
// or one where clouds keep passwords, also when IPv6 carries it: who may create
// webhooks should not reach what only the machine can.
func IsLocal(a netip.Addr, mesh ...netip.Prefix) bool {
	a = a.WithZone("").Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return true
	}
	if isMetadata(a) || slices.ContainsFunc(mesh, func(p netip.Prefix) bool { return p.Contains(a) }) || isOwn(a) {
		return true
	}
	carried, ok := carriedV4(a)
	return ok && IsLocal(carried, mesh...)
}

// IsLocal is whether an address is local to a mesh of this service's prefixes.
func (s *Webhooks) IsLocal(a netip.Addr) bool {
	return IsLocal(a, s.prefixV4, s.prefixV6)
}

// isMetadata is whether a cloud keeps passwords of its machines at an address
// that is not of the link.
func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe":
		return true
	}
	return false
}

// isOwn is whether an interface of this machine has an address. It is yes when
// nobody can say.
func isOwn(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(at net.Addr) bool {
		p, err := netip.ParsePrefix(at.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// carriedV4 is the IPv4 address to which translators and tunnels bring what is
// sent to an IPv6 address: IPv4-compatible, IPv4-translated, NAT64 and 6to4.
func carriedV4(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	for _, behind := range []string{"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"} {
		if netip.MustParsePrefix(behind).Contains(a) {
			return netip.AddrFrom4([4]byte(b[12:])), true
		}
	}
	if netip.MustParsePrefix("2002::/16").Contains(a) {
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}
