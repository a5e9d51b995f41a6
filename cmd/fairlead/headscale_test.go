package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A Headscale configuration is the first thing that people migrating from Headscale try.
// The files are those of its releases, one per minor version, because patch releases do
// not change them.

// headscaleVersions are the versions whose example configuration starts the server.
func headscaleVersions() []string {
	return []string{"v0.23.0", "v0.24.2", "v0.25.1", "v0.26.1", "v0.27.1", "v0.28.0", "v0.29.2"}
}

// formerHeadscale is the newest version that used other names for its keys.
const formerHeadscale = "v0.22.3"

// downloadLimit allows for 50 MB over a slow connection.
const downloadLimit = 3 * time.Minute

// headscaleSources downloads the sources into the module cache and returns the directory
// of each version. They are neither compiled nor stored in the repository.
var headscaleSources = sync.OnceValues(func() (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, v := range append(headscaleVersions(), formerHeadscale) {
		args = append(args, "github.com/juanfont/headscale@"+v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), downloadLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, failure := cmd.Output() // fails if any download fails; the output says which
	found := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var module struct{ Version, Dir, Error string }
		if err := decoder.Decode(&module); err != nil {
			return nil, errors.Join(failure, err)
		}
		if module.Error != "" {
			failure = errors.Join(failure, errors.New(module.Error))
		}
		found[module.Version] = module.Dir
	}
	if failure != nil {
		return nil, fmt.Errorf("%w\n%s", failure, stderr.Bytes())
	}
	return found, nil
})

// stockConfig returns the path of the example configuration of a Headscale version.
func stockConfig(t *testing.T, version string) string {
	t.Helper()
	sources, err := headscaleSources()
	if err != nil {
		t.Fatalf("this test reads Headscale's example configurations with go mod download, which needs the module proxy or a filled module cache: %v", err)
	}
	return filepath.Join(sources[version], "config-example.yaml")
}

// ownPaths returns the only settings that override a stock file: paths, and the log
// format, because the tests parse the log.
func ownPaths(t *testing.T) settings {
	t.Helper()
	all, own := onSQLite(t), settings{}
	for _, key := range []string{"unix_socket", "database.sqlite.path", "noise.private_key_path", "derp.server.private_key_path", "log.format"} {
		own[key] = all[key]
	}
	return own
}

// offline runs a process in its own network namespace, with its own ports, a loopback
// interface and no other network.
func offline(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	return func(cmd *exec.Cmd) {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatalf("%v; install packages util-linux and iproute2", err)
		}
		cmd.Args = append([]string{"unshare", "--net", "--", "sh", "-c", `ip link set lo up && exec "$0" "$@"`}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = unshare
	}
}

const noPolicyFile = "policy.path: no policy file: all nodes can reach each other"

// Headscale's chapter on ACLs contains complete policies and single rules. Newer versions have a different
// chapter, whose examples omit definitions that they refer to.
func TestExamplePoliciesOfHeadscalePassTheCheck(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```json[^\n]*\n(\\{.*?)^```")
	for _, version := range []string{formerHeadscale, "v0.23.0", "v0.24.2", "v0.25.1", "v0.26.1", "v0.27.1", "v0.28.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			docs := filepath.Join(filepath.Dir(stockConfig(t, version)), "docs")
			text, err := os.ReadFile(filepath.Join(docs, "ref", "acls.md"))
			if errors.Is(err, fs.ErrNotExist) { // versions before 0.24
				text, err = os.ReadFile(filepath.Join(docs, "acls.md"))
			}
			if err != nil {
				t.Fatal(err)
			}
			checked := 0
			for _, found := range block.FindAllSubmatch(text, -1) {
				if !bytes.Contains(found[1], []byte(`"acls"`)) {
					continue
				}
				checked++
				file := filepath.Join(t.TempDir(), "policy.json")
				if err := os.WriteFile(file, found[1], 0o600); err != nil {
					t.Fatal(err)
				}
				r := command(t, settings{}, "policy", "check", file)
				if r.status != 0 {
					t.Errorf("exit status %d: %s", r.status, r.stderr)
				}
				if bytes.Contains(found[1], []byte("10.20.10.1/29")) {
					says(t, r.stderr, `warning: host webservers.internal is "10.20.10.1/29", which means the network 10.20.10.0/29`)
				}
			}
			if checked == 0 {
				t.Error("the chapter has no policy")
			}
		})
	}
}

func TestStockConfigurationsOfHeadscalePassTheCheck(t *testing.T) {
	t.Parallel()
	for _, version := range headscaleVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			file := stockConfig(t, version)
			r := command(t, settings{}, "config", "check", "--config", file)
			if r.status != 0 {
				t.Fatalf("exit status %d: %s", r.status, r.stderr)
			}
			says(t, r.stdout, "configuration ok: "+file, noPolicyFile)
			warnings := strings.Split(strings.TrimSpace(r.stdout), "\n")[1:]
			if len(warnings) > 8 {
				t.Errorf("%d warnings hide those that matter:\n%s", len(warnings), r.stdout)
			}
			important := func(line string) bool { return strings.Contains(line, noPolicyFile) }
			first := slices.IndexFunc(warnings, important)
			for _, line := range warnings[max(0, first):] {
				if !important(line) {
					t.Errorf("an important warning comes before %s", line)
				}
			}
		})
	}
}

