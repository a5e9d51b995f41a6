package headscale_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/headscale"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

type (
	row    = headscale.Row
	tables = headscale.Tables
)

const now = mesh.Time(1_800_000_000_000_000)

func options() headscale.Options {
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	return headscale.Options{V4: v4, V6: v6, OldV4: v4, OldV6: v6, Now: now}
}

func hex(n int) string { return fmt.Sprintf("%064x", n) }

// node returns a row of the table nodes as 0.28 has it, with changes given as pairs of column and value.
func node(id int64, changes ...any) row {
	r := row{
		"id": id, "machine_key": "mkey:" + hex(int(id)), "node_key": "nodekey:" + hex(int(id)+1000), "disco_key": "discokey:" + hex(int(id)+2000),
		"ipv4": fmt.Sprintf("100.64.0.%d", id), "ipv6": fmt.Sprintf("fd7a:115c:a1e0::%d", id), "hostname": fmt.Sprintf("host%d", id), "given_name": fmt.Sprintf("host%d", id),
		"user_id": int64(1), "register_method": "cli", "tags": nil, "auth_key_id": nil, "expiry": nil, "last_seen": "2026-01-02 03:04:05+00:00",
		"approved_routes": "null", "host_info": "{}", "endpoints": "[]", "created_at": "2025-01-02 03:04:05.5+02:00",
	}
	for i := 0; i < len(changes); i += 2 {
		r[changes[i].(string)] = changes[i+1]
	}
	return r
}

func users() []row { return []row{{"id": int64(1), "name": "ann"}} }

// repaired checks that a plan has exactly these repairs, each with these words.
func repaired(t *testing.T, p *headscale.Plan, want ...string) {
	t.Helper()
	if len(p.Repairs) != len(want) || len(p.Refusals) > 0 {
		t.Errorf("repairs %q, refusals %q; want %q", p.Repairs, p.Refusals, want)
		return
	}
	for i, words := range want {
		if !strings.Contains(p.Repairs[i], words) {
			t.Errorf("repair %q, want %q", p.Repairs[i], words)
		}
	}
}

func TestNodeIsMappedWithAllThatClientsKnow(t *testing.T) {
	p := headscale.Map(tables{"users": users(), "nodes": {node(5, "expiry", "2030-01-01 00:00:00+00:00", "register_method", "oidc", "given_name", "chosen",
		"endpoints", `["192.0.2.1:41641"]`, "host_info", `{"NetInfo":{"PreferredDERP":999}}`, "approved_routes", []byte(`["10.0.0.0/8"]`))}}, options())
	repaired(t, p)
	if len(p.Nodes) != 1 {
		t.Fatalf("%d nodes", len(p.Nodes))
	}
	n := p.Nodes[0]
	at := func(text string) mesh.Time {
		v, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return mesh.TimeOf(v)
	}
	got := []any{n.Stable(), n.Name, n.Renamed, n.Owner, n.Method, n.Expiry, n.KeyExpired, n.CreatedAt, n.LastSeen, n.Net.HomeRelay, fmt.Sprint(n.Net.Endpoints, n.Approved)}
	want := []any{"5", "chosen", true, mesh.UserID(1), mesh.RegisterOIDC, at("2030-01-01T00:00:00Z"), false, at("2025-01-02T01:04:05.5Z"), at("2026-01-02T03:04:05Z"), 999, "[192.0.2.1:41641] [10.0.0.0/8]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpiryOfNodes(t *testing.T) {
	for value, want := range map[any][2]bool{ // set, expired
		nil: {}, "": {}, "0001-01-01 00:00:00+00:00": {}, "2020-01-01 00:00:00+00:00": {true, true}, "2990-01-01 00:00:00+00:00": {true, false},
		"1970-01-01 00:02:03+00:00": {true, true}, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC): {true, true}, "2020-01-01 00:00:00.5 +0000 UTC m=+0.01": {true, true},
	} {
		n := headscale.Map(tables{"users": users(), "nodes": {node(1, "expiry", value)}}, options()).Nodes[0]
		if got := [2]bool{n.Expiry != 0, n.KeyExpired}; got != want {
			t.Errorf("%v: %v, want %v", value, got, want)
		}
	}
}

