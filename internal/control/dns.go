package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Limits on DNS settings: they are part of every client's map.
const (
	maxNameservers   = 16
	maxSplitDomains  = 256
	maxSearchDomains = 64
	maxExtraRecords  = 1000
)

// DNS implements the use cases for DNS settings.
type DNS struct {
	*core
	configured atomic.Pointer[string] // the DNS settings of the configuration file, encoded
}

// DNSChange is a change to the DNS settings; nil fields stay unchanged. The base domain is
// part of every node's name and comes from the configuration alone.
type DNSChange struct {
	MagicDNS         *bool
	Nameservers      *[]string
	OverrideLocalDNS *bool
	Split            *map[string][]string
	SearchDomains    *[]string
	ExtraRecords     *[]mesh.DNSRecord
	// IfRevision is the DNSRevision that the change is based on. If it is empty, the change
	// applies to any revision.
	IfRevision string
}

// DNSRevision returns a revision of the DNS settings in s. It differs after every change.
func DNSRevision(s *mesh.Snapshot) string {
	set, ok := s.Settings.ByKey(mesh.SettingDNS)
	if !ok {
		return "0"
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %t %s", set.UpdatedAt, set.Source, set.Pinned, set.Value))
	return fmt.Sprintf("%x", sum[:8])
}

func checkDNSRevision(s *mesh.Snapshot, want string) error {
	if want != "" && want != DNSRevision(s) {
		return refuse(Stale, "dns", "the DNS settings have changed in the meantime; review them and try again")
	}
	return nil
}

// Set changes the DNS settings that clients get. The change lasts until the next one: the
// configuration provides only the initial values, unless it pins them.
func (s *DNS) Set(ctx context.Context, a mesh.Actor, c DNSChange) error {
	if err := c.normalize(); err != nil {
		return err
	}
	changed, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (bool, []mesh.Event, error) {
		evs, err := decideSetDNS(w.Snapshot, c, now)
		return len(evs) > 0, evs, err
	})
	if err == nil && changed {
		s.logFor(a).Info("DNS settings changed")
	}
	return err
}

func decideSetDNS(w *mesh.Snapshot, c DNSChange, now mesh.Time) ([]mesh.Event, error) {
	old, ok := w.Settings.ByKey(mesh.SettingDNS)
	if ok && old.Pinned {
		return nil, refuse(Conflict, "dns", "the DNS settings are pinned in the configuration; change them there, or remove dns.pinned and restart")
	}
	if err := checkDNSRevision(w, c.IfRevision); err != nil {
		return nil, err
	}
	dns := w.DNS()
	c.apply(&dns)
	if dns.MagicDNS && dns.BaseDomain == "" {
		return nil, refuse(Invalid, "magicDNS", "MagicDNS requires a base domain: set dns.base_domain in the configuration")
	}
	value, err := json.Marshal(dns)
	if err != nil {
		return nil, fmt.Errorf("encoding DNS settings: %w", err)
	}
	if ok && old.Value == string(value) {
		return nil, nil
	}
	return w.SettingPutFor(mesh.SettingDNS, string(value), sourceAPI, false, now), nil
}

func (c *DNSChange) apply(d *mesh.DNS) {
	if c.MagicDNS != nil {
		d.MagicDNS = *c.MagicDNS
	}
	if c.Nameservers != nil {
		d.Nameservers = *c.Nameservers
	}
	if c.OverrideLocalDNS != nil {
		d.KeepLocal = !*c.OverrideLocalDNS
	}
	if c.Split != nil {
		d.Split = *c.Split
	}
	if c.SearchDomains != nil {
		d.SearchDomains = *c.SearchDomains
	}
	if c.ExtraRecords != nil {
		d.ExtraRecords = *c.ExtraRecords
	}
}

