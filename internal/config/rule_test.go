package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refused loads each text separately and expects exactly one problem, the one given.
func refused(t *testing.T, problems map[string]string) {
	t.Helper()
	for text, want := range problems {
		_, got := load(t, text)
		if !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s\ngot  %s\nwant one problem with %s", text, got, want)
		}
	}
}

func TestRefusedAddressesAndPaths(t *testing.T) {
	refused(t, map[string]string{
		`server_url: /mesh`:                          `server_url: must be an absolute URL that begins with http:// or https://, got "/mesh"`,
		`server_url: ftp://mesh.example.org`:         `server_url: must be an absolute URL`,
		`server_url: "https://:443"`:                 `server_url: must be an absolute URL`,
		`server_url: https://mesh.example.org/x`:     `server_url: must be scheme and host only`,
		`server_url: https://mesh.example.org?a=b`:   `server_url: must be scheme and host only`,
		`server_url: https://me:pw@mesh.example.org`: `server_url: must not contain a user name or password`,
		`listen_addr: 8080`:                          `listen_addr: must be host:port, such as 0.0.0.0:8080 or [::]:8080, got "8080"`,
		`listen_addr: "0.0.0.0:http"`:                `listen_addr: must be host:port`,
		`listen_addr: "0.0.0.0:65536"`:               `listen_addr: must be host:port`,
		`listen_addr: "::1:80"`:                      `listen_addr: must be host:port`,
		`listen_addr: "http://x:80"`:                 `listen_addr: must be host:port`,
		`listen_addr: ""`:                            `listen_addr: must not be empty; remove the key to use the default 0.0.0.0:8080`,
		`trusted_proxies: [nginx]`:                   `trusted_proxies[0]: must be an address or a range`,
		`server_addresses: [mesh.example.org]`:       `server_addresses[0]: must be an IP address at which clients reach the server`,
		`server_addresses: 0.0.0.0`:                  `must be an IP address at which clients reach the server`,
		`server_addresses: [192.0.2.1, 192.0.2.1]`:   `server_addresses: 192.0.2.1 is listed twice`,
		`server_addresses: [100.64.0.1]`:             `server_addresses: 100.64.0.1 is in the range of node addresses`,
		`server_addresses: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4, 1.1.1.5, 1.1.1.6, 1.1.1.7, 1.1.1.8, 1.1.1.9]`: `server_addresses: must be at most 8 addresses, got 9`,
		`derp: {urls: [relays.json]}`:               `derp.urls[0]: must be an absolute URL`,
		`derp: {server: {ipv4: "::1"}}`:             `derp.server.ipv4: must be an IPv4 address, got "::1"`,
		`derp: {server: {ipv6: 1.2.3.4}}`:           `derp.server.ipv6: must be an IPv6 address, got "1.2.3.4"`,
		`derp: {server: {ipv6: "fe80::1%eth0"}}`:    `derp.server.ipv6: must be an IPv6 address`,
		`unix_socket: fairlead.sock`:                `unix_socket: must be an absolute path`,
		`unix_socket: /` + strings.Repeat("x", 107): `unix_socket: must be an absolute path of at most 107 bytes`,
		`noise: {private_key_path: ""}`:             `noise.private_key_path: must not be empty`,
		`noise: {private_key_path: "a\nb"}`:         `noise.private_key_path: must be a single line without control characters`,
		`tls_cert_path: /c.pem`:                     `tls_cert_path: requires tls_key_path; set both or neither`,
		"tls_cert_path: ''\ntls_key_path: /k.pem":   `config.yaml:2: tls_key_path: requires tls_cert_path`,
		`tls_letsencrypt_challenge_type: DNS-01`:    `tls_letsencrypt_challenge_type: must be HTTP-01 or TLS-ALPN-01`,
		`tls_letsencrypt_listen: ":https"`:          `tls_letsencrypt_listen: must be host:port`,
		`acme_url: http://ca.example/directory`:     `acme_url: must be an absolute URL that begins with https://`,
		"{tls_letsencrypt_hostname: mesh.example.org, tls_cert_path: /c, tls_key_path: /k}": `tls_letsencrypt_hostname: tls_cert_path is also set; remove one of them`,
		`policy: {mode: git}`:                        `policy.mode: must be database or file, got "git"`,
		`api_compat_version: v1`:                     `api_compat_version: must be a version such as 0.28.0, got "v1"`,
		`prefixes: {allocation: any}`:                `prefixes.allocation: must be sequential or random`,
		`prefixes: {v4: 100.64.0.0}`:                 `prefixes.v4: must be an address range such as 100.64.0.0/10`,
		`prefixes: {v4: 10.0.0.0/8}`:                 `prefixes.v4: must be inside 100.64.0.0/10, because clients drop all other addresses, got "10.0.0.0/8"`,
		`prefixes: {v4: 100.0.0.0/8}`:                `prefixes.v4: must be inside 100.64.0.0/10`,
		`prefixes: {v4: 100.64.1.0/16}`:              `prefixes.v4: host bits are set: use 100.64.0.0/16`,
		`prefixes: {v4: 100.64.0.0/31}`:              `prefixes.v4: is too small for node addresses`,
		`prefixes: {v4: "fd7a:115c:a1e0::/64"}`:      `prefixes.v4: must be inside 100.64.0.0/10`,
		`prefixes: {v6: "fd00::/64"}`:                `prefixes.v6: must be inside fd7a:115c:a1e0::/48`,
		`prefixes: {v6: ""}`:                         `prefixes.v6: must not be empty; remove the key to use the default fd7a:115c:a1e0::/48`,
		`{listen_addr: "0.0.0.0:9090"}`:              `listen_addr: listen_addr 0.0.0.0:9090 and metrics_listen_addr 127.0.0.1:9090 conflict`,
		`metrics_listen_addr: ":8080"`:               `metrics_listen_addr: listen_addr 0.0.0.0:8080 and metrics_listen_addr :8080 conflict; choose another port`,
		"listen_addr: a:1\nmetrics_listen_addr: a:1": `config.yaml:2: metrics_listen_addr: listen_addr a:1 and metrics_listen_addr a:1 conflict`,
	})
}

