package app

import (
	"net"
	"net/netip"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

func TestReplicaPublishesWhereOthersReachIt(t *testing.T) {
	at := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	for name, c := range map[string]struct {
		listener string
		config   config.Config
		want     string
	}{
		"one address":          {"10.0.0.11:8080", config.Config{}, "http://10.0.0.11:8080"},
		"with TLS, IPv6":       {"[2001:db8::1]:443", config.Config{TLSCertPath: "/cert"}, "https://[2001:db8::1]:443"},
		"as it was configured": {"0.0.0.0:8080", config.Config{ReplicaURL: "https://r1.example.com"}, "https://r1.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replicaURL(t.Context(), &c.config, at(c.listener)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	for _, host := range []string{"127.0.0.1", "192.0.2.1", "/run/postgresql", "name.invalid"} {
		c := &config.Config{Database: config.Database{Postgres: config.Postgres{Hosts: []string{host}, Port: 5432}}}
		got := replicaURL(t.Context(), c, at("[::]:8080"))
		if u, err := netip.ParseAddrPort(got[len("http://"):]); err != nil || u.Addr().IsUnspecified() || u.Port() != 8080 {
			t.Errorf("with a database at %s it is %s", host, got)
		}
	}
}
