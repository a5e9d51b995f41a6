package config

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// minimal avoids the only warning that an empty file causes.
const minimal = "server_url: https://mesh.example.org\n"

// load writes text to a file and loads it. Errors name the file config.yaml.
func load(t testing.TB, text string, env ...string) (*Config, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, env)
	if (c == nil) == (err == nil) {
		t.Fatalf("Load returned %v and %v; want exactly one", c, err)
	}
	if err != nil {
		return nil, strings.ReplaceAll(err.Error(), path, "config.yaml")
	}
	for i := range c.Warnings {
		c.Warnings[i].File = strings.ReplaceAll(c.Warnings[i].File, path, "config.yaml")
	}
	c.File = ""
	return c, ""
}

func mustLoad(t testing.TB, text string, env ...string) *Config {
	t.Helper()
	c, problems := load(t, text, env...)
	if problems != "" {
		t.Fatal(problems)
	}
	return c
}

func TestDefaultsOfEmptyFile(t *testing.T) {
	want := &Config{
		ServerURL:               "http://localhost:8080",
		ListenAddr:              "0.0.0.0:8080",
		MetricsListenAddr:       "127.0.0.1:9090",
		UnixSocket:              "/run/fairlead/fairlead.sock",
		ACME:                    ACME{URL: "https://acme-v02.api.letsencrypt.org/directory", CacheDir: "/var/lib/fairlead/acme", Challenge: ChallengeHTTP, Listen: "0.0.0.0:80"},
		APICompatVersion:        "0.28.0",
		NodeUpdateCheckInterval: 10 * time.Second,
		Noise:                   Noise{PrivateKeyPath: "/var/lib/fairlead/noise_private.key"},
		Prefixes: Prefixes{
			V4:         netip.MustParsePrefix("100.64.0.0/10"),
			V6:         netip.MustParsePrefix("fd7a:115c:a1e0::/48"),
			Allocation: "sequential",
		},
		Database: Database{
			Type:   "sqlite",
			SQLite: SQLite{Path: "/var/lib/fairlead/db.sqlite"},
			Postgres: Postgres{
				Port: 5432, Name: "fairlead", User: "fairlead", SSLMode: "prefer",
				MaxOpenConns: 10, MaxIdleConns: 10, ConnMaxIdleTime: time.Hour,
			},
		},
		DNS: DNS{OverrideLocalDNS: true},
		DERP: DERP{
			AutoUpdateEnabled: true,
			UpdateFrequency:   24 * time.Hour,
			Server: DERPServer{
				Enabled: true, RegionID: 999, RegionCode: "fairlead", RegionName: "Fairlead embedded relay", VerifyClients: true,
				STUNListenAddr: "0.0.0.0:3478", STUNPublicPort: 3478,
				PrivateKeyPath: "/var/lib/fairlead/derp_server_private.key",
			},
		},
		OIDC:     OIDC{OIDCProvider: OIDCProvider{Scope: []string{"openid", "profile", "email"}, GroupsClaim: "groups", EmailVerifiedRequired: true}, SessionExpiry: 24 * time.Hour},
		Policy:   Policy{Mode: "database"},
		Node:     Node{Ephemeral: Ephemeral{InactivityTimeout: 30 * time.Minute}, Routes: Routes{ProbeInterval: 5 * time.Second, ProbeTimeout: 3 * time.Second}},
		Taildrop: Taildrop{Enabled: true},
		History:  History{Retention: 365 * 24 * time.Hour},
		Limits:   Limits{ConnectionsPerNetwork: 6000},
		Log:      Log{Level: slog.LevelInfo, Format: "text"},
	}
	for name, text := range map[string]string{
		"empty":         "",
		"comments":      "# nothing yet\n",
		"null document": "---\n~\n",
		"null keys":     "log:\nlisten_addr:\ndatabase:\n  type: null\n  postgres:\n    port: ~\n",
		"empty texts":   "tls_cert_path: \"\"\ntls_key_path: ''\ndns: {base_domain: ''}\nderp: {urls: [], server: {ipv4: ''}}\npolicy: {path: ''}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := mustLoad(t, text)
			if diff := cmp.Diff(want, got, equal(), cmpopts.IgnoreFields(Config{}, "Warnings")); diff != "" {
				t.Error(diff)
			}
			if len(got.Warnings) == 0 || got.Warnings[0].Key != "server_url" {
				t.Errorf("warnings %v; want the first about server_url", got.Warnings)
			}
		})
	}
}

// equal compares addresses by value and secrets by content.
func equal() cmp.Option {
	return cmp.Options{cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}), cmp.Comparer(func(a, b Secret) bool { return a == b })}
}

