package bff

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// visitor is who sent a request, as far as that can be known.
type visitor struct {
	addr   netip.Addr // the zero Addr when nothing says it
	secure bool       // the browser speaks TLS, to us or to the proxy before us
	local  bool       // the browser is on this machine, by the name it uses for us
}

// trusted reports whether browsers let a page do all that it asks for. Elsewhere
// they complain about some headers instead of heeding them.
func (v visitor) trusted() bool { return v.secure || v.local }

// visitorOf believes what a proxy adds only if it is near: on this machine or in
// a private network, as the proxy of a deployment is.
func visitorOf(r *http.Request) visitor {
	v := visitor{secure: r.TLS != nil, local: isLocalName(r.Host)}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return v
	}
	v.addr = peer.Addr().Unmap()
	if !isNear(v.addr) {
		return v
	}
	v.secure = v.secure || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	v.addr = forwardedAddr(r.Header.Values("X-Forwarded-For"), v.addr)
	return v
}

// forwardedAddr is the last address on the way that is not a near one: what
// stands before it was written by whoever sits there. With near ones only it is
// the last of them, which our own proxy wrote.
func forwardedAddr(lines []string, peer netip.Addr) netip.Addr {
	hops := strings.Split(strings.Join(lines, ","), ",")
	nearest := peer
	for i := len(hops) - 1; i >= 0; i-- {
		addr, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = addr.Unmap()
		if !isNear(addr) {
			return addr
		}
		if i == len(hops)-1 {
			nearest = addr
		}
	}
	return nearest
}

func isNear(a netip.Addr) bool { return a.IsLoopback() || a.IsPrivate() }

func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// network is what throttling counts: an address, or the /64 that one subscriber
// has of IPv6.
func (v visitor) network() netip.Prefix {
	bits := 32
	if v.addr.Is6() {
		bits = 64
	}
	p, _ := v.addr.WithZone("").Prefix(bits) // of the zero Addr the zero Prefix
	return p
}

// fromHere reports whether a page of this console sent the request. Browsers say
// so by themselves, but over plain HTTP only to their own machine; there the
// origin has to do, which every change carries.
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
