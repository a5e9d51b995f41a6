package app_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/headscale"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// The keys in the fixture.
const (
	oldAPIKey     = "hskey-api-OKzGRduoYeGL-mWxQ7RsPZclftPrXMLhqfbyLNjZceK6jX0OZt7Zuzo6zKfyWwaLv_tfxS5xgSUtZ"
	oldPreAuthKey = "hskey-auth-JR01iMbZdd9u-cpVMxyUVO_D5a60huGm9Z-P_pgq9ygn8ImqST4du_OlzIHWZOQLMu4tu7xhFzUza"
)

// mover is a Headscale installation and the server that takes over.
type mover struct {
	t      *testing.T
	old    *sql.DB // of Headscale, which keeps running
	dir    string  // of Headscale
	in     app.HeadscaleImport
	config *config.Config
}

var blob = regexp.MustCompile(`X'([0-9A-F]*)'`)

// newMover returns an installation with the database of the fixture.
func newMover(t *testing.T, postgres bool) *mover {
	t.Helper()
	fixture, err := os.ReadFile("../headscale/testdata/0.28.sql")
	if err != nil {
		t.Fatal(err)
	}
	m := &mover{t: t, dir: t.TempDir(), in: app.HeadscaleImport{Progress: func(string) {}}}
	statements := string(fixture)
	database := fmt.Sprintf("database: {type: sqlite, sqlite: {path: %s/db.sqlite}}", m.dir)
	env := []string{
		"FAIRLEAD_SERVER_URL=https://mesh.example.com", "FAIRLEAD_DNS_BASE_DOMAIN=mesh.test", "FAIRLEAD_NOISE_PRIVATE_KEY_PATH=" + filepath.Join(t.TempDir(), "noise.key"),
	}
	if postgres {
		const nodeKeys = "CONSTRAINT fk_nodes_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,CONSTRAINT fk_nodes_auth_key FOREIGN KEY (auth_key_id) REFERENCES pre_auth_keys(id)"
		const keyKeys = "CONSTRAINT fk_pre_auth_keys_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE SET NULL"
		for _, r := range [][2]string{
			{"`", ""},
			{"integer PRIMARY KEY AUTOINCREMENT", "bigint PRIMARY KEY"},
			{" datetime", " timestamptz"},
			{" blob", " bytea"},
			{" numeric DEFAULT false", " integer"},
			{" numeric", " integer"},
			{"BEGIN TRANSACTION", "BEGIN"},
			{nodeKeys, "CHECK (true)"},
			{keyKeys, "CHECK (true)"},
		} {
			statements = strings.ReplaceAll(statements, r[0], r[1])
		}
		statements = blob.ReplaceAllString(statements, `'\x$1'`)
		for _, column := range []string{"reusable", "ephemeral", "used"} {
			statements += fmt.Sprintf("ALTER TABLE pre_auth_keys ALTER COLUMN %s TYPE boolean USING %[1]s <> 0;", column)
		}
		name := pg.Database(t)
		m.old, err = sql.Open("pgx", fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", pg.Host, pg.Port, pg.User, name))
		database = fmt.Sprintf("database: {type: postgres, postgres: {host: %q, port: %d, name: %s, user: %s, ssl: false}}", pg.Host, pg.Port, name, pg.User)
		env = append(env, "FAIRLEAD_DATABASE_TYPE=postgres", "FAIRLEAD_DATABASE_POSTGRES_HOST="+pg.Host, fmt.Sprintf("FAIRLEAD_DATABASE_POSTGRES_PORT=%d", pg.Port),
			"FAIRLEAD_DATABASE_POSTGRES_NAME="+pg.Database(t), "FAIRLEAD_DATABASE_POSTGRES_USER="+pg.User, "FAIRLEAD_DATABASE_POSTGRES_SSL=disable")
	} else {
		m.old, err = sql.Open("sqlite", "file:"+m.dir+"/db.sqlite?_pragma=journal_mode(WAL)")
		env = append(env, "FAIRLEAD_DATABASE_SQLITE_PATH="+filepath.Join(t.TempDir(), "own.sqlite"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.old.Close() })
	m.exec(statements)
	m.in.From = filepath.Join(m.dir, "config.yaml")
	m.write("config.yaml", "server_url: https://mesh.example.com\nnoise: {private_key_path: noise.key}\nprefixes: {v4: 100.64.0.0/10, v6: 'fd7a:115c:a1e0::/48'}\n"+
		"dns: {base_domain: mesh.test, override_local_dns: false}\npolicy: {mode: database}\n"+database+"\n")
	m.write("noise.key", "privkey:"+strings.Repeat("1f", 32))
	if m.config, err = config.Load("/dev/null", env); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mover) exec(statements string) {
	m.t.Helper()
	if _, err := m.old.ExecContext(m.t.Context(), statements); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mover) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mover) run(apply bool) app.HeadscaleReport {
	m.t.Helper()
	m.in.Apply = apply
	r, err := app.ImportHeadscale(m.t.Context(), m.config, m.in)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *mover) open() store.Store {
	m.t.Helper()
	var st interface {
		store.Store
		Close() error
	}
	var err error
	if d := m.config.Database; d.Type == "sqlite" {
		st, err = sqlstore.OpenSQLite(m.t.Context(), d.SQLite.Path, prometheus.NewRegistry())
	} else {
		p := d.Postgres
		st, err = sqlstore.OpenPostgres(m.t.Context(), sqlstore.PostgresConfig{Host: p.Hosts[0], Port: p.Port, Name: p.Name, User: p.User, SSLMode: p.SSLMode}, prometheus.NewRegistry())
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return st
}

// stored returns what the new server would start with.
func (m *mover) stored() *mesh.Snapshot {
	m.t.Helper()
	st := m.open()
	defer st.Close()
	s, err := st.Load(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// files returns the names and hashes of what belongs to Headscale. The index of the log is shared memory.
func (m *mover) files() map[string][32]byte {
	m.t.Helper()
	all := map[string][32]byte{}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			m.t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), "-shm") {
			text = nil
		}
		all[e.Name()] = sha256.Sum256(text)
	}
	return all
}

func bothEngines(t *testing.T, test func(t *testing.T, m *mover)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newMover(t, false)) })
	t.Run("postgres", func(t *testing.T) { test(t, newMover(t, true)) })
}

