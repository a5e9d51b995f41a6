package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) dns() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dns",
		Short: "Manage DNS settings",
		Long: `Manage the DNS settings of devices: MagicDNS, nameservers, search domains and
custom records. Connected devices receive every change immediately, and changes
survive restarts. The dns section of the configuration sets the initial values;
with dns.pinned they cannot be changed here.`,
		Example: `  fairlead dns show
  fairlead dns set --nameservers 9.9.9.9,149.112.112.112
  fairlead dns record add grafana.mesh.example.net 100.64.0.7
  fairlead dns split set corp.example.com 10.1.0.53`,
	}, t.dnsShow(), t.dnsSet(), t.dnsRecord(), t.dnsSplit(), t.dnsReset())
}

func (t *tool) dnsShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show the DNS settings",
		Example: `  fairlead dns show
  fairlead dns show --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			d, err := decode[apiclient.DNS](answer(client.GetDNS(ctx)))
			if err != nil {
				return err
			}
			return t.show(d, dnsDetails(d))
		}),
	}
}

func dnsDetails(d apiclient.DNS) string {
	rows := [][]string{
		{"MagicDNS", yesNo(d.MagicDNS)},
		{"Base domain", d.BaseDomain},
		{"Nameservers", nameserverText(d)},
		{"Search domains", strings.Join(d.SearchDomains, ", ")},
	}
	for _, domain := range slices.Sorted(maps.Keys(d.Split)) {
		servers := "records only"
		if len(d.Split[domain]) > 0 {
			servers = strings.Join(d.Split[domain], ", ")
		}
		rows = append(rows, []string{"Split DNS", domain + ": " + servers})
	}
	for _, r := range d.ExtraRecords {
		rows = append(rows, []string{"Record", recordText(r)})
	}
	for _, r := range d.FileRecords {
		rows = append(rows, []string{"Record in file", recordText(r)})
	}
	source := string(d.Source)
	if d.Pinned {
		source += ", pinned"
	}
	return details(append(rows, []string{"Source", source}, []string{"Updated", optionalTimeText(d.UpdatedAt)}))
}

func nameserverText(d apiclient.DNS) string {
	text := strings.Join(d.Nameservers, ", ")
	if text != "" && !d.OverrideLocalDNS {
		text += " (devices prefer their own)"
	}
	return text
}

func recordText(r apiclient.DNSRecord) string { return r.Name + " " + r.Type + " " + r.Value }

func (t *tool) dnsSet() *cobra.Command {
	var magic, override bool
	var nameservers, search []string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set MagicDNS, nameservers or search domains",
		Long: `Set MagicDNS, nameservers or search domains. Settings that you omit are not
changed. A list replaces the previous one; "" empties it. With
--override-local-dns=false, devices keep their own nameservers.`,
		Example: `  fairlead dns set --nameservers 9.9.9.9,https://dns.example.com/dns-query
  fairlead dns set --nameservers ""
  fairlead dns set --search-domains corp.example.com
  fairlead dns set --magic-dns=false`,
		Args: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"magic-dns", "override-local-dns"} {
				if len(args) == 0 || !cmd.Flags().Changed(flag) {
					continue
				}
				if _, err := strconv.ParseBool(args[0]); err == nil {
					return fmt.Errorf("write --%s=%s, with an equals sign", flag, args[0])
				}
			}
			return takes()(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change apiclient.DNSChange
			if cmd.Flags().Changed("magic-dns") {
				change.MagicDNS = &magic
			}
			if cmd.Flags().Changed("override-local-dns") {
				change.OverrideLocalDNS = &override
			}
			if cmd.Flags().Changed("nameservers") {
				change.Nameservers = &nameservers
			}
			if cmd.Flags().Changed("search-domains") {
				change.SearchDomains = &search
			}
			if change == (apiclient.DNSChange{}) {
				return wrongUsage("nothing to set: use --magic-dns, --nameservers, --override-local-dns or --search-domains")
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			d, err := decode[apiclient.DNS](answer(client.ChangeDNS(cmd.Context(), nil, change)))
			if err != nil {
				return err
			}
			return t.show(d, dnsDetails(d))
		},
	}
	cmd.Flags().BoolVar(&magic, "magic-dns", false, "let devices resolve the names of nodes")
	cmd.Flags().StringSliceVar(&nameservers, "nameservers", nil, "`servers` that devices use instead of their own: addresses or https URLs")
	cmd.Flags().BoolVar(&override, "override-local-dns", true, "replace the nameservers of devices, instead of only completing them")
	cmd.Flags().StringSliceVar(&search, "search-domains", nil, "`domains` to try for short names, after the base domain")
	complete(cmd, "nameservers", cobra.NoFileCompletions)
	complete(cmd, "search-domains", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) dnsReset() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:     "reset",
		Short:   "Reset the DNS settings to those in the configuration",
		Example: "  fairlead dns reset",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.confirm(*force, "Discard all DNS changes made at run time, including records, and restore the settings in the configuration?"); err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			d, err := decode[apiclient.DNS](answer(client.ResetDNS(cmd.Context(), nil)))
			if err != nil {
				return err
			}
			return t.show(d, dnsDetails(d))
		},
	}
	force = confirmable(cmd)
	return cmd
}

func (t *tool) dnsRecord() *cobra.Command {
	return group(&cobra.Command{
		Use:   "record",
		Short: "Manage DNS records",
		Example: `  fairlead dns record add grafana.mesh.example.net 100.64.0.7
  fairlead dns record remove grafana.mesh.example.net`,
	}, t.dnsRecordAdd(), t.dnsRecordRemove())
}

func (t *tool) dnsRecordAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add <name> <address>",
		Short: "Add a DNS record",
		Long: `Add a DNS record: an A or AAAA record, depending on the address. The name can be
