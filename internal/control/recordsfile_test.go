package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	oneRecord  = `[{"name": "Grafana.example.org", "type": "A", "value": "100.64.0.7"}]`
	twoRecords = `[{"name": "grafana.example.org", "type": "A", "value": "100.64.0.7"}, {"name": "grafana.example.org", "value": "fd7a:115c:a1e0::7"}]`
)

// recordsAt writes a file with DNS records. As with policyAt, a new text must have another size.
func recordsAt(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "records.json")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantRecords(t *testing.T, r *replica, want ...string) {
	t.Helper()
	var got []string
	for _, record := range r.ledger.World().FileRecords() {
		got = append(got, record.Name+" "+record.Type+" "+record.Value.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func wantRecordsWarning(t *testing.T, r *replica, want string) {
	t.Helper()
	if got := strings.Join(r.RecordsFile.Warnings(), "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("warnings: %q, want %q", got, want)
	}
}

func TestRecordsFollowTheirFile(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.recordsFile = recordsAt(t, "", oneRecord)
		r := c.start(t, "a", "")
		pass(2 * time.Second)
		wantRecords(t, r, "grafana.example.org A 100.64.0.7")
		off := false
		if err := r.DNS.Set(t.Context(), ada, control.DNSChange{MagicDNS: &off, SearchDomains: &[]string{"example.org"}}); err != nil {
			t.Fatal(err)
		}
		recordsAt(t, c.recordsFile, twoRecords)
		pass(time.Second)
		wantRecords(t, r, "grafana.example.org A 100.64.0.7", "grafana.example.org AAAA fd7a:115c:a1e0::7")
		rev := r.ledger.World().Rev
		pass(time.Minute)
		if r.ledger.World().Rev != rev {
			t.Error("the same records were committed again")
		}
	})
}

func TestBadRecordsFileKeepsTheLastRecords(t *testing.T) {
	many := "[" + strings.Repeat(`{"name": "a.example", "value": "100.64.0.7"},`, 5000) + `{"name": "a.example", "value": "100.64.0.7"}]`
	for text, want := range map[string]string{
		`[{"name": "a.example", "type": "A", "val`: "must be a JSON list of objects",
		`{"name": "a.example"}`:                    "must be a JSON list of objects",
		`[] []`:                                    "must be one JSON list",
		`[{"name": "a.example", "type": "CNAME", "value": "b.example"}]`: `record 1 ("a.example"): value "b.example" is not an IP address`,
		`[{"name": "a.example", "type": "TXT", "value": "100.64.0.7"}]`:  "must be of type A with an IPv4 address",
		`[{"name": "a.example", "type": "AAAA", "value": "100.64.0.7"}]`: "must be of type A with an IPv4 address",
		`[{"name": "a example", "type": "A", "value": "100.64.0.7"}]`:    "must be a domain",
		many:                                   "more than 5000 entries",
		"[" + strings.Repeat(" ", 1<<20) + "]": "larger than 1 MiB",
	} {
		waittest.Bubble(t, func(t *testing.T) {
			c := newCluster(t)
			c.recordsFile = recordsAt(t, "", oneRecord)
			r := c.start(t, "a", "")
			pass(2 * time.Second)
			recordsAt(t, c.recordsFile, text)
			pass(2 * time.Second)
			wantRecords(t, r, "grafana.example.org A 100.64.0.7")
			wantRecordsWarning(t, r, want)
			recordsAt(t, c.recordsFile, twoRecords)
			pass(2 * time.Second)
			wantRecordsWarning(t, r, "")
			if err := os.Remove(c.recordsFile); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Second)
			wantRecords(t, r, "grafana.example.org A 100.64.0.7", "grafana.example.org AAAA fd7a:115c:a1e0::7")
			wantRecordsWarning(t, r, "create the file, or remove dns.extra_records_path from the configuration")
		})
	}
}

func TestReplicasWithDifferentRecordsFilesChangeNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		one, other := recordsAt(t, "", oneRecord), recordsAt(t, "", oneRecord)
		c.recordsFile = one
		a := c.start(t, "a", "")
		c.recordsFile = other
		b := c.start(t, "b", "")
		pass(5 * time.Second)
		recordsAt(t, one, twoRecords)
		pass(time.Minute)
		for _, r := range []*replica{a, b} {
			wantRecords(t, r, "grafana.example.org A 100.64.0.7")
			wantRecordsWarning(t, r, "a different DNS records file")
		}
		recordsAt(t, other, "broken") // which does not count
		pass(10 * time.Second)
		wantRecordsWarning(t, b, "must be a JSON list")
		recordsAt(t, other, twoRecords)
		pass(10 * time.Second)
		for _, r := range []*replica{a, b} {
			wantRecords(t, r, "grafana.example.org A 100.64.0.7", "grafana.example.org AAAA fd7a:115c:a1e0::7")
			wantRecordsWarning(t, r, "")
		}
	})
}

// A replica whose configuration no longer names the file leaves the records to the replicas
// that still have it.
func TestRecordsGoWithTheLastConfigurationThatNamesTheFile(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.recordsFile = recordsAt(t, "", oneRecord)
		a := c.start(t, "a", "")
		pass(5 * time.Second)
		c.recordsFile = ""
		b := c.start(t, "b", "")
		pass(time.Minute)
		wantRecords(t, b, "grafana.example.org A 100.64.0.7")
		a.kill()
		pass(time.Minute)
		wantRecords(t, b)
	})
}
