package policy

import (
	"net/netip"
	"slices"
)

// MeshPrefixes returns the ranges that the addresses of nodes come from.
func MeshPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0}), 48),
	}
}

// IsPublic reports whether an address belongs to the public internet.
func IsPublic(a netip.Addr) bool {
	return slices.ContainsFunc(internet(netip.PrefixFrom(a, a.BitLen())), func(p netip.Prefix) bool { return p.Contains(a) })
}

// internet returns the part of p that belongs to the public internet.
func internet(p netip.Prefix) []netip.Prefix {
	if p.Addr().Is6() {
		return shared(p, parsed("2000::/3"))
	}
	private := parsed("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
	return less(p, private)
}

// less returns p without others, as a minimal list of prefixes.
func less(p netip.Prefix, others []netip.Prefix) []netip.Prefix {
	switch {
	case !slices.ContainsFunc(others, p.Overlaps):
		return []netip.Prefix{p}
	case slices.ContainsFunc(others, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) }):
		return nil
	}
	low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	bytes := p.Addr().AsSlice()
	bytes[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	upper, _ := netip.AddrFromSlice(bytes)
	return append(less(low, others), less(netip.PrefixFrom(upper, p.Bits()+1), others)...)
}

func parsed(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}
