package mesh_test

import (
	"net/netip"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestRoutesMayNotOverlapTheMesh(t *testing.T) {
	wide := mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48"))
	narrow := mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/16"), netip.MustParsePrefix("fd7a:115c:a1e0:1::/64"))
	for _, c := range []struct {
		route        string
		wide, narrow bool // whether it is refused in a wide and in a narrow mesh
	}{
		{"100.64.0.1/32", true, true},
		{"100.64.0.0/24", true, true},
		{"100.64.0.0/10", true, true},
		{"100.64.0.0/16", true, true},
		{"100.65.0.0/16", true, false}, // outside a smaller mesh, it may be a network of the internet provider
		{"100.0.0.0/8", true, true},
		{"64.0.0.0/2", true, true},
		{"0.0.0.0/1", true, true},
		{"0.0.0.0/0", false, false},
		{"::/0", false, false},
		{"128.0.0.0/1", false, false},
		{"100.100.100.100/32", true, true}, // the clients' resolver
		{"100.100.100.0/25", true, true},
		{"100.127.255.255/32", true, false},
		{"100.128.0.0/16", false, false},
		{"10.0.0.0/8", false, false},
		{"192.168.7.0/24", false, false},
		{"fd7a:115c:a1e0::1/128", true, false},
		{"fd7a:115c:a1e0:1::1/128", true, true},
		{"fd7a:115c:a1e0::53/128", true, true}, // the clients' resolver over IPv6
		{"fd7a:115c:a1e0::/48", true, true},
		{"fd00::/8", true, true},
		{"fc00::/7", true, true},
		{"8000::/1", true, true},
		{"::/1", false, false},
		{"2001:db8::/32", false, false},
		{"fd7a:115c:a1e0:b1a:0:7:a01:0/112", false, false}, // 4via6
		{"fd7a:115c:a1e0:b1a::/64", false, false},
		{"fd7a:115c:a1e0:b1a::/63", true, false},
		{"::ffff:100.64.0.1/128", true, true},
		{"::ffff:0.0.0.0/97", true, true},
		{"::ffff:10.0.0.0/104", false, false},
	} {
		p := netip.MustParsePrefix(c.route).Masked()
		if own, got := wide.Overlap(p); got != c.wide {
			t.Errorf("%s in the usual mesh: refused %v (%v), want %v", c.route, got, own, c.wide)
		}
		if own, got := narrow.Overlap(p); got != c.narrow {
			t.Errorf("%s in a small mesh: refused %v (%v), want %v", c.route, got, own, c.narrow)
		}
		if _, got := mesh.Reserved(nil).Overlap(p); got {
			t.Errorf("%s is refused where nothing is reserved", c.route)
		}
	}
}

// Every refused route overlaps a reserved range, and no other route does, except for exit
// routes and 4via6.
func FuzzReservedOverlap(f *testing.F) {
	f.Add([]byte{100, 64, 0, 1}, uint8(32))
	f.Add([]byte{0, 0, 0, 0}, uint8(1))
	f.Add(netip.MustParseAddr("fd7a:115c:a1e0:b1a::7").AsSlice(), uint8(63))
	reserved := mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48"))
	f.Fuzz(func(t *testing.T, bytes []byte, bits uint8) {
		a, ok := netip.AddrFromSlice(bytes)
		p, err := a.Prefix(int(bits))
		if !ok || err != nil || a.Is4In6() {
			return
		}
		shares := false
		for _, own := range reserved { // if two prefixes overlap, one contains the first address of the other
			shares = shares || own.Contains(p.Addr()) || p.Contains(own.Addr())
		}
		sites := netip.MustParsePrefix("fd7a:115c:a1e0:b1a::/64")
		want := shares && p.Bits() > 0 && (p.Bits() < 64 || !sites.Contains(p.Addr()))
		if own, got := reserved.Overlap(p); got != want {
			t.Errorf("%s: %v (%v), want %v", p, got, own, want)
		}
	})
}
