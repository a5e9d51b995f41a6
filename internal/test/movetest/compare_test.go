//go:build !race

package movetest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// comparison is the output of "fairlead import headscale --compare".
type comparison struct {
	Comparison struct {
		Nodes, Equal, Different int
		Differences             []struct{ Node, Kind, Text string }
		Missing                 []string
	}
}

// compares runs the comparison with the maps that Headscale has written, and returns its result and whether it found a
// difference.
func (m *move) compares(t *testing.T, flags ...string) (c comparison, differs bool) {
	t.Helper()
	args := append([]string{"import", "headscale", "--config", m.newConfig, "--from", m.configFile(), "--compare", m.maps(), "--output", "json"}, flags...)
	cmd := exec.CommandContext(t.Context(), fairlead, args...)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	if parsed := json.Unmarshal(out.Bytes(), &c); parsed != nil {
		t.Fatalf("%v, %v\n%s%s", err, parsed, out.Bytes(), failed.Bytes())
	}
	return c, err != nil
}

// mapsAreEqual checks that devices would get the same from Fairlead as from Headscale.
func (m *move) mapsAreEqual(t *testing.T) {
	t.Helper()
	if m.minor == 22 {
		return // it cannot write maps
	}
	if c, differs := m.compares(t); differs || c.Comparison.Equal != len(m.devices) || len(c.Comparison.Missing) > 0 {
		t.Errorf("the comparison finds differences: %+v", c.Comparison)
	}
}

// seedsAreFound checks that the comparison finds each of several changes of Headscale's data or of the settings.
func (m *move) seedsAreFound(t *testing.T) {
	t.Helper()
	original := filepath.Join(m.dir, "db.sqlite")
	for name, seed := range map[string]struct{ statement, kind, says string }{
		"a rule":         {`UPDATE policies SET data = replace(data, '"tag:web:*"', '"tag:web:80"')`, "traffic", "no longer allowed"},
		"a tag":          {`UPDATE nodes SET tags = '["tag:other"]' WHERE given_name = 'web'; UPDATE policies SET data = replace(data, '"tagOwners": {', '"tagOwners": {"tag:other": [], ')`, "tags", "tag:other, was tag:web"},
		"an address":     {`UPDATE nodes SET ipv4 = '100.64.0.99' WHERE given_name = 'web'`, "addresses", "100.64.0.99/32"},
		"an expired key": {`UPDATE nodes SET expiry = '2026-01-01 00:00:00+00:00' WHERE given_name = 'web'`, "expiry", "expired, was"},
		"a DNS record":   {"", "DNS", "extra records"},
	} {
		copied := filepath.Join(m.dir, "seeded.sqlite")
		changeSQLite(t, original, "VACUUM INTO '"+copied+"'")
		if seed.statement == "" {
			write(t, m.newRecords, strings.Replace(records, "192.0.2.9", "192.0.2.10", 1))
		} else {
			changeSQLite(t, copied, seed.statement)
		}
		c, differs := m.compares(t, "--database", copied)
		found := false
		for _, d := range c.Comparison.Differences {
			found = found || d.Kind == seed.kind && strings.Contains(d.Text, seed.says)
		}
		if !found || !differs {
			t.Errorf("%s is not found: %+v", name, c.Comparison)
		}
		write(t, m.newRecords, records)
		if err := os.Remove(copied); err != nil {
			t.Fatal(err)
		}
	}
}