inside or outside the base domain, and can have several addresses.`,
		Example: `  fairlead dns record add grafana.mesh.example.net 100.64.0.7
  fairlead dns record add printer.example.com fd00:7::9`,
		Args:              takes("name", "address"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := netip.ParseAddr(args[1])
			if err != nil {
				return wrongUsage("invalid IP address %q", args[1])
			}
			added := apiclient.DNSRecord{Name: domainOf(args[0]), Type: "A", Value: addr.String()}
			if addr.Is6() {
				added.Type = "AAAA"
			}
			d, err := t.editDNS(cmd.Context(), func(d apiclient.DNS) (change apiclient.DNSChange, err error) {
				if !slices.Contains(d.ExtraRecords, added) {
					d.ExtraRecords = append(d.ExtraRecords, added)
				}
				change.ExtraRecords = &d.ExtraRecords
				return change, nil
			})
			if err != nil {
				return err
			}
			return t.show(d, "Added record "+recordText(added)+"\n")
		},
	}
}

func (t *tool) dnsRecordRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove <name> [<address>]",
		Short: "Remove one or all records for a name",
		Example: `  fairlead dns record remove grafana.mesh.example.net
  fairlead dns record remove printer.example.com fd00:7::9`,
		Args: func(cmd *cobra.Command, args []string) error {
			return takes([]string{"name", "address"}[:max(1, min(2, len(args)))]...)(cmd, args)
		},
		ValidArgsFunction: t.completeRecords,
		RunE: func(cmd *cobra.Command, args []string) error {
			which := strings.Join(args, " ")
			var value string
			if len(args) > 1 {
				addr, err := netip.ParseAddr(args[1])
				if err != nil {
					return wrongUsage("invalid IP address %q", args[1])
				}
				value = addr.String()
			}
			var removed int
			d, err := t.editDNS(cmd.Context(), func(d apiclient.DNS) (change apiclient.DNSChange, err error) {
				before := len(d.ExtraRecords)
				left := slices.DeleteFunc(d.ExtraRecords, func(r apiclient.DNSRecord) bool {
					return r.Name == domainOf(args[0]) && (value == "" || r.Value == value)
				})
				if removed = before - len(left); removed == 0 {
					return change, fmt.Errorf("unknown record %q; list records with: fairlead dns show", which)
				}
				change.ExtraRecords = &left
				return change, nil
			})
			if err != nil {
				return err
			}
			return t.show(d, fmt.Sprintf("Removed %s for %s\n", count(removed, "record"), domainOf(args[0])))
		},
	}
}

func (t *tool) dnsSplit() *cobra.Command {
	return group(&cobra.Command{
		Use:   "split",
		Short: "Manage nameservers for specific domains (split DNS)",
		Example: `  fairlead dns split set corp.example.com 10.1.0.53
  fairlead dns split remove corp.example.com`,
	}, t.dnsSplitSet(), t.dnsSplitRemove())
}

func (t *tool) dnsSplitSet() *cobra.Command {
	var recordsOnly bool
	cmd := &cobra.Command{
		Use:   "set <domain> (<nameserver>... | --records-only)",
		Short: "Set the nameservers for a domain and its subdomains",
		Long: `Set the nameservers for a domain and its subdomains. With --records-only,