func TestRefusedNumbersWordsAndDurations(t *testing.T) {
	refused(t, map[string]string{
		`derp: {server: {region_id: 0}}`:                    `derp.server.region_id: must be from 1 to 65535, got "0"`,
		`derp: {server: {region_id: 99999999999999999999}}`: `derp.server.region_id: must be from 1 to 65535`,
		`derp: {server: {region_id: 1.5}}`:                  `derp.server.region_id: must be a whole number, got "1.5"`,
		`derp: {server: {enabled: yes}}`:                    `derp.server.enabled: must be true or false, got "yes"`,
		`derp: {server: {region_code: {a: b}}}`:             `derp.server.region_code: must be text, got a section`,
		`derp: {server: {region_code: ""}}`:                 `derp.server.region_code: must not be empty`,
		`derp: {update_frequency: 10s}`:                     `derp.update_frequency: must be at least 1m0s, got "10s"`,
		`node_update_check_interval: 10`:                    `node_update_check_interval: must be a duration such as 30s`,
		`node_update_check_interval: 10ms`:                  `node_update_check_interval: must be at least 1s`,
		`node_update_check_interval: 2h`:                    `node_update_check_interval: must be at most 1h0m0s`,
		`node: {ephemeral: {inactivity_timeout: 0}}`:        `node.ephemeral.inactivity_timeout: must be at least 1m0s`,
		`node: {expiry: 300y}`:                              `node.expiry: must be a duration`,
		`history: {retention: 1h}`:                          `history.retention: must be at least 24h0m0s`,
		`log: {level: INFO}`:                                `log.level: must be trace, debug, info, warn or error, got "INFO"`,
		`log: {format: xml}`:                                `log.format: must be text or json, got "xml"`,
		"log: {format: &x text, level: *x}":                 `log.level: must be trace, debug, info, warn or error, got an alias`,
	})
}

