package mesh

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"tailscale.com/util/dnsname"
)

// ErrNoAddress means that every address of a prefix is taken.
var ErrNoAddress = errors.New("no free address left in the prefix; configure a larger prefix, or delete nodes")

// clientRanges returns the ranges that clients use for themselves: service addresses, virtual
// machines of ChromeOS, and the mappings between IPv4 and IPv6.
func clientRanges() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.100.0.0/24"),
		netip.MustParsePrefix("100.100.100.0/24"),
		netip.MustParsePrefix("100.115.92.0/23"),
		netip.MustParsePrefix("fd7a:115c:a1e0::53/128"),
		netip.MustParsePrefix("fd7a:115c:a1e0:ab12::/64"),
		netip.MustParsePrefix("fd7a:115c:a1e0:b1a::/64"),
		netip.MustParsePrefix("fd7a:115c:a1e0:efe3::/64"),
	}
}

// NextAddr returns the first free address of p after start, and wraps around at the end. It
// skips the first and last address of p, reserved addresses, and the ranges that clients use
// for themselves. A start outside p means the beginning of p; a random start gives random allocation.
func (s *Snapshot) NextAddr(p netip.Prefix, start netip.Addr) (netip.Addr, error) {
	first, last := p.Masked().Addr(), lastAddr(p)
	if !p.Contains(start) {
		start = first
	}
	skip := clientRanges()
	a, wrapped := start, false
	for {
		a = a.Next()
		if !a.IsValid() || !a.Less(last) {
			if wrapped {
				return netip.Addr{}, ErrNoAddress
			}
			a, wrapped = first.Next(), true
			if !a.IsValid() || !a.Less(last) {
				return netip.Addr{}, ErrNoAddress
			}
		}
		if k, ok := within(skip, a); ok {
			a = lastAddr(k)
		} else if s.addrFree(a) {
			return a, nil
		}
		if wrapped && !a.Less(start) {
			return netip.Addr{}, ErrNoAddress
		}
	}
}

func (s *Snapshot) addrFree(a netip.Addr) bool {
	_, taken := s.Nodes.byAddr.at(a)
	_, reserved := s.Reservations.byAddr.at(a)
	return !taken && !reserved
}

func within(ps []netip.Prefix, a netip.Addr) (netip.Prefix, bool) {
	for _, p := range ps {
		if p.Contains(a) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func lastAddr(p netip.Prefix) netip.Addr {
	p = p.Masked()
	if p.Addr().Is4() {
		b := p.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])|^uint32(0)>>p.Bits())
		return netip.AddrFrom4(b)
	}
	b := p.Addr().As16()
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	hi |= ^uint64(0) >> min(p.Bits(), 64)
	lo |= ^uint64(0) >> max(p.Bits()-64, 0)
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	return netip.AddrFrom16(b)
}

// AddrAt returns an address of p chosen by n, which the caller draws at random.
func AddrAt(p netip.Prefix, n uint64) netip.Addr {
	b := p.Masked().Addr().As16()
	host := p.Addr().BitLen() - p.Bits()
	if host < 64 {
		n &= 1<<host - 1
	}
	lo, _ := bits.Add64(binary.BigEndian.Uint64(b[8:]), n, 0)
	binary.BigEndian.PutUint64(b[8:], lo)
	a := netip.AddrFrom16(b)
	if p.Addr().Is4() {
		return a.Unmap()
	}
	return a
}

// maxLabel is the maximum length of a DNS label.
const maxLabel = 63

// UniqueName turns a device's hostname into a label that no other node has and that is not
// reserved: the name, then name-1 to name-9, then the name with the node's id, so that a thousand devices called
// "localhost" need no search.
func (s *Snapshot) UniqueName(hostname string, id NodeID) string {
	base := dnsname.SanitizeHostname(hostname)
	if base == "" {
		base = "node"
	}
	for n := range 10 {
		suffix := ""
		if n > 0 {
			suffix = "-" + strconv.Itoa(n)
		}
		if name := label(base, suffix); s.nameFree(name, id) {
			return name
		}
	}
	name := label(base, "-"+id.String())
	for n := 1; !s.nameFree(name, id); n++ {
		name = label(base, "-"+id.String()+"-"+strconv.Itoa(n))
	}
	return name
}

func (s *Snapshot) nameFree(name string, id NodeID) bool {
	if holder, taken := s.Nodes.byName.at(name); taken {
		return holder == id
	}
	_, reserved := s.Reservations.byName.at(name)
	return !reserved
}

func label(base, suffix string) string {
	if len(base)+len(suffix) > maxLabel {
		base = strings.TrimRight(base[:maxLabel-len(suffix)], "-")
	}
	return base + suffix
}