devices query no nameserver for the domain, and names without a record do not
exist.`,
		Example: `  fairlead dns split set corp.example.com 10.1.0.53 10.2.0.53
  fairlead dns split set 168.192.in-addr.arpa 192.168.7.1
  fairlead dns split set lab.example.com --records-only`,
		Args: func(cmd *cobra.Command, args []string) error {
			if recordsOnly {
				return takes("domain")(cmd, args)
			}
			if len(args) == 1 {
				return errors.New("missing argument <nameserver>: specify at least one, or use --records-only")
			}
			return takes("domain", "nameserver")(cmd, args[:min(2, len(args))])
		},
		ValidArgsFunction: t.completeSplit,
		RunE: func(cmd *cobra.Command, args []string) error {
			domain, servers := domainOf(args[0]), args[1:]
			d, err := t.editDNS(cmd.Context(), func(d apiclient.DNS) (change apiclient.DNSChange, err error) {
				d.Split[domain] = servers
				change.Split = &d.Split
				return change, nil
			})
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Set the nameservers for %s to %s\n", domain, strings.Join(servers, ", "))
			if recordsOnly {
				text = fmt.Sprintf("Devices now answer queries for %s from records only\n", domain)
			}
			return t.show(d, text)
		},
	}
	cmd.Flags().BoolVar(&recordsOnly, "records-only", false, "query no nameserver; answer from records only")
	return cmd
}

func (t *tool) dnsSplitRemove() *cobra.Command {
	return &cobra.Command{
		Use:               "remove <domain>",
		Short:             "Remove the nameservers for a domain",
		Example:           "  fairlead dns split remove corp.example.com",
		Args:              takes("domain"),
		ValidArgsFunction: t.completeSplit,
		RunE: func(cmd *cobra.Command, args []string) error {
			domain := domainOf(args[0])
			d, err := t.editDNS(cmd.Context(), func(d apiclient.DNS) (change apiclient.DNSChange, err error) {
				if _, ok := d.Split[domain]; !ok {
					return change, fmt.Errorf("no nameservers are set for %s; show the settings with: fairlead dns show", domain)
				}
				delete(d.Split, domain)
				change.Split = &d.Split
				return change, nil
			})
			if err != nil {
				return err
			}
			return t.show(d, fmt.Sprintf("Removed the nameservers for %s\n", domain))
		},
	}
}

// domainOf normalizes a domain the way the server does.
func domainOf(text string) string { return strings.ToLower(strings.TrimSuffix(text, ".")) }

// editDNS changes settings based on their current value. It retries if somebody else changed them in the
// meantime, so that no entry is lost.
func (t *tool) editDNS(ctx context.Context, edit func(apiclient.DNS) (apiclient.DNSChange, error)) (d apiclient.DNS, err error) {
	client, err := t.connect()
	if err != nil {
		return d, err
	}
	for range 10 {
		resp, err := client.GetDNS(ctx)
		now, err := decode[apiclient.DNS](answer(resp, err))
		if err != nil {
			return d, err
		}
		change, err := edit(now)
		if err != nil {
			return d, err
		}
		etag := resp.Header.Get("ETag")
		resp, err = client.ChangeDNS(ctx, &apiclient.ChangeDNSParams{IfMatch: &etag}, change)
		body, err := answer(resp, err)
		if err == nil || resp == nil || resp.StatusCode != http.StatusPreconditionFailed {
			return decode[apiclient.DNS](body, err)
		}
	}
	return d, errors.New("someone else is changing the DNS settings at the same time; try again")
}

// completeRecords completes with the names of records, then with the addresses
// of the name.
func (t *tool) completeRecords(cmd *cobra.Command, args []string, _ string) (found []string, _ cobra.ShellCompDirective) {
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		d, _ := decode[apiclient.DNS](answer(client.GetDNS(ctx)))
		for _, r := range d.ExtraRecords {
			switch {
			case len(args) == 0:
				found = append(found, r.Name)
			case len(args) == 1 && r.Name == domainOf(args[0]):
				found = append(found, r.Value)
			}
		}
	})
	return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
}

// completeSplit completes with the domains that have nameservers of their own.
func (t *tool) completeSplit(cmd *cobra.Command, args []string, _ string) (found []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			d, _ := decode[apiclient.DNS](answer(client.GetDNS(ctx)))
			found = slices.Sorted(maps.Keys(d.Split))
		})
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