func TestRefusedDatabases(t *testing.T) {
	refused(t, map[string]string{
		`database: {type: sqlite, postgres: {port: 0}}`:                     `database.postgres.port: must be from 1 to 65535`,
		`database: {type: sqlite, postgres: {ssl: maybe}}`:                  `database.postgres.ssl: must be disable, allow, prefer, require, verify-ca or verify-full, got "maybe"`,
		`database: {type: sqlite, postgres: {max_open_conns: 0}}`:           `database.postgres.max_open_conns: must be from 1 to 1000`,
		`database: {type: sqlite, postgres: {max_idle_conns: -1}}`:          `database.postgres.max_idle_conns: must be from 0 to 1000`,
		`database: {type: sqlite, postgres: {conn_max_idle_time_secs: 1h}}`: `database.postgres.conn_max_idle_time_secs: must be a whole number, got "1h"`,
		`database: {sqlite: {path: /d}, postgres: {pass: x}}`:               `database.postgres.pass: database.sqlite.path is also set; add database.type: postgres, or database.type: sqlite, which ignores it`,
		`database: {type: postgres, postgres: {host: "db:pg"}}`:             `database.postgres.host[0]: the port after the host name must be a number from 1 to 65535`,
		`database: {type: postgres, postgres: {host: "u@db"}}`:              `database.postgres.host[0]: must be a host name or an address, each with or without a port (db1:5433), or a socket directory`,
		`database: {sqlite: {path: ""}}`:                                    `database.sqlite.path: must not be empty`,
	})
}

func TestRefusedNameResolution(t *testing.T) {
	refused(t, map[string]string{
		`dns: {magic_dns: true}`:                                       `dns.base_domain: is required when dns.magic_dns is true`,
		`dns: {base_domain: "exa mple"}`:                               `dns.base_domain: must be a domain such as mesh.example.com`,
		`dns: {base_domain: -a.example}`:                               `dns.base_domain: must be a domain`,
		`dns: {base_domain: bücher.example}`:                           `(for international names, use the xn-- form)`,
		`dns: {base_domain: ` + strings.Repeat("a.", 95) + `com}`:      `dns.base_domain: must be at most 189 bytes`,
		minimal + `dns: {base_domain: example.org}`:                    `config.yaml:2: dns.base_domain: must not contain mesh.example.org, the host of server_url`,
		minimal + `dns: {base_domain: mesh.example.org}`:               `dns.base_domain: must not contain mesh.example.org`,
		`dns: {search_domains: [a_b]}`:                                 `dns.search_domains[0]: must be a domain`,
		`dns: {nameservers: {global: ["1.1.1.1:53"]}}`:                 `dns.nameservers.global[0]: must be an IP address or an https:// URL`,
		`dns: {nameservers: {global: ["http://dns.example"]}}`:         `dns.nameservers.global[0]: must be an IP address or an https:// URL`,
		`dns: {nameservers: {global: {a: b}}}`:                         `dns.nameservers.global: must be a list of IP addresses or https URLs, got a section`,
		`dns: {nameservers: {global: [[1.1.1.1]]}}`:                    `dns.nameservers.global[0]: must be IP addresses or https URLs, got a list`,
		`dns: {nameservers: {split: [1.1.1.1]}}`:                       `dns.nameservers.split: must be a section of domains, each with a list of nameservers, got a list`,
		`dns: {nameservers: {split: {"a b": [1.1.1.1]}}}`:              `dns.nameservers.split: must be a domain`,
		`dns: {nameservers: {split: {a.b: [x]}}}`:                      `dns.nameservers.split.a.b[0]: must be an IP address`,
		`dns: {nameservers: {split: {a.b: [], A.B: []}}}`:              `dns.nameservers.split.a.b: is listed twice`,
		`dns: {extra_records: {name: a}}`:                              `dns.extra_records: must be a list of {name, type, value}, got a section`,
		`dns: {extra_records: [a]}`:                                    `dns.extra_records[0]: must be {name, type, value}, got text`,
		`dns: {extra_records: [{name: a, type: A}]}`:                   `dns.extra_records[0]: must have name, type and value`,
		`dns: {extra_records: [{name: a, type: A, ttl: 3}]}`:           `dns.extra_records[0]: must have name, type and value once each, got "ttl"`,
		`dns: {extra_records: [{name: a, type: CNAME, value: b}]}`:     `dns.extra_records[0].type: must be A or AAAA, got "CNAME"`,
		`dns: {extra_records: [{name: a, type: A, value: "::1"}]}`:     `dns.extra_records[0].value: must be an address that matches the type, got "::1"`,
		`dns: {extra_records: [{name: "*", type: A, value: 1.1.1.1}]}`: `dns.extra_records[0].name: must be a domain`,
	})
}