func TestHeadscaleIsImportedWhole(t *testing.T) {
	bothEngines(t, func(t *testing.T, m *mover) {
		before := m.files()
		want := app.HeadscaleReport{Version: "0.28", Users: 1, Nodes: 2, PreAuthKeys: 3, APIKeys: 1, Policy: true}
		for _, apply := range []bool{false, true} {
			got := m.run(apply)
			if apply {
				want.Applied, want.Added = true, 7
			}
			got.Source, got.Config, got.Digest = "", nil, ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("report with apply=%t (-want +got):\n%s", apply, diff)
			}
		}
		if diff := cmp.Diff(before, m.files()); diff != "" {
			t.Errorf("files of Headscale changed (-before +after):\n%s", diff)
		}
		s := m.stored()
		laptop, _ := s.Nodes.Get(1)
		web, _ := s.Nodes.Get(2)
		for _, c := range []struct {
			what      string
			got, want any
		}{
			{"stable IDs", laptop.Stable() + " " + web.Stable(), "1 2"},
			{"node key", laptop.NodeKey.String(), "nodekey:dda1579188ab97e2f4ddc588d52baa514b7db64c3b632e8815d55b181d410637"},
			{"machine key", web.MachineKey.String(), "mkey:e85fb263b6ef2d38fb0e672bdcfc5a2320f21a3a4e8f3c73ed68103b5afbb864"},
			{"disco key", web.Net.DiscoKey.String(), "discokey:f773507c15ce3a46ca71b032ace3a97bf93d5c4b022e817a2bc961d9b441504a"},
			{"home relay", web.Net.HomeRelay, 999},
			{"endpoints", fmt.Sprint(laptop.Net.Endpoints), "[192.0.2.10:45215]"},
			{"addresses", fmt.Sprint(laptop.Addrs(), web.Addrs()), "[100.64.0.1 fd7a:115c:a1e0::1] [100.64.0.2 fd7a:115c:a1e0::2]"},
			{"names", laptop.Name + " " + web.Name, "laptop web"},
			{"owners", fmt.Sprint(laptop.Owner, web.Owner), "1 0"},
			{"tags", fmt.Sprint(laptop.Tags, web.Tags), "[] [tag:web]"},
			{"expiry", fmt.Sprint(laptop.Expiry, web.Expiry), "0 0"},
			{"served routes", fmt.Sprint(laptop.Routes, web.Routes), "[10.9.0.0/24] []"},
			{"known routes", len(laptop.AllRoutes), 3},
			{"client", laptop.OS + " " + laptop.ClientVersion, "linux 1.102.5"},
			{"next node", int(s.Counters.Node), 2},
			{"last address", s.Counters.V4, netip.MustParseAddr("100.64.0.2")},
		} {
			if diff := cmp.Diff(c.want, c.got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.what, diff)
			}
		}
		if p, ok := s.Policy(); !ok || !strings.Contains(p.Text, "tag:web") {
			t.Error("the policy is missing")
		}
		if _, u, ok := identity.UnverifiedAPIKey(s, oldAPIKey, s.At); !ok {
			t.Error("the API key is missing")
		} else if _, ok := u.Verify(); !ok {
			t.Error("the API key is refused")
		}
		if k, u, ok := identity.UnverifiedPreAuthKey(s, oldPreAuthKey); !ok || k.User != 1 || !k.Reusable || k.Expiry.Reached(s.At) {
			t.Errorf("the pre-auth key is missing or different: %+v", k)
		} else if _, ok := u.Verify(); !ok {
			t.Error("the pre-auth key is refused")
		}
		if key, err := os.ReadFile(m.config.Noise.PrivateKeyPath); err != nil || strings.TrimSpace(string(key)) != "privkey:"+strings.Repeat("1f", 32) {
			t.Errorf("the private key: %s, %v", key, err)
		}
	})
}

