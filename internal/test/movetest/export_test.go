//go:build !race

package movetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// fixtureKey is an API key in the database of the fixture.
const fixtureKey = "hskey-api-OKzGRduoYeGL-mWxQ7RsPZclftPrXMLhqfbyLNjZceK6jX0OZt7Zuzo6zKfyWwaLv_tfxS5xgSUtZ"

// replaceDatabase stops Headscale and starts it with the database that fill writes.
func (m *move) replaceDatabase(fill func(path string)) {
	m.network.t.Helper()
	m.old.stop()
	path := filepath.Join(m.dir, "db.sqlite")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + suffix) // which may not exist
	}
	fill(path)
	m.startOld()
}

// A real Headscale starts with an exported database, and has all that the imported one had.
func TestHeadscaleStartsWithAnExport(t *testing.T) {
	m := newMove(t, exported, false)
	fixture, err := os.ReadFile("../../headscale/testdata/0.28.sql")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(m.dir, "fixture.sqlite")
	changeSQLite(t, source, string(fixture))
	imports := func(flags ...string) string {
		return output(t, fairlead, append([]string{"import", "headscale", "--config", m.newConfig, "--from", m.configFile()}, flags...)...)
	}
	imported := imports("--database", source, "--apply")
	m.replaceDatabase(func(path string) {
		if digest := m.export(path); digest != digestOf(t, imported) {
			t.Errorf("the digest of the export is %s\n%s", digest, imported)
		}
	})
	listed := map[string]node{}
	eventually(t, func() (err error) { listed, err = m.nodes(fixtureKey); return err })
	laptop, web := listed["laptop"], listed["web"]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"nodes", len(listed), 2},
		{"IDs", laptop.ID + " " + web.ID, "1 2"},
		{"node key", laptop.NodeKey, "nodekey:dda1579188ab97e2f4ddc588d52baa514b7db64c3b632e8815d55b181d410637"},
		{"addresses", laptop.IPAddresses, []string{"100.64.0.1", "fd7a:115c:a1e0::1"}},
		{"owner", laptop.User.Name, "ann"},
		{"tags", web.Tags, []string{"tag:web"}},
		{"approved routes", laptop.ApprovedRoutes, []string{"0.0.0.0/0", "10.9.0.0/24", "::/0"}},
		{"advertised routes", laptop.AvailableRoutes, []string{"10.9.0.0/24"}},
		{"policy", strings.Contains(m.run("policy", "get"), "tag:web"), true},
		{"pre-auth keys", strings.Count(m.run("preauthkeys", "list"), "hskey-auth-"), 3},
	} {
		if diff := gocmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
	m.old.stop()
	if again := imports("--check"); digestOf(t, again) != digestOf(t, imported) {
		t.Errorf("before:\n%s\nafter Headscale has used the export:\n%s", imported, again)
	}
}