func TestAcceptedValues(t *testing.T) {
	for text, read := range map[string]struct {
		got  func(*Config) any
		want any
	}{
		"server_url: http://192.168.1.2:8080/":                                               {func(c *Config) any { return c.ServerURL }, "http://192.168.1.2:8080"},
		"listen_addr: :9000":                                                                 {func(c *Config) any { return c.ServerURL }, "http://localhost:9000"},
		"{tls_cert_path: /c, tls_key_path: /k}":                                              {func(c *Config) any { return c.ServerURL }, "https://localhost:8080"},
		"{listen_addr: a:0, metrics_listen_addr: a:0}":                                       {func(c *Config) any { return c.MetricsListenAddr }, "a:0"},
		"{listen_addr: 10.0.0.1:1, metrics_listen_addr: 10.0.0.2:1}":                         {func(c *Config) any { return c.MetricsListenAddr }, "10.0.0.2:1"},
		"database: {type: postgres, postgres: {host: 'a, b,'}}":                              {func(c *Config) any { return c.Database.Postgres.Hosts }, []string{"a", "b"}},
		"database: {type: postgres, postgres: {host: /run/pg}}":                              {func(c *Config) any { return c.Database.Postgres.Hosts }, []string{"/run/pg"}},
		"database: {postgres: {host: db}}":                                                   {func(c *Config) any { return c.Database.Type }, "postgres"},
		"database: {postgres: {pass: x}}":                                                    {func(c *Config) any { return c.Database.Postgres.Hosts }, []string{"localhost"}},
		"database: {type: sqlite3, postgres: {host: db}}":                                    {func(c *Config) any { return c.Database.Type }, "sqlite"},
		"database: {type: postgres}":                                                         {func(c *Config) any { return c.Database.Postgres.Hosts }, []string{"localhost"}},
		"database: {type: sqlite, postgres: {host: db}}":                                     {func(c *Config) any { return c.Database.Type }, "sqlite"},
		"database: {sqlite: {path: /d}}":                                                     {func(c *Config) any { return c.Database.Type }, "sqlite"},
		"database: {type: postgres, sqlite: {path: /d}, postgres: {pass: x}}":                {func(c *Config) any { return c.Database.Type }, "postgres"},
		"database: {postgres: {max_open_conns: 5, max_idle_conns: 10}}":                      {func(c *Config) any { return c.Database.Postgres.MaxIdleConns }, 5},
		"database: {type: postgres, postgres: {host: '::1'}}":                                {func(c *Config) any { return c.Database.Postgres.Hosts }, []string{"::1"}},
		"database: {type: sqlite, postgres: {ssl: true}}":                                    {func(c *Config) any { return c.Database.Postgres.SSLMode }, "require"},
		"database: {type: sqlite, postgres: {ssl: false}}":                                   {func(c *Config) any { return c.Database.Postgres.SSLMode }, "disable"},
		"database: {type: sqlite, postgres: {max_open_conns: 5}}":                            {func(c *Config) any { return c.Database.Postgres.MaxIdleConns }, 5},
		"database: {type: sqlite, postgres: {max_open_conns: 50}}":                           {func(c *Config) any { return c.Database.Postgres.MaxIdleConns }, 10},
		"dns: {base_domain: example.com}":                                                    {func(c *Config) any { return c.DNS.MagicDNS }, true},
		"dns: {base_domain: example.com, magic_dns: False}":                                  {func(c *Config) any { return c.DNS.MagicDNS }, false},
		minimal + "dns: {base_domain: tail.example.org}":                                     {func(c *Config) any { return c.DNS.BaseDomain }, "tail.example.org"},
		"policy: {path: /acl}":                                                               {func(c *Config) any { return c.Policy }, Policy{Mode: "file", Path: "/acl"}},
		"policy: {mode: file, path: ''}":                                                     {func(c *Config) any { return c.Policy }, Policy{Mode: "database"}},
		"policy: {mode: file}":                                                               {func(c *Config) any { return c.Policy }, Policy{Mode: "database"}},
		"dns: {nameservers: {global: [1.1.1.1]}}":                                            {func(c *Config) any { return c.DNS.Nameservers.Global }, []string{"1.1.1.1"}},
		"dns: {override_local_dns: true, nameservers: {global: [1.1.1.1]}}":                  {func(c *Config) any { return c.DNS.Nameservers.Global }, []string{"1.1.1.1"}},
		"dns: {override_local_dns: false, nameservers: {global: [1.1.1.1]}}":                 {func(c *Config) any { return c.DNS.Nameservers.Global }, []string{"1.1.1.1"}},
		"policy: {mode: database, path: /acl}":                                               {func(c *Config) any { return c.Policy }, Policy{Mode: "database"}},
		"derp: {urls: []}":                                                                   {func(c *Config) any { return c.DERP.Server.Enabled }, true},
		"derp: {urls: [https://relays.example/map]}":                                         {func(c *Config) any { return c.DERP.Server.Enabled }, false},
		"derp: {paths: [/relays.yaml]}":                                                      {func(c *Config) any { return c.DERP.Server.Enabled }, false},
		"derp: {server: {enabled: false}}":                                                   {func(c *Config) any { return c.DERP.Server.Enabled }, false},
		"derp: {paths: [/relays.yaml], server: {enabled: true}}":                             {func(c *Config) any { return c.DERP.Server.Enabled }, true},
		"noise: {private_key_path: /keys/noise.key}":                                         {func(c *Config) any { return c.DERP.Server.PrivateKeyPath }, "/keys/derp_server_private.key"},
		"derp: {server: {stun_listen_addr: ':3479'}}":                                        {func(c *Config) any { return c.DERP.Server.STUNPublicPort }, 3479},
		"ephemeral_node_inactivity_timeout: 5m":                                              {func(c *Config) any { return c.Node.Ephemeral.InactivityTimeout.String() }, "5m0s"},
		"node: {ephemeral: {inactivity_timeout: 9m}}\nephemeral_node_inactivity_timeout: 5m": {func(c *Config) any { return c.Node.Ephemeral.InactivityTimeout.String() }, "9m0s"},
	} {
		c, problems := load(t, text)
		if problems != "" {
			t.Errorf("%s: %s", text, problems)
			continue
		}
		if diff := cmp.Diff(read.want, read.got(c)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestProbesMustFitTheirInterval(t *testing.T) {
	refused(t, map[string]string{
		"node: {routes: {ha: {probe_interval: 1s, probe_timeout: 1s}}}": "node.routes.ha.probe_interval: must be 0 or at least 2s, got 1s",
		"node: {routes: {ha: {probe_interval: 3s}}}":                    "node.routes.ha.probe_interval: the timeout 3s must be less than the interval 3s",
		"node: {routes: {ha: {probe_timeout: 5s}}}":                     "node.routes.ha.probe_timeout: the timeout 5s must be less than the interval 5s",
		"node: {routes: {ha: {probe_timeout: 500ms}}}":                  "node.routes.ha.probe_timeout: must be at least 1s",
	})
	mustLoad(t, minimal+"node: {routes: {ha: {probe_interval: 0, probe_timeout: 5s}}}")
}

func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"": "server_url: not set; http://localhost:8080 only works on this machine: set the URL that clients use",
		minimal + "database: {postgres: {max_open_conns: 5, max_idle_conns: 10}}": "config.yaml:2: database.postgres.max_idle_conns: 10 is more than database.postgres.max_open_conns (5), which is used instead",
		minimal + "policy: {mode: database, path: /a}":                            "config.yaml:2: policy.path: ignored, because policy.mode is database",
		minimal + "policy: {mode: file, path: ''}":                                "config.yaml:2: policy.path: no policy file: all nodes can reach each other unless the database has a policy",
		"server_url: http://mesh.example.org":                                     "config.yaml: derp.server.enabled: clients connect to relays over TLS only",
		"server_url: http://mesh.example.org\nderp: {server: {enabled: true}}":    "config.yaml:2: derp.server.enabled: clients connect to relays over TLS only",
	} {
		c := mustLoad(t, text)
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].String(), want) || c.Warnings[0].Minor {
			t.Errorf("%q: got %v; want one warning with %q", text, c.Warnings, want)
		}
	}
}

