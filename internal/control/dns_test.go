package control_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func withDNS(t *testing.T, pinned bool) service {
	s := open(t)
	commit(t, s, s.ledger.World().SettingPutFor(mesh.SettingDNS, `{"magicDNS": true, "baseDomain": "mesh.example"}`, "config", pinned, 1)...)
	return s
}

func TestDNSChangesPartByPart(t *testing.T) {
	s := withDNS(t, false)
	off := false
	for _, c := range []struct {
		change control.DNSChange
		want   mesh.DNS
	}{
		{control.DNSChange{}, mesh.DNS{MagicDNS: true, BaseDomain: "mesh.example"}},
		{
			control.DNSChange{Nameservers: &[]string{"1.1.1.1", "1.1.1.1", "https://dns.example/q"}},
			mesh.DNS{MagicDNS: true, BaseDomain: "mesh.example", Nameservers: []string{"1.1.1.1", "https://dns.example/q"}},
		},
		{
			control.DNSChange{Nameservers: &[]string{}, SearchDomains: &[]string{"Corp.Example."}, Split: &map[string][]string{"Lab.example": {"10.0.0.53"}, "own.example": nil}},
			mesh.DNS{MagicDNS: true, BaseDomain: "mesh.example", SearchDomains: []string{"corp.example"}, Split: map[string][]string{"lab.example": {"10.0.0.53"}, "own.example": {}}},
		},
		{
			control.DNSChange{MagicDNS: &off, Split: &map[string][]string{}, SearchDomains: &[]string{}, ExtraRecords: &[]mesh.DNSRecord{{Name: "a.mesh.example", Type: "A", Value: v4(9)}}},
			mesh.DNS{BaseDomain: "mesh.example", ExtraRecords: []mesh.DNSRecord{{Name: "a.mesh.example", Type: "A", Value: v4(9)}}},
		},
	} {
		if err := s.DNS.Set(t.Context(), admin, c.change); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, s.ledger.World().DNS(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	before := s.ledger.World().Rev
	if err := s.DNS.Set(t.Context(), admin, control.DNSChange{MagicDNS: &off}); err != nil || s.ledger.World().Rev != before {
		t.Errorf("what is so already is committed again: %v", err)
	}
}

func TestDNSRefusesWhatIsNone(t *testing.T) {
	s, on := withDNS(t, false), true
	for name, c := range map[string]control.DNSChange{
		"nameserver":      {Nameservers: &[]string{"dns.example"}},
		"password":        {Nameservers: &[]string{"https://me:secret@dns.example"}},
		"many":            {Nameservers: func() *[]string { l := slices.Repeat([]string{"1.1.1.1"}, 17); return &l }()},
		"search domain":   {SearchDomains: &[]string{"not a domain"}},
		"split domain":    {Split: &map[string][]string{"-": nil}},
		"split twice":     {Split: &map[string][]string{"a.example": nil, "A.example.": nil}},
		"split server":    {Split: &map[string][]string{"a.example": {"x"}}},
		"record's name":   {ExtraRecords: &[]mesh.DNSRecord{{Name: "a b", Type: "A", Value: v4(1)}}},
		"record's type":   {ExtraRecords: &[]mesh.DNSRecord{{Name: "a.example", Type: "CNAME", Value: v4(1)}}},
		"record's family": {ExtraRecords: &[]mesh.DNSRecord{{Name: "a.example", Type: "AAAA", Value: v4(1)}}},
		"no address":      {ExtraRecords: &[]mesh.DNSRecord{{Name: "a.example", Type: "A"}}},
	} {
		if err := s.DNS.Set(t.Context(), admin, c); reason(err) != control.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	bare := open(t)
	if err := bare.DNS.Set(t.Context(), admin, control.DNSChange{MagicDNS: &on}); reason(err) != control.Invalid {
		t.Errorf("names without a base domain: %v", err)
	}
}

func TestPinnedDNSIsChangedInTheConfigurationAlone(t *testing.T) {
	s := withDNS(t, true)
	if err := s.DNS.Set(t.Context(), admin, control.DNSChange{SearchDomains: &[]string{"a.example"}}); reason(err) != control.Conflict {
		t.Errorf("%v", err)
	}
}

func TestConfiguredDNSCountsAgainAfterAReset(t *testing.T) {
	s := open(t)
	if err := s.DNS.Configure(t.Context(), mesh.DNS{BaseDomain: "mesh.example"}, false); err != nil {
		t.Fatal(err)
	}
	if err := s.DNS.Set(t.Context(), admin, control.DNSChange{Nameservers: &[]string{"1.1.1.1"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.DNS.Configure(t.Context(), mesh.DNS{BaseDomain: "mesh.example", SearchDomains: []string{"new.example"}}, false); err != nil {
		t.Fatal(err)
	}
	if dns := s.ledger.World().DNS(); len(dns.Nameservers) != 1 || len(dns.SearchDomains) != 0 {
		t.Errorf("a restart undid what was set: %+v", dns)
	}
	if err := s.DNS.Reset(t.Context(), admin, ""); err != nil {
		t.Fatal(err)
	}
	if dns := s.ledger.World().DNS(); len(dns.Nameservers) != 0 || len(dns.SearchDomains) != 1 {
		t.Errorf("after the reset: %+v", dns)
	}
}

func TestChangeOfOtherDNSThanItWasMadeFromIsStale(t *testing.T) {
	s := withDNS(t, false)
	first := control.DNSRevision(s.ledger.World().Snapshot)
	change := func(domain, revision string) error {
		return s.DNS.Set(t.Context(), admin, control.DNSChange{SearchDomains: &[]string{domain}, IfRevision: revision})
	}
	if err := change("a.example", first); err != nil {
		t.Fatal(err)
	}
	if err := change("b.example", first); reason(err) != control.Stale {
		t.Errorf("%v", err)
	}
	if err := change("b.example", control.DNSRevision(s.ledger.World().Snapshot)); err != nil {
		t.Error(err)
	}
}
