package app_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// dumps are maps of the nodes of the fixture, as Headscale 0.29 writes them.
func dumps() map[string]string {
	const (
		laptop = `{"ID": 1, "StableID": "1", "Name": "laptop.mesh.test.", "User": 1, "Key": "nodekey:dda1579188ab97e2f4ddc588d52baa514b7db64c3b632e8815d55b181d410637",
			"Addresses": ["100.64.0.1/32", "fd7a:115c:a1e0::1/128"], "AllowedIPs": ["10.9.0.0/24", "100.64.0.1/32", "fd7a:115c:a1e0::1/128"], "KeyExpiry": "0001-01-01T00:00:00Z"}`
		web = `{"ID": 2, "StableID": "2", "Name": "web.mesh.test.", "User": 2147455555, "Key": "nodekey:aba6375880186042c93c9102e5cd8a5978b6ba6e65df597e1703e5b33e843d56",
			"Addresses": ["100.64.0.2/32", "fd7a:115c:a1e0::2/128"], "AllowedIPs": ["100.64.0.2/32", "fd7a:115c:a1e0::2/128"], "Tags": ["tag:web"], "KeyExpiry": "0001-01-01T00:00:00Z"}`
		rest = `, "UserProfiles": [{"ID": 1, "LoginName": "ann"}], "DNSConfig": {"Proxied": true, "Domains": ["mesh.test"]},
			"PacketFilters": {"base": [{"SrcIPs": ["100.64.0.0/10", "fd7a:115c:a1e0::/48", "10.9.0.0/24"], "DstPorts": [{"IP": "*", "Ports": {"First": 0, "Last": 65535}}]}]}}`
	)
	return map[string]string{
		"1/2026-11-18T00-25-03.1-full.json": `{"Node": ` + laptop + `, "Peers": [` + web + `]` + rest,
		"2/2026-11-18T00-25-03-full.json":   `{"Node": ` + web + `, "Peers": []` + rest,
		"2/2026-11-18T00-25-03.2-self.json": `{"PeersChanged": [` + laptop + `]}`,
	}
}

// compare compares the maps of an import with dumps.
func (m *mover) compare() *app.HeadscaleComparison {
	m.t.Helper()
	m.in.Compare = filepath.Join(m.dir, "maps")
	for name, text := range dumps() {
		path := filepath.Join(m.in.Compare, name)
		if !json.Valid([]byte(text)) {
			m.t.Fatalf("%s: invalid JSON", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	r := m.run(false)
	if r.Comparison == nil {
		m.t.Fatalf("%+v", r)
	}
	return r.Comparison
}

func TestMapsAfterAnImportAreEqual(t *testing.T) {
	m := newMover(t, false)
	if c := m.compare(); c.Nodes != 2 || c.Equal != 2 || len(c.Differences)+len(c.Missing) > 0 {
		t.Errorf("%+v", c)
	}
	if _, err := os.Stat(m.config.Database.SQLite.Path); err == nil {
		t.Error("the database was created")
	}
}

// Headscale before 0.27 names directories after hostnames, which devices may share, and wraps maps.
func TestMapsOfDevicesWithTheSameHostnameAreToldApart(t *testing.T) {
	m := newMover(t, false)
	m.in.Compare = filepath.Join(m.dir, "maps")
	if err := os.MkdirAll(filepath.Join(m.in.Compare, "localhost"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range dumps() {
		node, file := filepath.Split(name)
		text = `{"Messages": null, "MapRequest": {"NodeKey": "nodekey:` + strings.Trim(node, "/") + `"}, "MapResponse": ` + text + `}`
		m.write(filepath.Join("maps", "localhost", file), text)
	}
	r := m.run(false)
	if c := r.Comparison; c == nil || c.Nodes != 2 || c.Equal != 2 || len(c.Missing) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestSeededDifferencesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		seed       func(m *mover)
		kind, says string
	}{
		"a rule": {func(m *mover) {
			m.exec(`UPDATE policies SET data = '{"tagOwners": {"tag:web": ["ann@"]}, "acls": [{"action": "accept", "src": ["*"], "dst": ["*:1-65534"]}]}'`)
		}, "traffic", "no longer allowed"},
		"a tag":      {func(m *mover) { m.exec(`UPDATE nodes SET tags = '["tag:db"]' WHERE id = 2`) }, "tags", "tag:db, was tag:web"},
		"an address": {func(m *mover) { m.exec(`UPDATE nodes SET ipv4 = '100.64.0.9' WHERE id = 2`) }, "addresses", "100.64.0.9/32"},
		"a DNS record": {func(m *mover) {
			m.config.DNS.ExtraRecords = append(m.config.DNS.ExtraRecords, config.Record{Name: "printer.mesh.test", Type: "A", Value: netip.MustParseAddr("192.0.2.9")})
		}, "DNS", "extra records: now printer.mesh.test A 192.0.2.9, was none"},
		"a record in a file": {func(m *mover) {
			m.config.DNS.ExtraRecordsPath = filepath.Join(m.dir, "records.json")
			if err := os.WriteFile(m.config.DNS.ExtraRecordsPath, []byte(`[{"name": "nas.mesh.test", "value": "192.0.2.8"}]`), 0o600); err != nil {
				m.t.Fatal(err)
			}
		}, "DNS", "extra records: now nas.mesh.test A 192.0.2.8, was none"},
		"an expired key": {func(m *mover) { m.exec(`UPDATE nodes SET expiry = '2026-01-01 00:00:00+00:00' WHERE id = 2`) }, "expiry", "expired, was never"},
		"a name":         {func(m *mover) { m.exec(`UPDATE nodes SET given_name = 'www' WHERE id = 2`) }, "names or keys", "www.mesh.test, was web.mesh.test"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t, false)
			c.seed(m)
			got := m.compare()
			found := false
			for _, d := range got.Differences {
				found = found || d.Kind == c.kind && strings.Contains(d.Text, c.says)
			}
			if !found || got.Different == 0 {
				t.Errorf("not found: %+v", got)
			}
		})
	}
}

func TestComparisonNeedsMaps(t *testing.T) {
	m := newMover(t, false)
	m.in.Compare = t.TempDir()
	if _, err := app.ImportHeadscale(t.Context(), m.config, m.in); err == nil || !strings.Contains(err.Error(), "HEADSCALE_DEBUG_DUMP_MAPRESPONSE_PATH") {
		t.Errorf("%v", err)
	}
}
