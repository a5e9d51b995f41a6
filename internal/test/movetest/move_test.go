//go:build !race

package movetest

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // opens the database of Headscale

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var (
	fairlead string // the binary under test
	version  = flag.String("headscale", "v0.28.0", "the version of Headscale to move from")
	middle   = flag.String("middle", "v1.90.9", "the version of the client, between the oldest and the newest, that some devices have")
)

// exported is the version of Headscale for which databases are exported.
const exported = "v0.29.2"

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "fairlead-bin-")
	if err == nil {
		defer os.RemoveAll(dir)
		fairlead, err = meshtest.Build(context.Background(), dir)
	}
	if err == nil {
		err = clienttest.SealProcess()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// move is a move from Headscale to Fairlead, which both run on the same host, behind the same proxy.
type move struct {
	*network
	*release
	old, own  *process
	newConfig string
	// newRecords is the file with DNS records that Fairlead reads; empty if Headscale cannot read one.
	newRecords string
	set        func(statement string) // changes the database of Headscale
	sqlite     bool                   // whether both servers use SQLite
}

// newMove starts a version of Headscale. Both servers use the same kind of database.
func newMove(t *testing.T, version string, postgres bool) *move {
	t.Helper()
	var theirs, ours database
	r := newRelease(t, version, shortDir(t))
	m := &move{release: r, network: newNetwork(t, r.minor), sqlite: !postgres}
	m.set = func(statement string) { changeSQLite(t, filepath.Join(m.dir, "db.sqlite"), statement) }
	if postgres {
		pg, err := pgtest.Start(pgtest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pg.Stop(); err != nil {
				t.Error(err)
			}
		})
		theirs = database{pg.Dir, pg.Database(t), pg.User, pg.Port}
		ours = theirs
		ours.name = pg.Database(t)
		m.set = func(statement string) { pg.Exec(t, theirs.name, statement) }
	}
	newDir := shortDir(t)
	if m.hasRecordsFile() {
		m.newRecords = write(t, filepath.Join(newDir, "records.json"), records)
	}
	if err := os.MkdirAll(m.maps(), 0o700); err != nil {
		t.Fatal(err)
	}
	m.configure("https://"+serverName, m.server.Addr.String(), theirs)
	m.newConfig = write(t, filepath.Join(newDir, "config.yaml"), fairleadConfig(newDir, m.server.Addr.String(), ours, m.newRecords))
	m.old = &process{t: t, host: m.server, port: headscalePort, args: []string{m.binary, "serve", "-c", m.configFile()}, env: m.environment()}
	m.own = &process{t: t, host: m.server, port: fairleadPort, args: []string{fairlead, "serve", "--config", m.newConfig}}
	m.startOld()
	return m
}

func (m *move) startOld() {
	m.network.t.Helper()
	m.old.start()
	eventually(m.network.t, func() error { _, err := os.Stat(filepath.Join(m.dir, "socket")); return err })
}

// expire expires a node. Headscale 0.27 and 0.28 forget that when they are restarted, so the database is changed as other
// versions do.
func (m *move) expire(id string) {
	m.network.t.Helper()
	m.run("nodes", "expire", "-i", id)
	if m.minor == 27 || m.minor == 28 {
		m.old.stop()
		m.set("UPDATE nodes SET expiry = '2026-01-02 03:04:05+00:00' WHERE id = " + id)
		m.startOld()
	}
}

func changeSQLite(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// apply imports into Fairlead.
func (m *move) apply() string {
	m.network.t.Helper()
	return output(m.network.t, fairlead, "import", "headscale", "--config", m.newConfig, "--from", m.configFile(), "--apply", "--keep-way-back")
}

// export writes a database for Headscale and returns its digest, which is also that of an import.
func (m *move) export(path string) string {
	t := m.network.t
	t.Helper()
	out := output(t, fairlead, "export", "headscale", "--config", m.newConfig, path)
	again := output(t, fairlead, "import", "headscale", "--config", m.newConfig, "--from", m.configFile(), "--database", path, "--check")
	if digestOf(t, out) != digestOf(t, again) {
		t.Errorf("exported:\n%s\nimported again:\n%s", out, again)
	}
	return digestOf(t, out)
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if digest, ok := strings.CutPrefix(strings.TrimSpace(line), "Digest: "); ok {
			return digest
		}
	}
	t.Fatalf("no digest:\n%s", text)
	return ""
}

// Clients that joined Headscale continue with Fairlead without a new sign-in, and can go back: with the database that Headscale
// left behind, or with an export.
func TestClientsMoveAndReturnWithoutSigningIn(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			m := newMove(t, *version, engine == "postgres")
			moveAndReturn(t, m, engine == "sqlite" && m.minor == 29)
		})
	}
}

func moveAndReturn(t *testing.T, m *move, export bool) {
	t.Helper()
	for _, name := range []string{"ann", "bob"} {
		m.run("users", "create", name)
	}
	m.setPolicy()
	reusable, tagged, unused := m.key("ann", "--reusable"), m.key("ann", "--tags", "tag:web"), m.key("ann")
	ephemeral, expired := m.key("ann", "--ephemeral"), m.key("bob")
	apiKey := m.run("apikeys", "create")
	m.join(map[string]string{"laptop": reusable, "exit": reusable, "router": reusable, "web": tagged, "ci": ephemeral, "old": expired})
	joined, err := m.nodes(apiKey)
	if err != nil {
		t.Fatal(err)
	}
	m.approve(joined["exit"].ID, "0.0.0.0/0", "::/0")
	m.approve(joined["router"].ID, office)
	m.expire(joined["old"].ID)
	eventually(t, func() error {
		if _, text, code := m.devices["laptop"].CLI(t.Context(), "set", "--exit-node=exit"); code != 0 {
			return fmt.Errorf("tailscale set: %s", text)
		}
		return nil
	})
	m.openStream()
	m.works("with Headscale")
	before := m.views()
	listed, err := m.nodes(apiKey)
	if err != nil {
		t.Fatal(err)
	}

	controlKey := m.controlKey()
	m.mapsAreEqual(t)
	if m.minor >= 28 && m.sqlite {
		m.seedsAreFound(t)
	}

	if got := m.apply(); !strings.Contains(got, "2 users, 6 nodes, 5 pre-auth keys, 1 API key") {
		t.Errorf("the first import:\n%s", got)
	}
	m.old.stop()
	m.streamWorks("without a server")
	m.apply()
	m.own.start()
	m.proxy.forward(t, fairleadPort)
	expected := map[string]view{}
	for name, v := range before {
		expected[name] = m.moved(v)
	}
	m.unchanged(expected, "with Fairlead")
	nodes := map[string]node{}
	for name, v := range listed {
		nodes[name] = m.movedNode(v)
	}
	m.listed(apiKey, nodes, "with Fairlead")
	if now := m.controlKey(); now != controlKey {
		t.Errorf("the key of the server is %v instead of %v", now, controlKey)
	}
	m.works("with Fairlead")
	m.keysWork(apiKey, tagged, unused, "with Fairlead")

	m.own.stop()
	m.streamWorks("without a server")
	used, good := tagged, unused
	if export {
		m.replaceDatabase(func(path string) { m.export(path) })
		used, good = unused, m.key("ann")
	} else {
		m.startOld()
	}
	m.proxy.forward(t, headscalePort)
	m.unchanged(before, "after the way back")
	m.listed(apiKey, listed, "after the way back")
	m.works("after the way back")
	m.keysWork(apiKey, used, good, "after the way back")
}
