package app

import (
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// dnsOf converts the configured DNS settings.
func dnsOf(c config.DNS) mesh.DNS {
	d := mesh.DNS{
		MagicDNS: c.MagicDNS, BaseDomain: c.BaseDomain, Nameservers: c.Nameservers.Global, Split: c.Nameservers.Split, SearchDomains: c.SearchDomains,
	}
	for _, r := range c.ExtraRecords {
		d.ExtraRecords = append(d.ExtraRecords, mesh.DNSRecord{Name: r.Name, Type: r.Type, Value: r.Value})
	}
	return d
}

// policyFile returns the path of the policy file, or "" if the policy is in the database.
func policyFile(c config.Policy) string {
	if c.Mode != "file" {
		return ""
	}
	return c.Path
}
