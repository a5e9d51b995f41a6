package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// headscaleKey is a key of Headscale's configuration, as testdata/headscale.yaml describes it.
type headscaleKey struct {
	Key, Since, Until string
	Then              string // honoured, warning or refused
	Value             yaml.Node
	Text              string // of the warning or the error
	With              map[string]yaml.Node
}

func headscaleKeys(t *testing.T) []headscaleKey {
	t.Helper()
	text, err := os.ReadFile("testdata/headscale.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []headscaleKey
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// nested returns a file that sets keys, which are written with dots.
func nested(t *testing.T, keys map[string]yaml.Node) string {
	t.Helper()
	root := map[string]any{}
	for path, value := range keys {
		section := root
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			if section[p] == nil {
				section[p] = map[string]any{}
			}
			section = section[p].(map[string]any)
		}
		section[parts[len(parts)-1]] = &value
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A key is honoured if it changes the value of the key with the same name, without a warning.
func TestEveryKeyOfHeadscaleIsHonouredExplainedOrRefused(t *testing.T) {
	for _, k := range headscaleKeys(t) {
		t.Run(k.Key, func(t *testing.T) {
			base := map[string]yaml.Node{"server_url": *scalarNode("https://mesh.example.org")}
			for path, value := range k.With {
				base[path] = value
			}
			if k.Key == "server_url" {
				delete(base, k.Key)
			}
			without, _ := load(t, nested(t, base))
			base[k.Key] = k.Value
			c, problems := load(t, nested(t, base))
			if k.Then == "refused" {
				if !strings.Contains(problems, k.Text) {
					t.Errorf("got %q; want %q", problems, k.Text)
				}
				return
			}
			if problems != "" {
				t.Fatal(problems)
			}
			warning := ""
			for _, w := range c.Warnings {
				if strings.HasPrefix(k.Key, w.Key) {
					warning = w.Text
				}
			}
			if k.Then == "warning" {
				if !strings.Contains(warning, k.Text) || k.Text == "" {
					t.Errorf("got the warning %q; want %q", warning, k.Text)
				}
				return
			}
			if warning != "" {
				t.Errorf("got the warning %q", warning)
			}
			if line := lineOf(c, k.Key); line == "" || without != nil && line == lineOf(without, k.Key) && !strings.Contains(line, redacted) {
				t.Errorf("the value has no effect: %q", line)
			}
		})
	}
}

// lineOf returns the value of a key, or "" if the configuration has no such key.
func lineOf(c *Config, path string) string {
	for line := range strings.Lines(c.String()) {
		if rest, ok := strings.CutPrefix(line, path+": "); ok {
			return rest
		}
	}
	return ""
}

// These files are put together from the keys of Headscale's documentation, as people combine them.
//
// long: the files.
func TestRealisticFilesOfHeadscaleNeedOnlyWhatIsSaid(t *testing.T) {
	for name, file := range map[string]struct {
		text string
		want []string // the errors, or else the warnings that are not minor
	}{
		"0.22 at home": {
			`server_url: https://hs.example.org:443
listen_addr: 0.0.0.0:443
noise: {private_key_path: /var/lib/headscale/noise_private.key}
private_key_path: /var/lib/headscale/private.key
ip_prefixes: [fd7a:115c:a1e0::/48, 100.64.0.0/10]
db_type: sqlite3
db_path: /var/lib/headscale/db.sqlite
tls_letsencrypt_hostname: hs.example.org
tls_letsencrypt_listen: ":http"
dns_config: {override_local_dns: true, nameservers: [1.1.1.1], magic_dns: true, base_domain: home.example.org}
`, []string{"private_key_path", "ip_prefixes", "db_type", "db_path", "dns_config"},
		},
		"0.25 with PostgreSQL and a provider, behind a proxy": {
			`server_url: https://vpn.example.org
listen_addr: 127.0.0.1:8080
metrics_listen_addr: 127.0.0.1:9090
grpc_listen_addr: 127.0.0.1:50443
noise: {private_key_path: /var/lib/headscale/noise_private.key}
prefixes: {v4: 100.64.0.0/10, v6: fd7a:115c:a1e0::/48, allocation: sequential}
derp: {server: {enabled: true, region_id: 999, stun_listen_addr: 0.0.0.0:3478, ipv4: 198.51.100.1}, urls: []}
database: {type: postgres, postgres: {host: db, port: 5432, name: headscale, user: headscale, pass: hunter2, ssl: false}}
ephemeral_node_inactivity_timeout: 30m
policy: {mode: file, path: /etc/headscale/acl.hujson}
dns: {magic_dns: true, base_domain: corp.example.net, nameservers: {global: [9.9.9.9], split: {corp.example.org: [10.0.0.53]}}}
oidc:
  only_start_if_oidc_is_available: true
  issuer: https://id.example.org
  client_id: headscale
  client_secret: hunter2
  expiry: 30d
  allowed_domains: [example.org]
  strip_email_domain: true
unix_socket_permission: "0770"
`, []string{"oidc.only_start_if_oidc_is_available", "oidc.expiry"},
		},
		"0.28 in Docker, with records in a file": {
			`server_url: https://hs.example.org
listen_addr: 0.0.0.0:8080
noise: {private_key_path: /var/lib/headscale/noise_private.key}
prefixes: {v4: 100.64.0.0/10, v6: fd7a:115c:a1e0::/48, allocation: random}
database: {type: sqlite, sqlite: {path: /var/lib/headscale/db.sqlite, write_ahead_log: true}}
dns: {magic_dns: true, base_domain: lan.example.org, override_local_dns: false, nameservers: {global: [1.1.1.1]}, extra_records_path: /etc/headscale/records.json}
policy: {mode: database}
taildrop: {enabled: false}
randomize_client_port: true
logtail: {enabled: false}
`, nil,
		},
		"0.29 with redundant routers": {
			`server_url: https://hs.example.org
noise: {private_key_path: /var/lib/headscale/noise_private.key}
trusted_proxies: [127.0.0.1]
node: {expiry: 180d, ephemeral: {inactivity_timeout: 30m}, routes: {ha: {probe_interval: 10s, probe_timeout: 5s}}}
auto_update: {enabled: false}
policy: {mode: file, path: ""}
tuning: {node_store_batch_size: 100}
`, []string{"policy.path"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(file.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Load(path, nil)
			var problems Problems
			errors.As(err, &problems)
			if c != nil {
				for _, w := range c.Warnings {
					if !w.Minor {
						problems = append(problems, w)
					}
				}
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Key)
			}
			if diff := cmp.Diff(file.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, problems)
			}
		})
	}
}

func TestVariablesOfHeadscaleAreReported(t *testing.T) {
	c := mustLoad(t, minimal, "HEADSCALE_LOG_LEVEL=debug", "HEADSCALE_TUNING_BATCHER_WORKERS=2", "HEADSCALE_OIDC_CLIENT_SECRET="+password,
		"HEADSCALE_CONFIG=/etc/headscale/config.yaml", "HEADSCALE_PORT=tcp://10.0.0.1:80", "HEADSCALE_DNS_MAGIC_DNS=")
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.String())
	}
	want := "HEADSCALE_LOG_LEVEL: ignored; set FAIRLEAD_LOG_LEVEL instead\nHEADSCALE_OIDC_CLIENT_SECRET: ignored; set FAIRLEAD_OIDC_CLIENT_SECRET instead"
	if strings.Join(got, "\n") != want {
		t.Errorf("got %q", got)
	}
}
