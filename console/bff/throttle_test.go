package bff

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestTriesGetSlowerAndAreForgiven(t *testing.T) {
	var th throttle
	now := time.Now()
	from := source("198.51.100.7/32")
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
	network := func(i int) source { return source(fmt.Sprint(i)) }
	for i := range maxSources + 1000 {
		now = now.Add(time.Millisecond)
		if wait := th.admit(network(i), now); wait != 0 {
			t.Fatalf("network %d has to wait %v for the tries of others", i, wait)
		}
	}
	if len(th.sources) != maxSources || th.sources[network(999)] != nil || th.sources[network(1000)] == nil {
		t.Errorf("it remembers %d networks, or the wrong ones", len(th.sources))
	}
	th.admit(network(0), now.Add(forgiveAfter))
	if len(th.sources) != 1 {
		t.Errorf("it remembers %d networks that are forgiven", len(th.sources)-1)
	}
}

func TestAVisitorIsWhoATrustedProxySaysItIs(t *testing.T) {
	var log waittest.Transcript
	config := Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("172.18.0.0/16"), netip.MustParsePrefix("fd00::3/128"), netip.MustParsePrefix("127.0.0.1/32")}}
	s := &Server{config: config, log: NewLogger(&log, config)}
	for _, c := range []struct {
		peer, forwarded, addr, network string
		believed                       bool
	}{
		{"127.0.0.1:1", "", "127.0.0.1", "127.0.0.1/32", true},
		{"172.18.0.3:1", "198.51.100.7", "198.51.100.7", "198.51.100.7/32", true},
		{"172.18.0.3:1", "9.9.9.9, 198.51.100.7, 172.18.0.9", "198.51.100.7", "198.51.100.7/32", true},
		{"172.18.0.3:1", "9.9.9.9, 10.0.0.2", "10.0.0.2", "10.0.0.2/32", true}, // private, but not listed
		{"172.18.0.3:1", "172.18.0.1", "172.18.0.1", "172.18.0.1/32", true},
		{"172.18.0.3:1", "198.51.100.7, nonsense", "172.18.0.3", "172.18.0.3/32", true},
		{"[fd00::3]:1", "2001:db8:1:2:3::4", "2001:db8:1:2:3::4", "2001:db8:1:2::/64", true},
		{"[::ffff:127.0.0.1]:1", "::ffff:198.51.100.7", "198.51.100.7", "198.51.100.7/32", true},
		{"203.0.113.9:1", "198.51.100.7", "203.0.113.9", "203.0.113.9/32", false},
		{"10.0.0.2:1", "198.51.100.7", "10.0.0.2", "10.0.0.2/32", false},
		{"127.0.0.2:1", "198.51.100.7", "127.0.0.2", "127.0.0.2/32", false},
		{"[fd00::4%eth0]:1", "198.51.100.7", "fd00::4", "fd00::/64", false},
	} {
		if c.believed && log.String() != "" {
			t.Errorf("it warns of a trusted proxy: %s", log.String())
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", c.forwarded)
		r.Header.Set("X-Forwarded-Proto", "https")
		v := s.visitor(r)
		if v.addr.String() != c.addr || v.network().String() != c.network || v.secure != c.believed {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	if strings.Count(log.String(), "trusted_proxies") != 1 || !strings.Contains(log.String(), "203.0.113.9") {
		t.Errorf("want one warning of the first other peer: %s", log.String())
	}
}
