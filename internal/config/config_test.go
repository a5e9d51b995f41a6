package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const password = "correct-horse"

func TestSecretIsNeverShown(t *testing.T) {
	c := mustLoad(t, minimal+"database: {type: postgres, postgres: {host: db, pass: "+password+"}}")
	if string(c.Database.Postgres.Pass) != password {
		t.Fatal("the password was not read")
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(h).Info("configuration", "config", c, "value", *c, "pass", c.Database.Postgres.Pass)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]string{
		"String": c.String(), "log": logged.String(), "JSON": string(asJSON), "YAML": string(asYAML),
		"%v": fmt.Sprintf("%v", *c), "%+v": fmt.Sprintf("%+v", *c), "%#v": fmt.Sprintf("%#v", *c),
		"%q": fmt.Sprintf("%q", c.Database.Postgres.Pass), "%x": fmt.Sprintf("%x", c.Database.Postgres.Pass),
	} {
		if strings.Contains(shown, password) || strings.Contains(shown, fmt.Sprintf("%x", password)) {
			t.Errorf("%s shows the password: %s", name, shown)
		}
		if name != "%x" && !strings.Contains(shown, redacted) {
			t.Errorf("%s does not say that something is hidden: %s", name, shown)
		}
	}
}

func TestProblemsNeverQuoteSecrets(t *testing.T) {
	for _, text := range []string{
		"database: {postgres: {pass: [correct-horse]}}",
		"database: {postgres: {pass: {a: correct-horse}}}",
		"database:\n  postgres:\n    pass: *correct-horse\n",
		"database:\n  postgres:\n    pass: @correct-horse\n",
		"database:\n  postgres:\n    pass: \"correct-horse\n",
		"database:\n  postgres:\n    pass:correct-horse\n",
		"database:\n  postgres: correct-horse\n",
		"correct-horse",
		"database: {type: postgres, postgres: {host: 'postgres://fairlead:correct-horse@db/fairlead'}}",
		"database: {type: postgres, postgres: {host: 'host=db password=correct-horse'}}",
		"database: {type: postgres, postgres: {host: 'fairlead:correct-horse'}}",
		"server_url: https://me:correct-horse@mesh.example.org",
		"derp: {urls: ['https://me:correct-horse@relays.example']}",
		"dns: {nameservers: {global: ['https://me:correct-horse@dns.example']}}",
	} {
		_, got := load(t, text)
		if got == "" || strings.Contains(got, password) {
			t.Errorf("%q: got %q; want a problem without the secret", text, got)
		}
	}
}

func TestStringListsEveryKeyAsYAML(t *testing.T) {
	c := mustLoad(t, minimal)
	listed := map[string]any{}
	if err := yaml.Unmarshal([]byte(c.String()), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != len(keysOf(c)) {
		t.Errorf("%d of %d keys listed", len(listed), len(keysOf(c)))
	}
	for key, want := range map[string]any{"server_url": "https://mesh.example.org", "log.level": "info", "node_update_check_interval": "10s", "database.postgres.port": 5432} {
		if listed[key] != want {
			t.Errorf("%s is listed as %v; want %v", key, listed[key], want)
		}
	}
}

func TestHashMovesOnlyWithSharedSettings(t *testing.T) {
	base := minimal + "dns: {base_domain: tail.example}\n"
	hash := func(text string) string { return mustLoad(t, text).Hash() }
	for _, same := range []string{
		"listen_addr: 127.0.0.1:1\n", "log: {level: debug, format: json}\n", "unix_socket: /tmp/s\n", "noise: {private_key_path: /n}\n",
		"database: {type: postgres, postgres: {host: db, pass: x}}\n", "trusted_proxies: [10.0.0.1]\n", "derp: {server: {region_id: 900}}\n",
		"prefixes: {allocation: sequential}\n",
	} {
		if hash(base) != hash(base+same) {
			t.Errorf("%q moves the hash", same)
		}
	}
	seen := map[string]string{hash(base): "base"}
	for _, other := range []string{
		"prefixes: {v4: 100.70.0.0/16}\n", "prefixes: {allocation: random}\n", "node: {expiry: 90d}\n", "policy: {path: /acl}\n",
		"derp: {urls: [https://a.example]}\n", "derp: {paths: [/a]}\n", "derp: {urls: ['https://a.example', 'https://b.example']}\n", "history: {retention: 30d}\n",
		"api_compat_version: 0.29.0\n", "node: {ephemeral: {inactivity_timeout: 1h}}\n",
	} {
		h := hash(base + other)
		if seen[h] != "" {
			t.Errorf("%q has the hash of %q", other, seen[h])
		}
		seen[h] = other
	}
	// server_url does not affect the hash: each replica may have its own, for its relay.
	if a, b := hash("server_url: https://a.example"), hash("server_url: https://b.example"); a != b {
		t.Error("server_url moves the hash")
	}
}

func TestReportNamesFileAndWarnings(t *testing.T) {
	c := &Config{File: "/etc/fairlead/config.yaml", Warnings: []Problem{{File: "/etc/fairlead/config.yaml", Line: 3, Key: "logtail", Text: "ignored"}}}
	want := "configuration ok: /etc/fairlead/config.yaml\n  warning: /etc/fairlead/config.yaml:3: logtail: ignored\n"
	if got := c.Report(); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	if got := (&Config{}).Report(); !strings.HasPrefix(got, "configuration ok: no file") {
		t.Errorf("got %q", got)
	}
}

func TestEachPostgresHostMayHaveItsOwnPort(t *testing.T) {
	c := mustLoad(t, minimal+"database: {type: postgres, postgres: {port: 5433, host: ['db1:6000', db2, '::1', '[fd00::2]:6001', /run/pg]}}")
	want := []string{"db1:6000", "db2:5433", "[::1]:5433", "[fd00::2]:6001", "/run/pg:5433"}
	if got := c.Database.Postgres.Addresses(); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	for _, bad := range []string{"db:0", "db:70000", "db:pg", ":5432", "[db]", "a:b:5432"} {
		if _, problems := load(t, minimal+"database: {type: postgres, postgres: {host: '"+bad+"'}}"); problems == "" {
			t.Errorf("%s is accepted", bad)
		}
	}
}