const everyKey = `
server_url: https://mesh.example.org:443/
listen_addr: "[::]:8443"
replica_name: mesh-1
replica_url: http://10.0.0.11:8443/
metrics_listen_addr: localhost:9091
unix_socket: /tmp/f.sock
tls_cert_path: /c.pem
tls_key_path: /k.pem
tls_letsencrypt_challenge_type: TLS-ALPN-01
tls_letsencrypt_listen: ":http"
tls_letsencrypt_cache_dir: /cache
acme_url: https://ca.example/directory
acme_email: admin@example.org
trusted_proxies: [127.0.0.1, 10.1.2.3/8, "::1"]
api_compat_version: 0.29.0
secrets_key_file: /s.key
node_update_check_interval: 30s
noise: {private_key_path: /n.key}
prefixes: {v4: 100.80.0.0/16, v6: "fd7a:115c:a1e0:1::/64", allocation: random}
database:
  type: postgres
  sqlite: {path: /d.sqlite}
  postgres:
    host: [a.example, b.example]
    port: "6432"
    name: mesh
    user: me
    pass: 0123
    ssl: verify-full
    max_open_conns: 20
    max_idle_conns: 0
    conn_max_idle_time_secs: 60
dns:
  override_local_dns: false
  extra_records_path: /records.json
  magic_dns: true
  base_domain: Tail.Example.com.
  nameservers:
    global: [1.1.1.1, "2606:4700::1111", https://dns.example/q]
    split:
      corp.example: [10.0.0.53]
      local.example: []
  pinned: true
  search_domains: [example.com]
  extra_records:
    - {name: grafana.tail.example.com, type: A, value: 100.64.0.3}
    - {name: grafana.tail.example.com, type: AAAA, value: "fd7a:115c:a1e0::3"}
derp:
  urls: [https://relays.example/map]
  paths: [/relays.yaml]
  auto_update_enabled: false
  update_frequency: 1d12h
  server:
    enabled: true
    region_id: 901
    region_code: hq
    region_name: HQ
    verify_clients: false
    stun_listen_addr: 0.0.0.0:3479
    stun_public_port: 3480
    private_key_path: /r.key
    ipv4: 203.0.113.5
    ipv6: 2001:db8::5
oidc:
  console_urls: [https://console.example.org/admin/, "http://localhost:3000/admin/"]
  session_expiry: 12h
  issuer: https://id.example.org/realm
  client_id: mesh
  client_secret_path: $HOME/oidc
  name: Work
  scope: [openid, groups]
  extra_params: {domain_hint: example.org}
  allowed_domains: [example.org]
  allowed_users: [a@example.org, b@example.org]
  allowed_groups: [/mesh]
  groups_claim: realm.groups
  groups_map: {/mesh: mesh}
  roles: {admin: [/mesh], owner: [chiefs], it-admin: [on call], read: audit}
  email_verified_required: false
  use_expiry_from_token: true
  recheck: 15m
  user_approval_required: true
  pkce: {enabled: true, method: S256}
  providers:
    - {issuer: "http://127.0.0.1:5556/dex", client_id: other, client_secret: s, pkce: {enabled: true, method: S256}}
policy: {mode: file, path: /acl.json}
node: {expiry: 180d, approval_required: true, ephemeral: {inactivity_timeout: 1h}, routes: {ha: {probe_interval: 20s, probe_timeout: 10s}}}
taildrop: {enabled: false}
randomize_client_port: true
cache_network_maps: true
server_addresses: [203.0.113.10, "2001:db8::10"]
history: {retention: 2y}
webhooks: {allow_local: true}
limits: {connections: 3000, connections_per_network: 300, nodes_per_user: 5, nodes_per_key: 50}
log: {level: trace, format: json}
`

