package app

import (
	"context"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// dnsOf converts the configured DNS settings.
func dnsOf(c config.DNS) mesh.DNS {
	d := mesh.DNS{
		MagicDNS: c.MagicDNS, BaseDomain: c.BaseDomain, Nameservers: c.Nameservers.Global, Split: c.Nameservers.Split, SearchDomains: c.SearchDomains,
		KeepLocal: !c.OverrideLocalDNS,
	}
	for _, r := range c.ExtraRecords {
		d.ExtraRecords = append(d.ExtraRecords, mesh.DNSRecord{Name: r.Name, Type: r.Type, Value: r.Value})
	}
	return d
}

// clientsOf converts what the configuration allows or asks of clients.
func clientsOf(c *config.Config) mesh.Clients {
	return mesh.Clients{NoTaildrop: !c.Taildrop.Enabled, RandomPort: c.RandomizeClientPort, CacheMaps: c.CacheNetworkMaps, ServerAddrs: c.ServerAddresses}
}

// settingLoops apply the settings in the configuration that clients receive.
func settingLoops(service *control.Service, c *config.Config) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error { return service.DNS.Configure(ctx, dnsOf(c.DNS), c.DNS.Pinned) },
		func(ctx context.Context) error { return service.DNS.ConfigureClients(ctx, clientsOf(c)) },
		service.RecordsFile.Follow,
	}
}

// policyFile returns the path of the policy file, or "" if the policy is in the database.
func policyFile(c config.Policy) string {
	if c.Mode != "file" {
		return ""
	}
	return c.Path
}
