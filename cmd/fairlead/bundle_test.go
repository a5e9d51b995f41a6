package main_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A support bundle is sent to strangers, so it is searched for every secret that the
// server, its database and its operator have.
func TestBundleHasNoSecret(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s settings) {
		const password = "correct-horse-battery-staple"
		if s["database.type"] == "sqlite" {
			s = s.with("database.postgres.pass", password)
		}
		p := serve(t, s)
		mustCommand(t, s, "users", "create", "alice")
		preAuth := strings.TrimSpace(mustCommand(t, s, "preauthkeys", "create", "--user", "alice", "--reusable"))
		apiKey := newKey(t, s)
		p.client("").must(t, 200, "POST", "/api/v1/machine", registration(preAuth, "laptop"))
		policy := filepath.Join(t.TempDir(), "policy.hujson")
		if err := os.WriteFile(policy, []byte(`{"acls": [], "hosts": {"secret-plan": "10.9.8.7"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		mustCommand(t, s, "policy", "set", policy)
		hook := strings.TrimSpace(mustCommand(t, s, "webhooks", "create", "https://hooks.example.com/in/to-ken-in-the-path"))
		noise, err := os.ReadFile(s["noise.private_key_path"])
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		privateKey := strings.TrimPrefix(strings.TrimSpace(string(noise)), "privkey:")
		log := filepath.Join(t.TempDir(), "log")
		text := fmt.Sprintf("%s\nevil line with %s, %s, %s, %s and privkey:%s\n", p.log, hook, preAuth, apiKey, s["database.postgres.pass"], privateKey)
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		secrets := map[string]string{
			"pre-auth key": preAuth[len("flp_aaaaaaaaaaaa_"):], "API key": apiKey[len("flk_aaaaaaaaaaaa_"):], "policy": "secret-plan",
			"database password": s["database.postgres.pass"], "private key": privateKey,
			"webhook secret": hook[len("flw_"):], "webhook address": "to-ken-in-the-path",
		}
		local := s.with("metrics_listen_addr", p.metrics)
		away := settings{"unix_socket": "/nowhere"}
		for name, files := range map[string]map[string]string{
			"local": bundle(t, local, "--log-file", log),
			"away":  bundle(t, away, "--server", "http://"+p.api, "--api-key", apiKey, "--log-file", log),
		} {
			if len(files) < 10 || !strings.Contains(files["fairlead/nodes.json"], "laptop") || !strings.Contains(files["fairlead/log.txt"], "evil line") {
				t.Errorf("%s: %d files, README:\n%s", name, len(files), files["fairlead/README.txt"])
			}
			if name == "local" && !strings.Contains(files["fairlead/metrics.txt"], "mesh_nodes_total 1") {
				t.Errorf("metrics:\n%s", files["fairlead/README.txt"])
			}
			for what, secret := range secrets {
				if secret == "" || name == "away" && what == "database password" { // unknown to that command
					continue
				}
				for file, text := range files {
					if strings.Contains(text, secret) {
						t.Errorf("%s: the %s is in %s", name, what, file)
					}
				}
			}
		}
		if text := bundle(t, local, "--with-policy")["fairlead/policy.hujson"]; !strings.Contains(text, "secret-plan") {
			t.Errorf("--with-policy has %q", text)
		}
	})
}

// bundle creates a support bundle and unpacks it.
func bundle(t *testing.T, s settings, args ...string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	mustCommand(t, s, append([]string{"debug", "bundle", "--file", file}, args...)...)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(compressed); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}