func TestEveryKeyIsReadIntoItsField(t *testing.T) {
	got := mustLoad(t, everyKey)
	want := &Config{
		ServerURL: "https://mesh.example.org:443", ReplicaName: "mesh-1", ReplicaURL: "http://10.0.0.11:8443", ListenAddr: "[::]:8443", MetricsListenAddr: "localhost:9091", UnixSocket: "/tmp/f.sock",
		TLSCertPath: "/c.pem", TLSKeyPath: "/k.pem", APICompatVersion: "0.29.0", SecretsKeyFile: "/s.key",
		ACME:                    ACME{URL: "https://ca.example/directory", Email: "admin@example.org", CacheDir: "/cache", Challenge: ChallengeTLS, Listen: ":80"},
		TrustedProxies:          []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		NodeUpdateCheckInterval: 30 * time.Second,
		Noise:                   Noise{PrivateKeyPath: "/n.key"},
		RandomizeClientPort:     true,
		CacheNetworkMaps:        true,
		ServerAddresses:         []netip.Addr{netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::10")},
		Limits:                  Limits{Connections: 3000, ConnectionsPerNetwork: 300, NodesPerUser: 5, NodesPerKey: 50},
		Prefixes:                Prefixes{V4: netip.MustParsePrefix("100.80.0.0/16"), V6: netip.MustParsePrefix("fd7a:115c:a1e0:1::/64"), Allocation: "random"},
		Database: Database{Type: "postgres", SQLite: SQLite{Path: "/d.sqlite"}, Postgres: Postgres{
			Hosts: []string{"a.example", "b.example"}, Port: 6432, Name: "mesh", User: "me", Pass: "0123", SSLMode: "verify-full",
			MaxOpenConns: 20, MaxIdleConns: 0, ConnMaxIdleTime: time.Minute,
		}},
		DNS: DNS{
			Pinned: true, MagicDNS: true, BaseDomain: "tail.example.com", SearchDomains: []string{"example.com"}, ExtraRecordsPath: "/records.json",
			Nameservers: Nameservers{
				Global: []string{"1.1.1.1", "2606:4700::1111", "https://dns.example/q"},
				Split:  map[string][]string{"corp.example": {"10.0.0.53"}, "local.example": nil},
			},
			ExtraRecords: []Record{
				{Name: "grafana.tail.example.com", Type: "A", Value: netip.MustParseAddr("100.64.0.3")},
				{Name: "grafana.tail.example.com", Type: "AAAA", Value: netip.MustParseAddr("fd7a:115c:a1e0::3")},
			},
		},
		DERP: DERP{
			URLs: []string{"https://relays.example/map"}, Paths: []string{"/relays.yaml"}, UpdateFrequency: 36 * time.Hour,
			Server: DERPServer{
				Enabled: true, RegionID: 901, RegionCode: "hq", RegionName: "HQ", STUNListenAddr: "0.0.0.0:3479", STUNPublicPort: 3480,
				PrivateKeyPath: "/r.key", IPv4: netip.MustParseAddr("203.0.113.5"), IPv6: netip.MustParseAddr("2001:db8::5"),
			},
		},
		OIDC: OIDC{
			OIDCProvider: OIDCProvider{
				Name: "Work", Issuer: "https://id.example.org/realm", ClientID: "mesh", ClientSecretPath: "$HOME/oidc", Scope: []string{"openid", "groups"},
				ExtraParams: map[string]string{"domain_hint": "example.org"}, AllowedDomains: []string{"example.org"},
				AllowedUsers: []string{"a@example.org", "b@example.org"}, AllowedGroups: []string{"/mesh"}, GroupsClaim: "realm.groups", GroupsMap: map[string]string{"/mesh": "mesh"},
				Roles:              map[mesh.Role][]string{mesh.RoleAdmin: {"mesh", "chiefs"}, mesh.RoleOperator: {"on-call"}, mesh.RoleRead: {"audit"}},
				UseExpiryFromToken: true, PKCE: true, Recheck: 15 * time.Minute,
			},
			UserApprovalRequired: true,
			Providers: []OIDCProvider{{
				Issuer: "http://127.0.0.1:5556/dex", ClientID: "other", ClientSecret: "s", PKCE: true,
				Scope: []string{"openid", "profile", "email"}, GroupsClaim: "groups", EmailVerifiedRequired: true,
			}},
			ConsoleURLs: []string{"https://console.example.org/admin/", "http://localhost:3000/admin/"}, SessionExpiry: 12 * time.Hour,
		},
		Policy:   Policy{Mode: "file", Path: "/acl.json"},
		Node:     Node{Expiry: 180 * 24 * time.Hour, ApprovalRequired: true, Ephemeral: Ephemeral{InactivityTimeout: time.Hour}, Routes: Routes{ProbeInterval: 20 * time.Second, ProbeTimeout: 10 * time.Second}},
		History:  History{Retention: 2 * 365 * 24 * time.Hour},
		Webhooks: Webhooks{AllowLocal: true},
		Log:      Log{Level: LevelTrace, Format: "json"},
	}
	if diff := cmp.Diff(want, got, equal(), cmpopts.IgnoreFields(Config{}, "Warnings")); diff != "" {
		t.Error(diff)
	}
	if len(got.Warnings) != 1 || got.Warnings[0].Key != "oidc.pkce.method" || !got.Warnings[0].Minor {
		t.Errorf("warnings %v", got.Warnings)
	}
	plain := keysOf(withDefaults())
	for i, k := range keysOf(got) {
		// The hostname and a certificate of one's own exclude each other, as do a secret and a file with it.
		if k.text() == plain[i].text() && k.path != "tls_letsencrypt_hostname" && k.path != "oidc.client_secret" {
			t.Errorf("%s still has its default %s; this test must set it", k.path, k.text())
		}
	}
}

func TestServerCanObtainItsOwnCertificate(t *testing.T) {
	c := mustLoad(t, "server_url: https://Mesh.example.org\nlisten_addr: :443\ntls_letsencrypt_hostname: mesh.example.org\ntls_letsencrypt_challenge_type: TLS-ALPN-01\nnoise: {private_key_path: /d/noise.key}")
	if a := c.ACME; a.Hostname != "mesh.example.org" || a.CacheDir != "/d/acme" || !c.ServesTLS() || len(c.Warnings) > 0 {
		t.Errorf("got %+v with warnings %v", a, c.Warnings)
	}
	c = mustLoad(t, "server_url: https://vpn.example.org\ntls_letsencrypt_hostname: mesh.example.org\ntls_letsencrypt_challenge_type: TLS-ALPN-01")
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.Key+": "+w.Text)
	}
	want := []string{
		"tls_letsencrypt_hostname: the certificate will not be valid for vpn.example.org, the host of server_url",
		"tls_letsencrypt_challenge_type: the authority connects to port 443; make sure that it leads to listen_addr 0.0.0.0:8080",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAllProblemsAtOnceInFileOrder(t *testing.T) {
	_, got := load(t, `server_url: mesh.example.org
listen_adr: 0.0.0.0:80
database:
  type: mysql
  postgres:
    max_open_conns: ten
    pass: [hunter2]
log:
  level: loud
log:
  format: text
dns:
  nameservers:
    global:
      - 1.1.1.1
      - one.one.one.one
policy: file
`, "FAIRLEAD_NODE_EXPIRY=-1d", "FAIRLEAD_LOG_LVEL=debug")
	want := `failed to parse configuration: yaml: unmarshal errors
  config.yaml:1: server_url: must be an absolute URL that begins with http:// or https://, got "mesh.example.org"
  config.yaml:2: listen_adr: unknown key; did you mean listen_addr?
  config.yaml:4: database.type: must be sqlite or postgres, got "mysql"
  config.yaml:6: database.postgres.max_open_conns: must be a whole number, got "ten"
  config.yaml:7: database.postgres.pass: must be text, got a list
  config.yaml:9: log.level: must be trace, debug, info, warn or error, got "loud"
  config.yaml:10: log: already set on line 8; remove one of them
  config.yaml:16: dns.nameservers.global[1]: must be an IP address or an https:// URL, got "one.one.one.one"
  config.yaml:17: policy: must be a section of keys, got text
  FAIRLEAD_LOG_LVEL: unknown variable; did you mean FAIRLEAD_LOG_LEVEL?
  FAIRLEAD_NODE_EXPIRY: node.expiry: must be a duration such as 30s, 24h, 90d, 2w or 1y, got "-1d"`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFirstLineNamesTypeErrorsOnlyWhenThereAreSome(t *testing.T) {
	for text, want := range map[string]string{
		"log: {level: loud}":          "failed to parse configuration",
		"nonsense: 1":                 "failed to parse configuration",
		"log: [":                      "failed to parse configuration",
		"dns: {magic_dns: maybe}":     "failed to parse configuration: yaml: unmarshal errors",
		"derp: {server: {urls: [1]}}": "failed to parse configuration",
		"log: info":                   "failed to parse configuration: yaml: unmarshal errors",
		"just text":                   "failed to parse configuration: yaml: unmarshal errors",
	} {
		_, got := load(t, text)
		if first, _, _ := strings.Cut(got, "\n"); first != want {
			t.Errorf("%q: first line %q; want %q", text, first, want)
		}
	}
}

func TestSyntaxErrorHasItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"listen_addr: a: b":                    "config.yaml:1: mapping values are not allowed in this context",
		"log:\n  level: info\n\tformat: json":  "config.yaml:3: found a tab character that violates indentation",
		"a: b\nlog:\n  level: \"info\n":        "config.yaml:3: a quotation mark is not closed",
		"a: 'b\nlog:\n  level: info\n":         "config.yaml:1: a quotation mark is not closed",
		"log:\n  level: info\n---\nlog: {}\n":  "config.yaml:4: more than one YAML document; remove this one",
		"a: b\n}\nc: d\n":                      "config.yaml:2: did not find expected key",
		"log: {}\n---\n[":                      "config.yaml:3: did not find expected node content",
		"log:\n  - a\n  b: c":                  "config.yaml:3: did not find expected '-' indicator",
		"a: \xff":                              "config.yaml:1: invalid leading UTF-8 octet",
		"a:\n  b: c\n  pass: *hunter2\nd: e\n": "config.yaml:3: a value that begins with * must be quoted",
		"- a\n- b\n":                           "config.yaml:1: must be a section of keys, got a list",
	} {
		_, got := load(t, text)
		if !strings.Contains(got, "\n  "+want) {
			t.Errorf("%q: got %q; want it to have %q", text, got, want)
		}
	}
}