func TestDuplicatesKeepTheNodeThatWasUsedLast(t *testing.T) {
	p := headscale.Map(tables{"users": append(users(), row{"id": int64(2), "name": "bob"}), "nodes": {
		node(1, "machine_key", "mkey:"+hex(9)),
		node(2, "machine_key", "mkey:"+hex(9), "last_seen", "2026-05-01 00:00:00+00:00"),
		node(3, "machine_key", "mkey:"+hex(9), "user_id", int64(2)), // another person on the same machine
		node(4, "node_key", "nodekey:"+hex(1003)),
	}}, options())
	repaired(t, p, "node 3 (host3) is left out: node 4 has the same node key", "node 1 (host1) is left out: node 2 is the same machine")
	if len(p.Nodes) != 2 || p.Nodes[0].ID != 2 || p.Nodes[1].ID != 4 {
		t.Errorf("%v", p.Nodes)
	}
	p = headscale.Map(tables{"users": append(users(), row{"id": int64(2), "name": "bob"}), "nodes": {
		node(1, "machine_key", "mkey:"+hex(9)), node(3, "machine_key", "mkey:"+hex(9), "user_id", int64(2)),
	}}, options())
	if repaired(t, p); len(p.Nodes) != 2 {
		t.Errorf("two people on one machine: %d nodes", len(p.Nodes))
	}
}

func TestNamesAndAddressesAreRepaired(t *testing.T) {
	p := headscale.Map(tables{"users": users(), "nodes": {
		node(1, "given_name", ""), node(2, "given_name", strings.Repeat("x", 70)), node(3, "given_name", "Ünder_score"), node(4, "given_name", "host5"), node(5),
		node(6, "ipv4", "10.1.1.1"), node(7, "ipv4", "100.64.0.6", "ipv6", nil), node(8, "ipv4", "100.64.0.6"),
	}}, options())
	seen := map[any]bool{}
	for _, n := range p.Nodes {
		for _, v := range []any{n.Name, n.IPv4, n.IPv6} {
			if seen[v] {
				t.Errorf("%v is used twice", v)
			}
			seen[v] = true
		}
		if n.Name == "" || len(n.Name) > 63 || strings.ContainsAny(n.Name, "_Ü") || !options().V4.Contains(n.IPv4) || !options().V6.Contains(n.IPv6) {
			t.Errorf("%s %v", n.Name, n.Addrs())
		}
	}
	if len(p.Nodes) != 8 || len(p.Repairs) != 7 || len(p.Refusals) != 0 {
		t.Errorf("%d nodes, repairs %q, refusals %q", len(p.Nodes), p.Repairs, p.Refusals)
	}
}

func TestOrphansAreLeftOut(t *testing.T) {
	p := headscale.Map(tables{
		"users": users(), "nodes": {node(1, "user_id", int64(7)), node(2, "user_id", nil), node(3, "user_id", nil, "tags", `["tag:b","tag:a","tag:a"]`), node(4, "machine_key", "x"), node(5, "deleted_at", "2026-01-01 00:00:00+00:00")},
		"pre_auth_keys": {{"id": int64(1), "key": strings.Repeat("ab", 24), "user_id": int64(7)}},
	}, options())
	if len(p.Nodes) != 1 || !cmp.Equal(p.Nodes[0].Tags, []string{"tag:a", "tag:b"}) || len(p.PreAuthKeys) != 0 || len(p.Repairs) != 4 {
		t.Errorf("%v %v %q", p.Nodes, p.PreAuthKeys, p.Repairs)
	}
}