// internal/config/testdata/headscale.yaml says what the server does about each key. It must list every key
// that Headscale reads, so that none is ignored without a warning.
func TestEveryKeyThatHeadscaleReadsIsListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../internal/config/testdata/headscale.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []struct{ Key, Since, Until string }
	if err := yaml.Unmarshal(text, &listed); err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`\b(?:viper\.(?:Get\w+|IsSet|SetDefault|UnmarshalKey|InConfig)|util\.GetFileMode|depr\.\w+)\(\s*"([a-z0-9_.]+)"(?:,\s*"([a-z0-9_]+[._][a-z0-9_.]+)")?`)
	for _, version := range append(headscaleVersions(), formerHeadscale) {
		dir := filepath.Join(filepath.Dir(stockConfig(t, version)), "hscontrol")
		source, err := os.ReadFile(filepath.Join(dir, "types", "config.go"))
		if errors.Is(err, fs.ErrNotExist) { // versions before 0.23
			source, err = os.ReadFile(filepath.Join(dir, "config.go"))
		}
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, found := range read.FindAllSubmatch(source, -1) {
			keys[string(found[1])], keys[string(found[2])] = true, true
		}
		for _, section := range []string{"", "dns", "dns_config", "noise"} {
			delete(keys, section)
		}
		minor := strings.TrimPrefix(version[:len("v0.22")], "v")
		for _, k := range listed {
			if k.Since <= minor && minor <= k.Until && !keys[k.Key] {
				t.Errorf("%s does not read %s", version, k.Key)
			}
			if k.Since <= minor && minor <= k.Until {
				delete(keys, k.Key)
			}
		}
		for key := range keys {
			t.Errorf("%s reads %s, which is not listed", version, key)
		}
	}
}

func TestStockConfigurationsOfHeadscaleStartWithoutAWayOut(t *testing.T) {
	t.Parallel()
	for _, version := range headscaleVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := start(t, ownPaths(t), offline(t), "serve", "--config", stockConfig(t, version))
			p.awaitReady(t)
			if p.api != "127.0.0.1:8080" || p.metrics != "127.0.0.1:9090" {
				t.Errorf("it listens on %s and %s, not where the file says", p.api, p.metrics)
			}
			eventually(t, func() error {
				if text := p.log.String(); !strings.Contains(text, "relay map not updated") || !strings.Contains(text, "https://controlplane.tailscale.com/derpmap/default: cannot connect") {
					return errors.New("the log does not say that the relay map is not reachable")
				}
				return nil
			})
			says(t, p.log.String(), noPolicyFile)
			says(t, p.client("").must(t, 200, "GET", "/health", ""), "no relay map loaded from derp.urls or derp.paths")
			// Without a policy file, the policy is stored in the database. This one uses the same features as
			// Headscale's examples.
			p.client("").must(t, 200, "PUT", "/api/v1/policy", `{"policy": "{\"hosts\": {\"web\": \"10.9.8.1/29\"}, \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"web:443\"]}]}"}`)
			p.stop(t)
		})
	}
}

func TestStockConfigurationLeavesTheDatabaseOfHeadscaleAlone(t *testing.T) {
	t.Parallel()
	newest := headscaleVersions()[len(headscaleVersions())-1]
	s := ownPaths(t)
	file := s["database.sqlite.path"]
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE migrations (id TEXT); CREATE TABLE users (id INTEGER); CREATE TABLE pre_auth_keys (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, filepath.Dir(file))
	p := start(t, s, offline(t), "serve", "--config", stockConfig(t, newest))
	if status := p.status(t, startLimit); status != 1 {
		t.Errorf("exit status %d", status)
	}
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	says(t, lines[len(lines)-1], "Error: ", "failed to open database: "+file+" has tables of Headscale", "nothing was changed", "Set database.sqlite.path to a new database")
	if diff := cmp.Diff(before, contents(t, filepath.Dir(file))); diff != "" {
		t.Errorf("the files of Headscale changed: %s", diff)
	}
}

// contents returns the files of a directory, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(text)
	}
	return found
}

func TestFormerConfigurationOfHeadscaleIsRefusedWithTheNewKeys(t *testing.T) {
	t.Parallel()
	r := command(t, settings{}, "config", "check", "--config", stockConfig(t, formerHeadscale))
	if r.status != 1 {
		t.Errorf("exit status %d", r.status)
	}
	var refused []string
	for _, line := range strings.Split(strings.TrimSpace(r.stderr), "\n")[1:] {
		_, rest, _ := strings.Cut(line, "config-example.yaml:")
		_, rest, _ = strings.Cut(rest, ": ")
		refused = append(refused, rest)
	}
	want := []string{
		"private_key_path: was removed in Headscale 0.23; remove the key. Clients identify the server by noise.private_key_path",
		"ip_prefixes: was replaced in Headscale 0.23; use prefixes.v4 and prefixes.v6",
		"db_type: was replaced in Headscale 0.23; use database.type, with sqlite instead of sqlite3",
		"db_path: was replaced in Headscale 0.23; use database.sqlite.path",
		"acl_policy_path: was replaced in Headscale 0.23; use policy.path",
		"dns_config: was replaced in Headscale 0.23; use dns, with nameservers as nameservers.global, restricted_nameservers as nameservers.split and domains as search_domains",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("%s\n%s", diff, r.stderr)
	}
}
