package control

import (
	"net"
	"net/netip"
	"slices"
)

// IsLocal reports whether an address belongs to this machine, its link or the mesh, or is a
// cloud metadata endpoint. It also recognizes these when they are embedded in an IPv6
// address. Users who may create webhooks should not reach what only this machine can reach.
func IsLocal(a netip.Addr, mesh ...netip.Prefix) bool {
	a = a.WithZone("").Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return true
	}
	if isMetadata(a) || slices.ContainsFunc(mesh, func(p netip.Prefix) bool { return p.Contains(a) }) || isOwn(a) {
		return true
	}
	embedded, ok := embeddedV4(a)
	return ok && IsLocal(embedded, mesh...)
}

// IsLocal reports whether an address is local, given the prefixes of this server's mesh.
func (s *Webhooks) IsLocal(a netip.Addr) bool {
	return IsLocal(a, s.prefixV4, s.prefixV6)
}

// isMetadata reports whether an address that is not link-local is a cloud metadata
// endpoint, where machines get credentials.
func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe":
		return true
	}
	return false
}

// isOwn reports whether an interface of this machine has an address. It is true if the
// interfaces cannot be listed.
func isOwn(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(at net.Addr) bool {
		p, err := netip.ParsePrefix(at.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// embeddedV4 returns the IPv4 address to which translators and tunnels forward packets for
// an IPv6 address: IPv4-compatible, IPv4-translated, NAT64 and 6to4.
func embeddedV4(a netip.Addr) (netip.Addr, bool) {
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
