package control_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

func TestLocalAddressesAreKnownInEveryForm(t *testing.T) {
	mesh := []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48"), {}}
	local := []string{
		"127.0.0.1", "::1", "0.0.0.0", "::", "169.254.169.254", "fe80::1%eth0", "224.0.0.1", "ff02::1",
		"100.100.100.200", "168.63.129.16", "fd00:ec2::254", "100.64.0.1", "fd7a:115c:a1e0::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::ffff:0:169.254.169.254",
		"64:ff9b::169.254.169.254", "64:ff9b:1::127.0.0.1", "64:ff9b::100.64.0.1", "2002:7f00:1::1", "2002:a9fe:a9fe::",
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range own {
		local = append(local, netip.MustParsePrefix(at.String()).Addr().String())
	}
	for _, text := range local {
		if !control.IsLocal(netip.MustParseAddr(text), mesh...) {
			t.Errorf("%s is not local", text)
		}
	}
	for _, text := range []string{"198.51.100.7", "2001:db8::7", "::ffff:198.51.100.7", "64:ff9b::198.51.100.7", "2002:c633:6407::1"} {
		if control.IsLocal(netip.MustParseAddr(text), mesh...) {
			t.Errorf("%s is local", text)
		}
	}
}