// specified contains exactly the keys in the specification's table, with its example values.
const specified = `
server_url: https://mesh.example.org:443
listen_addr: 0.0.0.0:8080
metrics_listen_addr: 0.0.0.0:9090
database:
  postgres:
    pass: hunter2
    max_open_conns: 5
    max_idle_conns: 10
    conn_max_idle_time_secs: 3600
log:
  format: text
  level: info
node_update_check_interval: 30s
dns:
  magic_dns: true
  base_domain: mesh.internal
derp:
  urls: [https://relays.example.org/map.json]
  auto_update_enabled: true
  update_frequency: 24h
  server:
    enabled: true
    region_id: 999
    region_code: home
    stun_listen_addr: 0.0.0.0:3478
policy:
  mode: database
  path: /etc/fairlead/policy.json
`

func TestFileOfTheSpecificationsKeysIsComplete(t *testing.T) {
	c := mustLoad(t, specified)
	if c.Database.Type != "postgres" || !slices.Equal(c.Database.Postgres.Hosts, []string{"localhost"}) {
		t.Errorf("database %v", c.Database)
	}
	var warned []string
	for _, w := range c.Warnings {
		warned = append(warned, w.Key)
	}
	if diff := cmp.Diff([]string{"database.postgres.max_idle_conns", "policy.path"}, warned); diff != "" {
		t.Errorf("warnings about (-want +got):\n%s", diff)
	}
}

func TestDatabaseFollowsFromTheEnvironmentToo(t *testing.T) {
	c := mustLoad(t, minimal, "FAIRLEAD_DATABASE_POSTGRES_PASS=hunter2")
	if c.Database.Type != "postgres" {
		t.Errorf("type %s", c.Database.Type)
	}
	_, got := load(t, minimal+"database: {sqlite: {path: /d}}", "FAIRLEAD_DATABASE_POSTGRES_PASS=hunter2")
	if want := "FAIRLEAD_DATABASE_POSTGRES_PASS: database.postgres.pass: database.sqlite.path is also set"; !strings.Contains(got, want) {
		t.Errorf("got %q; want it to have %q", got, want)
	}
}