func TestImportIsRepeatedForWhatChangedSince(t *testing.T) {
	bothEngines(t, func(t *testing.T, m *mover) {
		m.run(true)
		first := m.stored()
		if again := m.run(true); again.Added+again.Changed+again.Deleted != 0 {
			t.Errorf("nothing changed, but: %+v", again)
		}
		m.exec(`UPDATE nodes SET given_name = 'desk', approved_routes = '[]' WHERE id = 1; DELETE FROM nodes WHERE id = 2; DELETE FROM api_keys;
			INSERT INTO users (id, name) VALUES (2, 'bob');`)
		if r := m.run(true); r.Added != 1 || r.Changed != 1 || r.Deleted != 2 {
			t.Errorf("%+v", r)
		}
		s := m.stored()
		desk, _ := s.Nodes.Get(1)
		if s.Nodes.Len() != 1 || s.APIKeys.Len() != 0 || s.Users.Len() != 2 || desk.Name != "desk" || len(desk.Routes) != 0 || s.Rev <= first.Rev {
			t.Errorf("%d nodes, %d API keys, %d users, %+v", s.Nodes.Len(), s.APIKeys.Len(), s.Users.Len(), desk)
		}
	})
}

// In Headscale, a user can be deleted once the nodes belong to somebody else or have tags. Pre-auth keys with tags stay.
func TestRepeatedImportKeepsWhatADeletedUserGaveAway(t *testing.T) {
	bothEngines(t, func(t *testing.T, m *mover) {
		const copied = "INSERT INTO nodes SELECT %d, replace(machine_key, '9941', '%[2]s'), replace(node_key, 'dda1', '%[2]s'), disco_key, endpoints, host_info, " +
			"'100.64.0.%[1]d', 'fd7a:115c:a1e0::%[1]d', 'host%[1]d', 'host%[1]d', user_id, register_method, tags, auth_key_id, expiry, last_seen, '[]', created_at, updated_at, deleted_at " +
			"FROM nodes WHERE id = 1;"
		m.exec(fmt.Sprintf(copied, 3, "0003") + fmt.Sprintf(copied, 4, "0004") + "UPDATE pre_auth_keys SET user_id = 1 WHERE id = 2;")
		m.run(true)
		first := m.stored()
		m.exec(`INSERT INTO users (id, name) VALUES (2, 'bob');
			UPDATE nodes SET user_id = 2 WHERE id = 1;
			UPDATE nodes SET user_id = NULL, tags = '["tag:web"]' WHERE id = 3;
			DELETE FROM nodes WHERE id = 4;
			UPDATE pre_auth_keys SET user_id = 2 WHERE id = 1;
			UPDATE pre_auth_keys SET user_id = NULL WHERE user_id = 1;
			UPDATE policies SET data = replace(data, 'ann@', 'bob@');
			DELETE FROM users WHERE id = 1;`)
		r := m.run(true)
		s := m.stored()
		// Pre-auth key 3 belongs to nobody and has no tags.
		if r.Added != 1 || r.Changed != 4 || r.Deleted != 3 {
			t.Errorf("%d added, %d changed, %d deleted, want 1, 4 and 3", r.Added, r.Changed, r.Deleted)
		}
		all := func(s *mesh.Snapshot) int {
			return s.Users.Len() + s.Nodes.Len() + s.PreAuthKeys.Len() + s.APIKeys.Len()
		}
		if got := all(s) - all(first); got != r.Added-r.Deleted {
			t.Errorf("there are %d objects more than before, but %d were added and %d deleted", got, r.Added, r.Deleted)
		}
		var got []string
		for n := range s.Nodes.All() {
			got = append(got, fmt.Sprintf("node %d of user %d %s", n.ID, n.Owner, n.Tags))
		}
		for k := range s.PreAuthKeys.All() {
			got = append(got, fmt.Sprintf("key %d of user %d %s", k.ID, k.User, k.Tags))
		}
		want := []string{"node 1 of user 2 []", "node 2 of user 0 [tag:web]", "node 3 of user 0 [tag:web]", "key 1 of user 2 []", "key 2 of user 0 [tag:web]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after the second import (-want +got):\n%s", diff)
		}
		if again := m.run(true); again.Added+again.Changed+again.Deleted != 0 {
			t.Errorf("nothing changed, but: %+v", again)
		}
	})
}

