package bff

import (
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

func TestTriesGetSlowerAndAreForgiven(t *testing.T) {
	var th throttle
	now := time.Now()
	from := netip.MustParsePrefix("198.51.100.7/32")
	for i := range freeTries {
		if wait := th.admit(from, now); wait != 0 {
			t.Fatalf("try %d waits %v", i, wait)
		}
	}
	for _, want := range []time.Duration{12, 24, 48, 60, 60} {
		want *= time.Second
		if got := th.admit(from, now); got != want {
			t.Errorf("waits %v, want %v", got, want)
		}
		if got := th.admit(from, now.Add(want-time.Millisecond)); got != time.Millisecond {
			t.Errorf("a try that was refused counts: %v", got)
		}
		now = now.Add(want)
		if got := th.admit(from, now); got != 0 {
			t.Errorf("after its time it waits %v", got)
		}
	}
	if got := th.admit(from, now.Add(forgiveAfter)); got != 0 {
		t.Errorf("it is not forgiven: %v", got)
	}
	th.success(from)
	for range freeTries {
		th.undo(from)
		if th.admit(from, now) != 0 {
			t.Error("success does not clear")
		}
	}
}

func TestTheThrottleRemembersABoundedNumberOfNetworks(t *testing.T) {
	var th throttle
	now := time.Now()
	network := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 32)
	}
	for i := range maxNetworks + 1000 {
		now = now.Add(time.Millisecond)
		if wait := th.admit(network(i), now); wait != 0 {
			t.Fatalf("network %d has to wait %v for the tries of others", i, wait)
		}
	}
	if len(th.networks) != maxNetworks || th.networks[network(999)] != nil || th.networks[network(1000)] == nil {
		t.Errorf("it remembers %d networks, or the wrong ones", len(th.networks))
	}
	th.admit(network(0), now.Add(forgiveAfter))
	if len(th.networks) != 1 {
		t.Errorf("it remembers %d networks that are forgiven", len(th.networks)-1)
	}
}

func TestAVisitorIsWhoANearProxySaysItIs(t *testing.T) {
	for _, c := range []struct{ peer, forwarded, proto, addr, network string }{
		{"203.0.113.9:1", "198.51.100.7", "https", "203.0.113.9", "203.0.113.9/32"}, // not near: not believed
		{"127.0.0.1:1", "", "http", "127.0.0.1", "127.0.0.1/32"},
		{"172.18.0.3:1", "198.51.100.7", "https", "198.51.100.7", "198.51.100.7/32"},
		{"172.18.0.3:1", "9.9.9.9, 198.51.100.7, 10.0.0.2", "https", "198.51.100.7", "198.51.100.7/32"},
		{"172.18.0.3:1", "192.168.1.5", "https", "192.168.1.5", "192.168.1.5/32"},
		{"172.18.0.3:1", "192.168.1.5, 10.0.0.2", "https", "10.0.0.2", "10.0.0.2/32"},
		{"172.18.0.3:1", "198.51.100.7, nonsense", "https", "172.18.0.3", "172.18.0.3/32"},
		{"[fd00::3]:1", "2001:db8:1:2:3::4", "https", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		{"[::ffff:127.0.0.1]:1", "::ffff:198.51.100.7", "https", "198.51.100.7", "198.51.100.7/32"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", c.forwarded)
		r.Header.Set("X-Forwarded-Proto", c.proto)
		v := visitorOf(r)
		if v.addr.String() != c.addr || v.network().String() != c.network || v.secure != (c.proto == "https" && c.peer != "203.0.113.9:1") {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}
