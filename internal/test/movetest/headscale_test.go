//go:build !race

package movetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// TestHeadscaleIsWhatItSays builds Headscale, if that has not been done.
func TestHeadscaleIsWhatItSays(t *testing.T) {
	if out := output(t, headscaleBinary(t, *version), "version"); out == "" {
		t.Error("Headscale prints no version")
	}
}

// headscaleBinary builds a version of Headscale, which takes minutes, and keeps it in the user's cache. Its go.mod has
// replace lines, so "go install" refuses it.
func headscaleBinary(t *testing.T, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "fairlead-headscale")
	path := filepath.Join(dir, "headscale-"+strings.TrimPrefix(version, "v"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // another process may be building it
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	run := func(dir string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		clienttest.MayDownload(cmd)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
		var out, failed bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &failed
		if err := cmd.Run(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, failed.Bytes())
		}
		return out.Bytes()
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(run(t.TempDir(), "mod", "download", "-json", "github.com/juanfont/headscale@"+version), &module); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	built := path + ".unfinished"
	build := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", built}
	if os.Getenv("CI") != "" { // as with QUICKLY in the Makefile
		build = append(build, "-gcflags=all=-dwarf=false -N -l")
	}
	run(source, append(build, "./cmd/headscale")...)
	if err := os.Rename(built, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// release is a version of Headscale: how it is configured and administered.
type release struct {
	t      *testing.T
	minor  int // 28 for 0.28
	binary string
	dir    string // its files
}

func newRelease(t *testing.T, version, dir string) *release {
	t.Helper()
	minor, err := strconv.Atoi(strings.Split(version, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	return &release{t, minor, headscaleBinary(t, version), dir}
}

func (r *release) configFile() string { return filepath.Join(r.dir, "config.yaml") }

// maps is the directory to which it writes all maps that it sends.
func (r *release) maps() string { return filepath.Join(r.dir, "maps") }

// environment returns the variables that it needs to write maps, and 0.22 to send SSH rules.
func (r *release) environment() []string {
	return []string{"HEADSCALE_DEBUG_DUMP_MAPRESPONSE_PATH=" + r.maps(), "HEADSCALE_EXPERIMENTAL_FEATURE_SSH=1"}
}

// records are DNS records, which each server reads from a file.
const records = `[{"name": "printer.mesh.test", "type": "A", "value": "192.0.2.9"}]`

// hasRecordsFile reports whether it knows the setting dns.extra_records_path.
func (r *release) hasRecordsFile() bool { return r.minor >= 24 }

// configure writes the configuration, with an embedded relay.
func (r *release) configure(url, address string, db database) {
	r.t.Helper()
	text := fmt.Sprintf(`server_url: %s
listen_addr: 127.0.0.1:%d
metrics_listen_addr: 127.0.0.1:9090
grpc_listen_addr: 127.0.0.1:50443
disable_check_updates: true
noise: {private_key_path: %[3]s/noise.key}
derp:
  urls: []
  paths: []
  server:
    enabled: true
    region_id: 999
    region_code: headscale
    region_name: Headscale Embedded DERP
    stun_listen_addr: 0.0.0.0:3478
    private_key_path: %[3]s/relay.key
    ipv4: %[4]s
unix_socket: %[3]s/socket
unix_socket_permission: "0770"
ephemeral_node_inactivity_timeout: 30m
log: {level: info}
`, url, headscalePort, r.dir, address)
	if r.minor == 22 {
		text += "private_key_path: " + r.dir + "/legacy.key\nip_prefixes: [100.64.0.0/10, \"fd7a:115c:a1e0::/48\"]\n" +
			"dns_config: {magic_dns: true, base_domain: " + baseDomain + ", nameservers: [203.0.113.53]}\nacl_policy_path: " + r.policyFile() + "\n"
		if db.socket == "" {
			text += "db_type: sqlite3\ndb_path: " + r.dir + "/db.sqlite\n"
		} else {
			text += fmt.Sprintf("db_type: postgres\ndb_host: %s\ndb_port: %d\ndb_name: %s\ndb_user: %s\ndb_ssl: false\n", db.socket, db.port, db.name, db.user)
		}
	} else {
		text += "prefixes: {v4: 100.64.0.0/10, v6: \"fd7a:115c:a1e0::/48\"}\ndns: {magic_dns: true, base_domain: " + baseDomain + ", override_local_dns: false"
		if r.hasRecordsFile() {
			text += ", extra_records_path: " + write(r.t, filepath.Join(r.dir, "records.json"), records)
		}
		text += "}\n"
		text += "policy: {mode: database}\n" + db.yaml(r.dir)
	}
	write(r.t, r.configFile(), text)
	if r.minor == 22 {
		write(r.t, r.policyFile(), policy(r.minor))
	}
}

func (r *release) policyFile() string { return filepath.Join(r.dir, "policy.json") }

// run runs a command of Headscale.
func (r *release) run(args ...string) string {
	r.t.Helper()
	return output(r.t, r.binary, append([]string{"-c", r.configFile(), "--force"}, args...)...)
}

// setPolicy stores the policy, unless the configuration names its file.
func (r *release) setPolicy() {
	r.t.Helper()
	if r.minor > 22 {
		r.run("policy", "set", "-f", write(r.t, r.policyFile(), policy(r.minor)))
	}
}

// user returns how commands name the users ann, the first, and bob, the second.
func (r *release) user(name string) string {
	switch {
	case r.minor < 26:
		return name
	case name == "ann":
		return "1"
	}
	return "2"
}

// key creates a pre-auth key of a user.
func (r *release) key(user string, flags ...string) string {
	r.t.Helper()
	return r.run(append([]string{"preauthkeys", "create", "-u", r.user(user), "-e", "24h"}, flags...)...)
}

// approve approves all routes that a node advertises.
func (r *release) approve(id string, routes ...string) {
	r.t.Helper()
	if r.minor >= 26 {
		r.run("nodes", "approve-routes", "-i", id, "-r", strings.Join(routes, ","))
		return
	}
	var list []struct {
		ID      uint64 `json:"id"`
		Prefix  string `json:"prefix"`
		Enabled bool   `json:"enabled"`
	}
	eventually(r.t, func() error {
		text := r.run("routes", "list", "-i", id, "-o", "json")
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) < len(routes) {
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	})
	for _, route := range list {
		if !route.Enabled {
			r.run("routes", "enable", "-r", strconv.FormatUint(route.ID, 10))
		}
	}
}
