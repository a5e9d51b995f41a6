//go:build !race

package movetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// headscaleVersion is the version that the tests move from.
const headscaleVersion = "v0.28.0"

// headscaleBinary builds Headscale, which takes minutes, and keeps it in the user's cache. Its go.mod has replace
// lines, so "go install" refuses it.
func headscaleBinary(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "fairlead-headscale", "headscale-"+strings.TrimPrefix(headscaleVersion, "v"))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	run := func(dir string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		clienttest.MayDownload(cmd)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
		var out, failed bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &failed
		if err := cmd.Run(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, failed.Bytes())
		}
		return out.Bytes()
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(run(t.TempDir(), "mod", "download", "-json", "github.com/juanfont/headscale@"+headscaleVersion), &module); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	built := path + ".unfinished"
	run(source, "build", "-trimpath", "-ldflags=-s -w", "-o", built, "./cmd/headscale")
	if err := os.Rename(built, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// server is a program that listens at addr.
type server struct {
	t    *testing.T
	addr string
	args []string
	cmd  *exec.Cmd
	log  *os.File
}

func (s *server) start() {
	s.t.Helper()
	log, err := os.CreateTemp(s.t.TempDir(), "log")
	if err != nil {
		s.t.Fatal(err)
	}
	s.log, s.cmd = log, exec.CommandContext(context.WithoutCancel(s.t.Context()), s.args[0], s.args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.stop()
		if text, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", s.args[0], text[max(0, len(text)-8000):])
		}
	})
	eventually(s.t, func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(s.t.Context(), "tcp", s.addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(30*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // it was told to stop
	kill.Stop()
	s.cmd = nil
}

// patience is a limit for what takes seconds unless the machine is busy.
const patience = 3 * time.Minute

// eventually waits until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v: %v", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// output runs a program and returns what it prints on standard output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// headscaleConfig is a configuration with an embedded relay. Everything listens on loopback.
func headscaleConfig(dir string, port int, ports [3]int) string {
	return fmt.Sprintf(`server_url: http://127.0.0.1:%[2]d
listen_addr: 127.0.0.1:%[2]d
metrics_listen_addr: 127.0.0.1:%[3]d
grpc_listen_addr: 127.0.0.1:%[4]d
disable_check_updates: true
noise: {private_key_path: %[1]s/noise.key}
prefixes: {v4: 100.64.0.0/10, v6: "fd7a:115c:a1e0::/48"}
derp:
  urls: []
  server:
    enabled: true
    region_id: 999
    region_code: headscale
    region_name: Headscale Embedded DERP
    stun_listen_addr: 127.0.0.1:%[5]d
    private_key_path: %[1]s/relay.key
    ipv4: 127.0.0.1
database: {type: sqlite, sqlite: {path: %[1]s/db.sqlite}}
dns: {magic_dns: true, base_domain: mesh.test, override_local_dns: false}
policy: {mode: database}
unix_socket: %[1]s/headscale.sock
`, dir, port, ports[0], ports[1], ports[2])
}

// fairleadConfig is the configuration of the server that takes over.
func fairleadConfig(dir string, port int, ports [3]int) string {
	return fmt.Sprintf(`server_url: http://127.0.0.1:%[2]d
listen_addr: 127.0.0.1:%[2]d
metrics_listen_addr: 127.0.0.1:%[3]d
noise: {private_key_path: %[1]s/noise.key}
derp:
  server:
    enabled: true
    region_id: 999
    region_code: headscale
    region_name: Headscale Embedded DERP
    stun_listen_addr: 127.0.0.1:%[4]d
    private_key_path: %[1]s/relay.key
    ipv4: 127.0.0.1
database: {type: sqlite, sqlite: {path: %[1]s/db.sqlite}}
dns: {magic_dns: true, base_domain: mesh.test}
unix_socket: %[1]s/fairlead.sock
`, dir, port, ports[0], ports[2])
}
