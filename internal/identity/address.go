package identity

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientAddr returns the peer's address, or the one that a trusted proxy forwards: the last address in
// X-Forwarded-For that is not itself a trusted proxy.
func ClientAddr(r *http.Request, proxies []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !trusted(addr) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		a, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if addr = a.Unmap(); !trusted(addr) {
			break
		}
	}
	return addr.String()
}

// Network returns the unit by which strangers are counted and limited: one IPv4 address, or an IPv6 /64,
// because a single host usually controls a whole /64.
func Network(addr string) string {
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Unmap().Is4() {
		return addr
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}

// Neighbourhood returns the largest network that one subscriber or hoster usually has: an IPv6 /48, or an
// IPv4 /24.
func Neighbourhood(addr string) string {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return addr
	}
	bits := 48
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}