func TestUserNames(t *testing.T) {
	p := headscale.Map(tables{"nodes": {}, "users": {
		{"id": int64(1), "name": "Ann", "provider_identifier": "https://id.example/1", "email": "ann@example.com"},
		{"id": int64(2), "name": "ann"},
		{"id": int64(3), "name": "", "email": "bob@example.com", "provider_identifier": "https://id.example/3"},
		{"id": int64(4), "name": "42 is ünusual"},
		{"id": int64(5), "name": "gone", "deleted_at": "2026-01-01 00:00:00+00:00"},
		{"id": int64(6), "name": "tagged-devices"},
	}}, options())
	got := map[mesh.UserID]string{}
	for _, u := range p.Users {
		got[u.ID] = u.Name + " " + u.Provider + " " + u.ProviderID
	}
	want := map[mesh.UserID]string{
		1: "ann@example.com oidc https://id.example/1", 2: "ann  ", 3: "bob@example.com oidc https://id.example/3", 4: "is--nusual  ", 6: "tagged-devices-6  ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	repaired(t, p, `user 4: the name "42 is ünusual"`, `user 6`, `user 1: the name "Ann"`)
}

func TestKeysOfAllVersions(t *testing.T) {
	bcrypt := []byte("$2a$10$" + strings.Repeat("a", 53))
	p := headscale.Map(tables{
		"users": users(), "nodes": {},
		"pre_auth_keys": {
			{"id": int64(1), "key": strings.Repeat("ab", 24), "user_id": int64(1), "reusable": int64(1), "expiration": nil},
			{"id": int64(2), "key": "", "prefix": "abcdefghijkl", "hash": bcrypt, "user_id": int64(1), "used": true, "expiration": "0001-01-01 00:00:00+00:00"},
			{"id": int64(3), "key": strings.Repeat("cd", 24), "user_id": int64(1)},
			{"id": int64(4), "key": "short", "user_id": int64(1)},
			{"id": int64(5), "prefix": "revokedrevok", "hash": bcrypt, "user_id": int64(1), "revoked": "2026-01-01 00:00:00+00:00"},
		},
		"pre_auth_key_acl_tags": {{"pre_auth_key_id": int64(3), "tag": "tag:web"}},
		"api_keys":              {{"id": int64(1), "prefix": "abcdefg", "hash": bcrypt}, {"id": int64(2), "prefix": "x", "hash": []byte("$2a$31$" + strings.Repeat("a", 53))}},
	}, options())
	repaired(t, p, "pre-auth key 4 is left out", "API key 2 is left out")
	if len(p.PreAuthKeys) != 4 || len(p.APIKeys) != 1 {
		t.Fatalf("%v %v", p.PreAuthKeys, p.APIKeys)
	}
	a, b, c, d := p.PreAuthKeys[0], p.PreAuthKeys[1], p.PreAuthKeys[2], p.PreAuthKeys[3]
	if a.Bcrypt != "" || a.Hash == (mesh.Secret{}) || a.Prefix != "abababababab" || !a.Reusable || a.Expiry.Reached(now) {
		t.Errorf("a plain key without an expiration: %+v", a)
	}
	if b.Bcrypt != mesh.Bcrypt(bcrypt) || !b.Used || !b.Expiry.Reached(now) {
		t.Errorf("a hashed key with a zero expiration: %+v", b)
	}
	if !cmp.Equal(c.Tags, []string{"tag:web"}) || !d.Expiry.Reached(now) {
		t.Errorf("tags %v, revoked key %+v", c.Tags, d)
	}
	if k := p.APIKeys[0]; k.Role != mesh.RoleAdmin || k.Expiry != 0 {
		t.Errorf("%+v", k)
	}
}

// 0.22 has other names for tables and columns, and keys without their kind.
func TestOldestSchema(t *testing.T) {
	p := headscale.Map(tables{
		"users": users(),
		"machines": {{
			"id": int64(3), "machine_key": hex(1), "node_key": hex(2), "disco_key": hex(3), "ip_addresses": "fd7a:115c:a1e0::3,100.64.0.3", "hostname": "old", "given_name": "old-abc12345",
			"user_id": int64(1), "forced_tags": "[]", "auth_key_id": int64(0), "host_info": `{"RequestTags":["tag:web"]}`, "created_at": "2023-01-01 00:00:00+00:00",
		}},
		"routes": {
			{"machine_id": int64(3), "prefix": "10.0.0.0/8", "enabled": int64(1)},
			{"machine_id": int64(3), "prefix": "10.9.0.0/16", "enabled": int64(0)},
			{"machine_id": int64(3), "prefix": "10.8.0.0/16", "enabled": int64(1), "deleted_at": "2023-01-01 00:00:00+00:00"},
		},
	}, options())
	repaired(t, p)
	n := p.Nodes[0]
	if fmt.Sprintf("%v %v %v %v %s %t", n.Addrs(), n.Approved, n.AskedTags, n.Tags, n.Name, n.Renamed) != "[100.64.0.3 fd7a:115c:a1e0::3] [10.0.0.0/8] [tag:web] [] old-abc12345 true" {
		t.Error(n.Addrs(), n.Approved, n.AskedTags, n.Tags, n.Name, n.Renamed)
	}
	if p.LongName != "old-abc12345.ann" {
		t.Error(p.LongName)
	}
	if p.Version != "0.22 or older" || n.MachineKey.String() != "mkey:"+hex(1) {
		t.Error(p.Version, n.MachineKey)
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	if p := headscale.Map(tables{}, options()); len(p.Refusals) != 1 {
		t.Errorf("%q", p.Refusals)
	}
}

func TestNewestPolicyCounts(t *testing.T) {
	p := headscale.Map(tables{"users": users(), "nodes": {}, "policies": {{"id": int64(2), "data": "b"}, {"id": int64(1), "data": "a"}, {"id": int64(3), "data": "c", "deleted_at": "2026-01-01 00:00:00+00:00"}}}, options())
	if p.Policy != "b" {
		t.Error(p.Policy)
	}
}

func TestConfigurationsOfAllVersions(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	for name, c := range map[string]struct {
		text string
		want headscale.Config
	}{
		"0.22": {
			"ip_prefixes: ['fd7a:115c:a1e0::/48', 100.64.0.0/10]\ndb_type: sqlite3\ndb_path: /db\nnoise: {private_key_path: /noise}\nacl_policy_path: /acl\ndns_config: {base_domain: a.example}",
			headscale.Config{V4: v4, V6: v6, SQLite: "/db", NoiseKey: "/noise", PolicyFile: "/acl", BaseDomain: "a.example"},
		},
		"0.22 with PostgreSQL": {
			"db_type: postgres\ndb_host: h\ndb_port: 5433\ndb_name: n\ndb_user: u\ndb_pass: p\ndb_ssl: true",
			headscale.Config{Postgres: headscale.Postgres{Host: "h", Port: 5433, Name: "n", User: "u", Pass: "p", SSLMode: "require"}},
		},
		"0.28": {
			"server_url: https://h.example\nprefixes: {v4: 100.64.0.0/10}\ndatabase: {type: postgres, postgres: {host: h, port: 5432, name: n, user: u, pass: p, ssl: verify-full}}\nderp: {server: {private_key_path: /relay}}\npolicy: {mode: database, path: /unused}\ndns: {base_domain: a.example}",
			headscale.Config{ServerURL: "https://h.example", V4: v4, RelayKey: "/relay", BaseDomain: "a.example", Postgres: headscale.Postgres{Host: "h", Port: 5432, Name: "n", User: "u", Pass: "p", SSLMode: "verify-full"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := headscale.ParseConfig([]byte(c.text))
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, text := range []string{"database: {type: mysql}", "a: [", "- x"} {
		if _, err := headscale.ParseConfig([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
