package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForeignKeyIsIgnoredWithAWarning(t *testing.T) {
	for text, want := range map[string]struct {
		warning string
		minor   bool
	}{
		"disable_check_updates: false":                         {"disable_check_updates: ignored: the server never checks for updates", true},
		"logtail: {enabled: false}":                            {"logtail.enabled: " + alreadySo, true},
		"logtail: {enabled: true}":                             {"logtail.enabled: ignored: the server never makes clients upload logs", false},
		"database: {gorm: {prepare_stmt: 1}}":                  {"database.gorm: ignored: the server tunes its database automatically", true},
		"ephemeral_node_inactivity_timeout: 5m":                {"ephemeral_node_inactivity_timeout: is now called node.ephemeral.inactivity_timeout", true},
		"cli: {address: a.example, api_key: " + password + "}": {"cli: ignored: set FAIRLEAD_CLI_SERVER", true},
		"tuning: {batch_change_delay: 800ms}":                  {"tuning: ignored: there are no tuning settings", true},
		"dns: {use_username_in_magic_dns: false}":              {"dns.use_username_in_magic_dns: " + alreadySo, true},
		"dns: {use_username_in_magic_dns: true}":               {"dns.use_username_in_magic_dns: ignored: node names never contain", false},
		"derp: {server: {stun: {enabled: false}}}":             {"derp.server.stun.enabled: ignored: the embedded relay always answers STUN", false},
		"oidc: {only_start_if_oidc_is_available: true}":        {"oidc.only_start_if_oidc_is_available: ignored: the server starts without the provider", false},
		"oidc: {expiry: 180d}":                                 {"oidc.expiry: ignored: set node.expiry", false},
		"oidc: {strip_email_domain: true}":                     {"oidc.strip_email_domain: ignored: users are named", true},
		"oidc: {map_legacy_users: true}":                       {"oidc.map_legacy_users: ignored: a person is found by issuer and subject only", false},
		"oidc: {pkce: {method: plain}}":                        {"oidc.pkce.method: ignored: PKCE always uses S256", false},
		"unix_socket_permission: '0770'":                       {"unix_socket_permission: " + alreadySo, true},
		"unix_socket_permission: 0o777":                        {"unix_socket_permission: ignored: the socket has mode 0770", false},
	} {
		c := mustLoad(t, minimal+text)
		if len(c.Warnings) != 1 {
			t.Errorf("%q: got %v; want one warning", text, c.Warnings)
			continue
		}
		w := c.Warnings[0]
		if !strings.HasPrefix(w.String(), "config.yaml:2: "+want.warning) || w.Minor != want.minor {
			t.Errorf("%q: got %q, minor %t; want %q, %t", text, w, w.Minor, want.warning, want.minor)
		}
		if strings.Contains(w.String(), password) {
			t.Errorf("%q: %q shows the secret", text, w)
		}
	}
	if c := mustLoad(t, minimal+"oidc:\nlogtail:"); len(c.Warnings) > 0 {
		t.Errorf("got %v about keys that are not set or change nothing", c.Warnings)
	}
}

func TestForeignKeyThatProtectsSomethingIsRefused(t *testing.T) {
	refused(t, map[string]string{
		"unix_socket_permission: '0700'":       "unix_socket_permission: the socket has mode 0770, so every member of its group is an administrator",
		"unix_socket_permission: 0o600":        "unix_socket_permission: the socket has mode 0770",
		"unix_socket_permission: rwx":          "unix_socket_permission: the socket has mode 0770",
		"ephemeral_node_inactivity_timeout: 5": "config.yaml:1: node.ephemeral.inactivity_timeout: must be a duration",
	})
}

func TestFormerKeyNamesItsReplacement(t *testing.T) {
	refused(t, map[string]string{
		"private_key_path: /p.key":             "private_key_path: was removed in Headscale 0.23; remove the key. Clients identify the server by noise.private_key_path",
		"ip_prefixes: [100.64.0.0/10]":         "ip_prefixes: was replaced in Headscale 0.23; use prefixes.v4 and prefixes.v6",
		"db_type: sqlite3":                     "db_type: was replaced in Headscale 0.23; use database.type, with sqlite instead of sqlite3",
		"db_path: /db.sqlite":                  "db_path: was replaced in Headscale 0.23; use database.sqlite.path",
		"db_pass: " + password:                 "db_pass: was replaced in Headscale 0.23; use database.postgres.pass",
		"acl_policy_path: ''":                  "acl_policy_path: was replaced in Headscale 0.23; use policy.path",
		"dns_config: {nameservers: [1.1.1.1]}": "dns_config: was replaced in Headscale 0.23; use dns, with nameservers as nameservers.global",
	})
}

// The warnings that matter come last, after those about ignored keys.
func TestWarningsAboutIgnoredKeysAreFoldedAndComeFirst(t *testing.T) {
	c := mustLoad(t, `server_url: https://mesh.example.org
policy: {mode: file, path: ""}
disable_check_updates: true
database:
  debug: false
  gorm: {prepare_stmt: true}
  sqlite: {write_ahead_log: true, wal_autocheckpoint: 1000}
grpc_listen_addr: :50443
grpc_allow_insecure: false
logtail: {enabled: false}
taildrop: {enabled: true}
`)
	var got []string
	for _, w := range c.Warnings {
		line, _, _ := strings.Cut(w.String(), ": ignored")
		got = append(got, line)
	}
	want := []string{
		"config.yaml:3: disable_check_updates",
		"config.yaml:5: database.debug, database.gorm, database.sqlite.write_ahead_log, database.sqlite.wal_autocheckpoint",
		"config.yaml:8: grpc_listen_addr, grpc_allow_insecure",
		"config.yaml:10: logtail.enabled",
		"config.yaml:2: policy.path: no policy file: all nodes can reach each other unless the database has a policy. Set policy.path, or remove policy.mode to store the policy in the database",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