// commit changes what was imported.
func (m *mover) commit(evs ...mesh.Event) {
	m.t.Helper()
	st := m.open()
	defer st.Close()
	s, err := st.Load(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	err = st.Lock(m.t.Context(), s.Rev, store.BatchID{1}, func(tx store.Tx) error {
		_, err := tx.Append(store.Command{Actor: mesh.Actor{Kind: mesh.ActorServer}, Events: evs})
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func TestImportRefusesADatabaseInUse(t *testing.T) {
	refused := func(m *mover, why string) {
		m.t.Helper()
		m.in.Apply = true
		before := m.stored().Digest()
		if r, err := app.ImportHeadscale(m.t.Context(), m.config, m.in); err == nil || !strings.Contains(err.Error(), why) || r.Applied {
			m.t.Errorf("%v, want %q", err, why)
		}
		if m.stored().Digest() != before {
			m.t.Error("the database changed")
		}
	}
	m := newMover(t, false)
	m.commit(mesh.UserPut{User: &mesh.User{ID: 1, Name: "own"}})
	refused(m, "already contains 1 users")
	if _, err := os.Stat(m.config.Noise.PrivateKeyPath); err == nil {
		t.Error("a refused import leaves a private key behind")
	}

	m = newMover(t, false)
	m.run(true)
	m.commit(mesh.Online{ID: 1, Replica: "r", Conn: 1, At: mesh.Time(1 << 60)})
	refused(m, "node 1 (laptop) has used this server")

	m = newMover(t, false)
	m.run(true)
	m.commit(mesh.UserPut{User: &mesh.User{ID: 9, Name: "own"}})
	refused(m, "have been created since the last import")

	m = newMover(t, false)
	m.run(true)
	left, _ := m.stored().Users.Get(1)
	m.commit(mesh.UserPut{User: left.Suspend(mesh.SuspendedByAdmin, 1)})
	refused(m, "users or keys have been changed since the last import")
	for k := range m.stored().APIKeys.All() {
		m = newMover(t, false)
		m.run(true)
		m.commit(mesh.APIKeyGone{ID: k.ID})
		refused(m, "users or keys have been changed since the last import")
	}
}

func TestImportStopsBeforeItChangesAnything(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(m *mover)
		want   func(app.HeadscaleReport) []string
		says   string
	}{
		"a policy with an error": {
			func(m *mover) { m.exec(`UPDATE policies SET data = '{"acls":' || char(10) || '[{"action": "deny"}]}'`) },
			func(r app.HeadscaleReport) []string { return r.Policies }, "line 2",
		},
		"no private key": {
			func(m *mover) { _ = os.Remove(filepath.Join(m.dir, "noise.key")) },
			func(r app.HeadscaleReport) []string { return r.Refusals }, "noise.private_key_path",
		},
		"another private key": {
			func(m *mover) {
				if err := os.WriteFile(m.config.Noise.PrivateKeyPath, []byte("privkey:"+strings.Repeat("2f", 32)), 0o600); err != nil {
					m.t.Fatal(err)
				}
			},
			func(r app.HeadscaleReport) []string { return r.Refusals }, "contains another key",
		},
		"other ranges": {
			func(m *mover) { m.config.Prefixes.V4 = netip.MustParsePrefix("100.80.0.0/16") },
			func(r app.HeadscaleReport) []string { return r.Refusals }, "set prefixes.v4 to 100.64.0.0/10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t, false)
			c.breaks(m)
			r := m.run(true)
			if list := strings.Join(c.want(r), "\n"); r.Applied || !strings.Contains(list, c.says) {
				t.Errorf("%+v, want %q", r, c.says)
			}
			if _, err := os.Stat(m.config.Database.SQLite.Path); err == nil {
				t.Error("the database was created")
			}
		})
	}
}

func TestCheckMentionsAMissingRange(t *testing.T) {
	m := newMover(t, false)
	text, err := os.ReadFile(m.in.From)
	if err != nil {
		t.Fatal(err)
	}
	const line = "prefixes.v6 is not set in the configuration of Headscale"
	if r := m.run(false); strings.Contains(strings.Join(r.Config, "\n"), line) {
		t.Errorf("%q", r.Config)
	}
	m.write("config.yaml", strings.ReplaceAll(string(text), ", v6: 'fd7a:115c:a1e0::/48'", ""))
	if r := m.run(false); !strings.Contains(strings.Join(r.Config, "\n"), line) {
		t.Errorf("%q", r.Config)
	}
}

// Headscale 0.22, which called nodes machines, had the user in the DNS name of each.
func TestCheckMentionsNamesThatBecomeShorter(t *testing.T) {
	m := newMover(t, false)
	const line = "laptop.ann.mesh.test becomes laptop.mesh.test"
	if r := m.run(false); strings.Contains(strings.Join(r.Config, "\n"), "becomes") {
		t.Errorf("%q", r.Config)
	}
	m.exec("ALTER TABLE nodes RENAME TO machines")
	if r := m.run(false); !strings.Contains(strings.Join(r.Config, "\n"), line) {
		t.Errorf("%q", r.Config)
	}
}

// Headscale before 0.26, which had a table of routes instead of a column, left devices with tags in the groups of their users.
func TestCheckMentionsThatGroupsBecomeSmaller(t *testing.T) {
	m := newMover(t, false)
	const line = "a group also contains the devices with tags of its members"
	check := func(want bool) {
		t.Helper()
		if r := m.run(false); strings.Contains(strings.Join(r.Config, "\n"), line) != want {
			t.Errorf("%q, want %t", r.Config, want)
		}
	}
	m.exec(`UPDATE nodes SET user_id = 1; UPDATE policies SET data = '{"groups": {"group:staff": ["ann@"]}, ' || substr(data, 2)`)
	check(false)
	m.exec("ALTER TABLE nodes DROP COLUMN approved_routes")
	check(true)
	m.exec(`UPDATE policies SET data = '{"acls": []}'`)
	check(false)
}

func TestImportTakesTheGivenDatabase(t *testing.T) {
	m := newMover(t, false)
	m.exec("VACUUM INTO '" + m.dir + "/copy.sqlite'")
	m.exec("DELETE FROM nodes")
	m.in.SQLite = filepath.Join(m.dir, "copy.sqlite")
	if r := m.run(false); r.Nodes != 2 {
		t.Errorf("%+v", r)
	}
	m.in.SQLite, m.in.Postgres = "", headscale.Postgres{Host: "127.0.0.1", Port: 1, Name: "x", User: "x", SSLMode: "disable"}
	if _, err := app.ImportHeadscale(context.WithoutCancel(t.Context()), m.config, m.in); err == nil {
		t.Error("a server that does not exist was read")
	}
}
