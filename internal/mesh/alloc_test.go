package mesh_test

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }

// holders returns a snapshot in which nodes have these addresses.
func holders(addrs ...netip.Addr) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	for i, a := range addrs {
		d.Apply(mesh.Revision(i+1), mesh.NodePut{Node: holder(mesh.NodeID(i+1), a)})
	}
	return d.Freeze()
}

func holder(id mesh.NodeID, a netip.Addr) *mesh.Node {
	n := meshgen.Node(id, 1)
	n.IPv4, n.IPv6 = netip.Addr{}, netip.Addr{}
	if a.Is4() {
		n.IPv4 = a
	} else {
		n.IPv6 = a
	}
	return n
}

func TestNextAddrTakesTheFirstFreeAfterStart(t *testing.T) {
	taken := func(texts ...string) (addrs []netip.Addr) {
		for _, text := range texts {
			addrs = append(addrs, addr(text))
		}
		return addrs
	}
	for _, c := range []struct {
		prefix, start string
		taken         []netip.Addr
		want          string // empty if there is none
	}{
		{"100.64.0.0/10", "", nil, "100.64.0.1"},
		{"100.64.0.0/10", "10.0.0.1", nil, "100.64.0.1"}, // outside the prefix: starts at its beginning
		{"100.64.0.0/10", "fd7a::1", nil, "100.64.0.1"},
		{"100.64.0.0/10", "100.64.0.1", nil, "100.64.0.2"},
		{"100.64.0.9/10", "", nil, "100.64.0.1"}, // a prefix with host bits set
		{"100.64.0.0/10", "", taken("100.64.0.1", "100.64.0.2"), "100.64.0.3"},
		{"100.64.0.0/10", "100.64.0.5", taken("100.64.0.1", "100.64.0.6"), "100.64.0.7"},
		{"100.64.0.0/10", "100.64.0.255", nil, "100.64.1.0"},
		{"100.64.0.0/10", "100.127.255.254", nil, "100.64.0.1"}, // wraps around and skips the last address
		{"100.64.0.0/10", "100.127.255.255", taken("100.64.0.1"), "100.64.0.2"},
		{"100.64.0.0/10", "100.99.255.255", nil, "100.100.1.0"}, // skips ranges that clients use themselves
		{"100.64.0.0/10", "100.100.99.255", nil, "100.100.101.0"},
		{"100.64.0.0/10", "100.115.91.255", nil, "100.115.94.0"},
		{"100.64.0.0/10", "100.100.100.100", nil, "100.100.101.0"}, // a start within such a range
		{"fd7a:115c:a1e0::/48", "", nil, "fd7a:115c:a1e0::1"},
		{"fd7a:115c:a1e0::/48", "fd7a:115c:a1e0::52", nil, "fd7a:115c:a1e0::54"},
		{"fd7a:115c:a1e0::/48", "fd7a:115c:a1e0:ab11:ffff:ffff:ffff:ffff", nil, "fd7a:115c:a1e0:ab13::"},
		{"fd7a:115c:a1e0::/48", "fd7a:115c:a1e0:ffff:ffff:ffff:ffff:fffe", nil, "fd7a:115c:a1e0::1"},
		{"10.0.0.0/30", "10.0.0.2", taken("10.0.0.2"), "10.0.0.1"},
		{"10.0.0.0/30", "10.0.0.2", taken("10.0.0.1"), "10.0.0.2"}, // only the start itself is free
		{"10.0.0.0/30", "", taken("10.0.0.1", "10.0.0.2"), ""},
		{"10.0.0.0/30", "10.0.0.1", taken("10.0.0.1", "10.0.0.2"), ""},
		{"10.0.0.0/31", "", nil, ""},
		{"10.0.0.0/32", "", nil, ""},
		{"fd00::/128", "", nil, ""},
		{"100.100.100.0/24", "", nil, ""}, // only ranges that clients use themselves
		{"100.115.92.0/24", "100.115.92.9", nil, ""},
		{"255.255.255.248/29", "255.255.255.254", nil, "255.255.255.249"}, // the last IPv4 addresses
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff8/125", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", nil, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff9"},
		{"0.0.0.0/0", "255.255.255.255", nil, "0.0.0.1"},
	} {
		var start netip.Addr
		if c.start != "" {
			start = addr(c.start)
		}
		got, err := holders(c.taken...).NextAddr(prefix(c.prefix), start)
		switch {
		case c.want == "" && !errors.Is(err, mesh.ErrNoAddress):
			t.Errorf("%s after %s: %v, want none", c.prefix, c.start, got)
		case c.want != "" && (err != nil || got.String() != c.want):
			t.Errorf("%s after %s: %v %v, want %s", c.prefix, c.start, got, err, c.want)
		}
	}
}