func TestBrokenFileIsTheOnlyProblemOfItsKeys(t *testing.T) {
	_, got := load(t, "database:\n  postgres: [\n", "FAIRLEAD_DATABASE_TYPE=postgres", "FAIRLEAD_LOG_LEVEL=loud")
	if strings.Contains(got, "database.postgres.host") || !strings.Contains(got, "config.yaml:") || !strings.Contains(got, "FAIRLEAD_LOG_LEVEL: ") {
		t.Errorf("got %q", got)
	}
}

func TestUnknownKeyNamesTheNearest(t *testing.T) {
	for text, want := range map[string]string{
		"server_ulr: x":                       "server_ulr: unknown key; did you mean server_url?",
		"databse: {type: sqlite}":             "databse: unknown key; did you mean database?",
		"database: {postgress: {host: x}}":    "database.postgress: unknown key; did you mean database.postgres?",
		"base_domain: example.com":            "base_domain: unknown key; did you mean dns.base_domain?",
		"dns: {nameserver: {}}":               "dns.nameserver: unknown key; did you mean dns.nameservers?",
		"zzzzzzzzzzzzzzzz: 1":                 "unknown key; all are listed at https://github.com/fairlead-mesh/fairlead/blob/main/docs/configuration.md",
		"log.level: info":                     "log.level: nest the key under its sections instead of using dots",
		"x: &a {level: info}\nlog:\n  <<: *a": "log: keys must be plain names; YAML merge keys are not supported",
		"{[a]: b}":                            "keys must be plain names",
	} {
		if _, got := load(t, text); !strings.Contains(got, want) {
			t.Errorf("%q: got %q; want it to have %q", text, got, want)
		}
	}
}

func TestFileProblemsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# large\n", maxFile/8+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "none.yaml")
	for name, c := range map[string]struct{ path, env, want string }{
		"missing":                  {path: missing, want: missing + ": no such file; create it, or choose another with --config or FAIRLEAD_CONFIG"},
		"missing, by the variable": {env: "FAIRLEAD_CONFIG=" + missing, want: missing + ": no such file"},
		"directory":                {path: dir, want: dir + ": is a directory"},
		"too large":                {path: large, want: large + ": larger than 1 MiB"},
	} {
		_, err := Load(c.path, []string{c.env})
		if err == nil || !strings.HasPrefix(err.Error(), "failed to parse configuration\n  "+c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
		if !errors.As(err, new(Problems)) {
			t.Errorf("%s: error of type %T; want Problems", name, err)
		}
	}
}

func TestPathWinsOverVariable(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "b.yaml")
	for path, name := range map[string]string{a: "a", b: "b"} {
		if err := os.WriteFile(path, []byte("derp: {server: {region_code: "+name+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{a: "a", "": "b"} {
		c, err := Load(path, []string{"FAIRLEAD_CONFIG=" + b})
		if err != nil || c.DERP.Server.RegionCode != want {
			t.Errorf("Load(%q) read %v, %v; want %q", path, c, err, want)
		}
	}
}

func TestMissingDefaultFileLeavesEnvironment(t *testing.T) {
	if _, err := os.Stat(DefaultFile); err == nil {
		t.Skip("this machine has a configuration at the default place")
	}
	c, err := Load("", []string{"FAIRLEAD_SERVER_URL=https://mesh.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if c.ServerURL != "https://mesh.example.org" || c.File != "" || len(c.Warnings) > 0 {
		t.Errorf("got %s, file %q, warnings %v", c.ServerURL, c.File, c.Warnings)
	}
}

// YAML treats a value that starts with an exclamation mark as a tag. A password like that
// must not silently become empty.
func TestValueThatLooksLikeATagIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "database:\n  type: postgres\n  postgres:\n    host: db\n    pass: !hunter2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, nil)
	if err == nil || !strings.Contains(err.Error(), "database.postgres.pass: begins with !") || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v", err)
	}
}
