//go:build !race

package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

var headscale = flag.String("headscale", "", "the headscale program to measure too, with SQLite, of version 0.26 or newer")

// startHeadscale starts Headscale with its defaults and without a policy, so that all nodes see each other.
func startHeadscale(t *testing.T, binary, meshbench string) target {
	t.Helper()
	dir := t.TempDir()
	addr := porttest.Addr(t)
	config, relays := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "relays.yaml")
	for file, text := range map[string]string{
		config: fmt.Sprintf(`server_url: http://%s
listen_addr: %[1]s
metrics_listen_addr: %s
grpc_listen_addr: %s
disable_check_updates: true
noise: {private_key_path: %[4]s/noise.key}
derp: {urls: [], paths: [%s], server: {enabled: false}}
prefixes: {v4: 100.64.0.0/10, v6: "fd7a:115c:a1e0::/48"}
dns: {magic_dns: true, base_domain: load.test, override_local_dns: false}
database: {type: sqlite, sqlite: {path: %[4]s/db.sqlite, write_ahead_log: true}}
unix_socket: %[4]s/socket
unix_socket_permission: "0770"
log: {level: warn}
`, addr, porttest.Addr(t), porttest.Addr(t), dir, relays),
		relays: "regions: {999: {regionid: 999, regioncode: load, regionname: Load, nodes: [{name: 999a, regionid: 999, hostname: 127.0.0.1}]}}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log waittest.Transcript
	cmd := exec.CommandContext(t.Context(), binary, "-c", config, "serve")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed with the test's context
	waittest.Eventually(t, 30*time.Second, 100*time.Millisecond, func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/health", nil)
		if err != nil {
			return err
		}
		res, err := new(http.Client).Do(req)
		if err != nil {
			return fmt.Errorf("%w: %s", err, log.String())
		}
		return res.Body.Close()
	})
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), binary, append([]string{"-c", config}, args...)...).Output()
		if err != nil {
			t.Fatalf("headscale %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("users", "create", "load")
	return target{meshbench: meshbench, url: "http://" + addr, authKey: run("preauthkeys", "create", "-u", "1", "--reusable", "-e", "24h"), pid: cmd.Process.Pid}
}

// attempt runs scenarios like load, but with a server that may not finish them. It returns the outcomes without errors.
func (s target) attempt(t *testing.T, scenarios string, flags ...string) map[string]outcome {
	t.Helper()
	cmd, out, problem := s.start(t, append([]string{
		scenarios, "--url=" + s.url, "--auth-key=" + s.authKey, "--server-pid=" + strconv.Itoa(s.pid), "--joins=0", "--step-limit=5m",
	}, flags...)...)
	found := map[string]outcome{}
	for lines := json.NewDecoder(out); ; {
		var o outcome
		if lines.Decode(&o) != nil {
			break
		}
		if o.clean() {
			found[o.Scenario] = o
		} else {
			t.Logf("%s did not run clean: %+v", o.Scenario, o)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Logf("meshbench: %v\n%s", err, problem.Bytes())
	}
	return found
}