// normalize converts names and addresses to the form that is stored, and refuses invalid
// ones.
func (c *DNSChange) normalize() error {
	if c.Nameservers != nil {
		servers, err := parseAll("nameservers", *c.Nameservers, maxNameservers, mesh.ParseNameserver)
		if err != nil {
			return err
		}
		c.Nameservers = &servers
	}
	if c.SearchDomains != nil {
		domains, err := parseAll("searchDomains", *c.SearchDomains, maxSearchDomains, mesh.ParseDomain)
		if err != nil {
			return err
		}
		c.SearchDomains = &domains
	}
	if c.Split != nil {
		split, err := parseSplit(*c.Split)
		if err != nil {
			return err
		}
		c.Split = &split
	}
	if c.ExtraRecords != nil {
		records, err := parseRecords(*c.ExtraRecords, maxExtraRecords)
		if err != nil {
			return err
		}
		c.ExtraRecords = &records
	}
	return nil
}

func parseAll(path string, texts []string, limit int, parse func(string) (string, error)) ([]string, error) {
	if len(texts) > limit {
		return nil, refuse(Invalid, path, "%s has more than %d entries", path, limit)
	}
	var list []string
	for i, text := range texts {
		v, err := parse(text)
		if err != nil {
			if errors.Is(err, mesh.ErrPassword) {
				return nil, refuse(Invalid, path, "%s[%d] %s", path, i, err.Error())
			}
			return nil, refuse(Invalid, path, "%s[%d]: %.100q %s", path, i, text, err.Error())
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list, nil
}

func parseSplit(split map[string][]string) (map[string][]string, error) {
	if len(split) > maxSplitDomains {
		return nil, refuse(Invalid, "split", "split has more than %d domains", maxSplitDomains)
	}
	out := make(map[string][]string, len(split))
	for _, name := range slices.Sorted(maps.Keys(split)) {
		domain, err := mesh.ParseDomain(name)
		if err != nil {
			return nil, refuse(Invalid, "split", "split: %.100q %s", name, err.Error())
		}
		if _, twice := out[domain]; twice {
			return nil, refuse(Invalid, "split", "split lists %s twice", domain)
		}
		servers, err := parseAll("split."+domain, split[name], maxNameservers, mesh.ParseNameserver)
		if err != nil {
			return nil, err
		}
		out[domain] = append([]string{}, servers...)
	}
	return out, nil
}

func parseRecords(records []mesh.DNSRecord, limit int) ([]mesh.DNSRecord, error) {
	if len(records) > limit {
		return nil, refuse(Invalid, "extraRecords", "extraRecords has more than %d entries", limit)
	}
	out := make([]mesh.DNSRecord, len(records))
	for i, r := range records {
		name, err := mesh.ParseDomain(r.Name)
		switch {
		case err != nil:
			return nil, refuse(Invalid, "extraRecords", "extraRecords[%d]: name %.100q %s", i, r.Name, err.Error())
		case r.Type == "A" && r.Value.Is4(), r.Type == "AAAA" && r.Value.Is6() && !r.Value.Is4In6() && r.Value.Zone() == "":
		default:
			return nil, refuse(Invalid, "extraRecords", "extraRecords[%d]: %s must be of type A with an IPv4 address, or AAAA with an IPv6 address", i, name)
		}
		out[i] = mesh.DNSRecord{Name: name, Type: r.Type, Value: r.Value}
	}
	return out, nil
}

// Reset restores the DNS settings of the configuration. ifRevision is as in DNSChange.
func (s *DNS) Reset(ctx context.Context, a mesh.Actor, ifRevision string) error {
	configured := s.configured.Load()
	if configured == nil {
		return refuse(Conflict, "dns", "this replica has not read its configuration yet; try again")
	}
	changed, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (bool, []mesh.Event, error) {
		if err := checkDNSRevision(w.Snapshot, ifRevision); err != nil {
			return false, nil, err
		}
		if old, ok := w.Settings.ByKey(mesh.SettingDNS); ok && old.Source != sourceAPI {
			return false, nil, nil
		}
		return true, w.SettingPutFor(mesh.SettingDNS, *configured, sourceConfig, false, now), nil
	})
	if err == nil && changed {
		s.logFor(a).Info("DNS settings reset to the configuration")
	}
	return err
}