func TestPrefixIsUsedUpToItsLastAddress(t *testing.T) {
	for _, p := range []netip.Prefix{prefix("10.0.0.8/29"), prefix("fd00::8/125")} {
		for offset := range uint64(8) { // from any start
			d := mesh.Empty().Edit()
			start := mesh.AddrAt(p, offset)
			seen := map[netip.Addr]bool{}
			for id := mesh.NodeID(1); id <= 6; id++ {
				a, err := d.Snapshot().NextAddr(p, start)
				if err != nil || !p.Contains(a) || seen[a] || a == mesh.AddrAt(p, 0) || a == mesh.AddrAt(p, 7) {
					t.Fatalf("%s from %d: %v %v", p, offset, a, err)
				}
				seen[a], start = true, a
				d.Apply(mesh.Revision(id), mesh.NodePut{Node: holder(id, a)})
			}
			if a, err := d.Snapshot().NextAddr(p, start); !errors.Is(err, mesh.ErrNoAddress) {
				t.Fatalf("%s: a seventh address %v", p, a)
			}
			d.Apply(9, mesh.NodeGone{ID: 3})
			if a, err := d.Snapshot().NextAddr(p, start); err != nil || !seen[a] {
				t.Fatalf("%s: an address that was given back is not found: %v", p, err)
			}
		}
	}
}

// An address that was released is reused only after all others.
func TestAddressOfAGoneNodeIsNotGivenAgainSoon(t *testing.T) {
	s := holders(addr("100.64.0.1"), addr("100.64.0.2"))
	s, _ = mesh.Apply(s, 3, mesh.NodeGone{ID: 2}, mesh.AddressCursor{V4: addr("100.64.0.2")})
	if a, err := s.NextAddr(prefix("100.64.0.0/10"), s.Counters.V4); err != nil || a != addr("100.64.0.3") {
		t.Errorf("%v %v", a, err)
	}
}

func TestRandomStartsCoverThePrefix(t *testing.T) {
	for _, p := range []netip.Prefix{prefix("100.64.0.0/10"), prefix("10.1.2.0/28"), prefix("fd7a:115c:a1e0::/48"), prefix("fd00::/120"), prefix("0.0.0.0/0"), prefix("::/0")} {
		seen := map[netip.Addr]bool{}
		for n := range uint64(16) {
			a := mesh.AddrAt(p, n*0x9e3779b97f4a7c15)
			if !p.Contains(a) || a.Is4() != p.Addr().Is4() {
				t.Errorf("%s: %v", p, a)
			}
			seen[a] = true
		}
		if len(seen) < 8 {
			t.Errorf("%s: only %d different starts", p, len(seen))
		}
	}
	if got := mesh.AddrAt(prefix("10.1.2.0/28"), 17); got != addr("10.1.2.1") {
		t.Error(got)
	}
}

// named returns a snapshot in which nodes have these names.
func named(names ...string) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	for i, name := range names {
		n := meshgen.Node(mesh.NodeID(i+1), 1)
		n.Name = name
		d.Apply(mesh.Revision(i+1), mesh.NodePut{Node: n})
	}
	return d.Freeze()
}

func TestUniqueNameIsALabel(t *testing.T) {
	long := strings.Repeat("a", 70)
	for hostname, want := range map[string]string{
		"laptop":                         "laptop",
		"LapTop":                         "laptop",
		"Alice's MacBook Pro":            "alices-macbook-pro",
		"laptop.local":                   "laptop",
		"laptop.example.com":             "laptop-example-com",
		"snake_case":                     "snake-case",
		"-leading-and-trailing-":         "leading-and-trailing",
		"...":                            "node",
		"":                               "node",
		"日本語":                            "node",
		"münchen-3":                      "mnchen-3",
		"🚢":                              "node",
		"7":                              "7",
		"a b\tc":                         "a-bc",
		"\x00":                           "node",
		"\xff\xfe":                       "node",
		long:                             long[:63],
		strings.Repeat("a", 62) + "-bcd": strings.Repeat("a", 62),
		strings.Repeat("日", 40) + "tail": "node", // the usable part is beyond the maximum length
		"localhost":                      "localhost",
	} {
		if got := mesh.Empty().UniqueName(hostname, 1); got != want {
			t.Errorf("%q: %q, want %q", hostname, got, want)
		}
	}
}

