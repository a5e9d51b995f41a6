package mesh

import "net/netip"

// Reserved holds the ranges that no route may overlap, except exit routes: the prefixes
// that node addresses come from, and the ranges that clients use internally. A device
// that routed such a range would receive traffic meant for other nodes.
type Reserved []netip.Prefix

// ReservedFor returns the reserved ranges of a mesh whose nodes get their addresses
// from these prefixes.
func ReservedFor(prefixes ...netip.Prefix) Reserved {
	var all Reserved
	for _, p := range append(prefixes, clientRanges()...) {
		if p.IsValid() && p != siteRoutes() {
			all = append(all, p)
		}
	}
	return all
}

// siteRoutes returns the range in which clients map the IPv4 networks of several
// sites to IPv6 (4via6). It is inside the default prefix but meant for routes, and
// no node has an address there.
func siteRoutes() netip.Prefix { return netip.MustParsePrefix("fd7a:115c:a1e0:b1a::/64") }

// Overlap returns the reserved range that a route overlaps, if any. Exit routes contain
// every range, but attract no traffic for it.
func (r Reserved) Overlap(route netip.Prefix) (netip.Prefix, bool) {
	if a := route.Addr(); a.Is4In6() && route.Bits() >= 96 {
		route = netip.PrefixFrom(a.Unmap(), route.Bits()-96)
	}
	if Exit(route) || len(r) == 0 {
		return netip.Prefix{}, false
	}
	if sites := siteRoutes(); route.Bits() >= sites.Bits() && sites.Contains(route.Addr()) {
		return netip.Prefix{}, false
	}
	for _, own := range r {
		if own.Overlaps(route) {
			return own, true
		}
	}
	return netip.Prefix{}, false
}
