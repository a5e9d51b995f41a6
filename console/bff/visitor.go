package bff

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// visitor is the sender of a request, as far as it is known.
type visitor struct {
	addr   netip.Addr // the zero Addr if unknown
	secure bool       // the browser uses TLS, to us or to the proxy in front
	local  bool       // the browser is on this machine, judging by the host name it uses for us
}

// trusted reports whether browsers treat pages as a secure context. In other contexts they ignore some headers
// and log warnings about them.
func (v visitor) trusted() bool { return v.secure || v.local }

// visitor returns who sent a request. X-Forwarded-* headers are accepted only from
// trusted_proxies, because anyone else could forge them.
func (s *Server) visitor(r *http.Request) visitor {
	v := visitor{secure: r.TLS != nil, local: isLocalName(r.Host)}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return v
	}
	v.addr = peer.Addr().Unmap().WithZone("")
	proto, hops := r.Header.Get("X-Forwarded-Proto"), r.Header.Values("X-Forwarded-For")
	if !s.isProxy(v.addr) {
		if proto != "" || len(hops) > 0 {
			s.warnOfProxy.Do(func() {
				s.log.Warn("ignoring X-Forwarded-For and X-Forwarded-Proto; if this is your proxy, list it in trusted_proxies", "addr", v.addr.String())
			})
		}
		return v
	}
	v.secure = v.secure || strings.EqualFold(proto, "https")
	v.addr = s.forwardedAddr(hops, v.addr)
	return v
}

func (s *Server) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// forwardedAddr returns the last hop that is not a trusted proxy. The hops before it
// were written by an untrusted sender. If all are proxies, it returns the first.
func (s *Server) forwardedAddr(lines []string, peer netip.Addr) netip.Addr {
	found := peer
	for _, hop := range slices.Backward(strings.Split(strings.Join(lines, ","), ",")) {
		addr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if found = addr.Unmap().WithZone(""); !s.isProxy(found) {
			break
		}
	}
	return found
}

func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// network returns the unit for throttling: an IPv4 address, or an IPv6 /64, the usual allocation of one
// subscriber.
func (v visitor) network() netip.Prefix {
	bits := 32
	if v.addr.Is6() {
		bits = 64
	}
	p, _ := v.addr.Prefix(bits) // the zero Prefix for the zero Addr
	return p
}

// fromHere reports whether a page of this console sent the request. Browsers send Sec-Fetch-Site only over
// TLS or to their own machine. Without it, the Origin header decides, which browsers send with every change.
func fromHere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return hasOwnOrigin(r)
}

func hasOwnOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}
