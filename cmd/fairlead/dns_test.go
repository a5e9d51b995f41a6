package main_test

import (
	"errors"
	"strings"
	"testing"
)

// shown waits until dns show contains a text, because the server applies its
// configuration only after it is ready.
func shown(t *testing.T, s settings, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := mustCommand(t, s, "dns", "show"); !strings.Contains(got, text) {
			return errors.New(got)
		}
		return nil
	})
}

// The configuration sets the initial values, and the command line changes them. A
// restart does not undo that, unless the configuration pins the values.
func TestDNSOnTheCommandLine(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, configured settings) {
		configured = configured.with("dns.magic_dns", "true").with("dns.base_domain", "mesh.example.com")
		s := &session{settings: configured}
		types := func(lines ...string) {
			for _, line := range lines {
				s.types(t, line)
			}
		}
		p := serve(t, configured)
		shown(t, configured, "mesh.example.com")
		types(
			"dns show", "dns set --nameservers 9.9.9.9 --search-domains Corp.Example.com.", "dns set --nameservers dns.example.com", "dns set --magic-dns=false",
			"dns record add grafana.mesh.example.com 100.64.0.7", "dns record add printer.example.com fd00:7::9", "dns record add printer.example.com 10.0.0.9",
			"dns record add printer.example.com 10.0.0.9", "dns record add a_b.example.com 10.0.0.9", "dns record remove printer.example.com 10.0.0.9",
			"dns record remove printer.example.com 10.0.0.9", "dns split set corp.example.com 10.1.0.53 10.2.0.53", "dns split set corp.example.com nowhere",
			"dns split remove lab.example.com",
		)
		p.kill(t)
		p = serve(t, configured)
		types("dns show", "dns split remove corp.example.com", "dns reset --force", "dns show -o json")
		p.kill(t)
		serve(t, configured.with("dns.pinned", "true"))
		shown(t, configured, "pinned") // after the killed process no longer counts as a replica
		types("dns show", "dns set --magic-dns=false", "dns record add a.example.com 10.0.0.9")
		golden(t, "dns.txt", masked(s.text.String()))
	})
}