func TestUniqueNameCountsUpThenTakesTheID(t *testing.T) {
	names := []string{"a"}
	for i := 1; i <= 9; i++ {
		names = append(names, fmt.Sprintf("a-%d", i))
	}
	for have := range names {
		if got := named(names[:have]...).UniqueName("A", 1000); got != names[have] {
			t.Errorf("with %v: %q, want %q", names[:have], got, names[have])
		}
	}
	all := named(names...)
	for _, c := range []struct {
		s    *mesh.Snapshot
		host string
		id   mesh.NodeID
		want string
	}{
		{all, "a", 1000, "a-1000"},
		{all, "a", 4, "a-3"}, // a node may keep its name
		{all, "b", 1000, "b"},
		{named(append(names, "a-1000")...), "a", 1000, "a-1000-1"}, // a-1000 is taken too
		{named(append(names, "a-1000", "a-1000-1")...), "a", 1000, "a-1000-2"},
		{named(strings.Repeat("a", 63)), strings.Repeat("a", 63), 7, strings.Repeat("a", 61) + "-1"},
		{named(strings.Repeat("a", 60) + "-bc"), strings.Repeat("a", 60) + "-bc", 7, strings.Repeat("a", 60) + "-1"}, // no two hyphens at the cut
	} {
		if got := c.s.UniqueName(c.host, c.id); got != c.want {
			t.Errorf("%s for %d: %q, want %q", c.host, c.id, got, c.want)
		}
	}
}

func TestThousandDevicesOfOneNameDiffer(t *testing.T) {
	d := mesh.Empty().Edit()
	var first []string
	for id := mesh.NodeID(1); id <= 1000; id++ {
		n := meshgen.Node(id, 1)
		n.Name = d.Snapshot().UniqueName("localhost", id)
		if holder, taken := d.Snapshot().Nodes.ByName(n.Name); taken {
			t.Fatalf("%q belongs to %d", n.Name, holder.ID)
		}
		if id <= 12 {
			first = append(first, n.Name)
		}
		d.Apply(mesh.Revision(id), mesh.NodePut{Node: n})
	}
	want := strings.Fields("localhost localhost-1 localhost-2 localhost-3 localhost-4 localhost-5 localhost-6 localhost-7 localhost-8 localhost-9 localhost-11 localhost-12")
	if diff := cmp.Diff(want, first, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzUniqueName checks that the name is a DNS label and free, whatever the hostname is and
// whichever nodes exist.
func FuzzUniqueName(f *testing.F) {
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, seed := range []string{"", "laptop", "Alice's Laptop", strings.Repeat("a", 63), strings.Repeat("a-", 40), "é", "a..b", "-", "a-1", "\xff"} {
		f.Add(seed, seed, int64(7))
	}
	f.Fuzz(func(t *testing.T, hostname, other string, id int64) {
		if id <= 100 || id > mesh.MaxID {
			id = 101
		}
		d := mesh.Empty().Edit()
		for i := mesh.NodeID(1); i <= 24; i++ {
			n := meshgen.Node(i, 1)
			n.Name = d.Snapshot().UniqueName([]string{hostname, other, hostname + "-1"}[i%3], i)
			d.Apply(mesh.Revision(i), mesh.NodePut{Node: n})
		}
		s := d.Freeze()
		names := map[string]bool{}
		for n := range s.Nodes.All() {
			names[n.Name] = true
		}
		got := s.UniqueName(hostname, mesh.NodeID(id))
		if !label.MatchString(got) || names[got] || len(names) != 24 {
			t.Fatalf("%q: %q among %v", hostname, got, names)
		}
		if again := s.UniqueName(hostname, mesh.NodeID(id)); again != got {
			t.Fatalf("%q, then %q", got, again)
		}
	})
}
