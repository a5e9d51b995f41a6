package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// PgBouncer starts PgBouncer in front of a server and returns its port. Settings are lines of its configuration, such as
// "pool_mode = transaction". It stops at the end of the test.
func (s *Server) PgBouncer(t testing.TB, settings string) (port int) {
	t.Helper()
	port, release, err := porttest.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	file := filepath.Join(s.Dir, fmt.Sprintf("pgbouncer-%d.ini", port))
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n%s\n",
		s.Host, s.Port, s.User, s.Host, port, settings)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "pgbouncer", file)
	if err := s.as(cmd); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; install package pgbouncer", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("PgBouncer:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort(s.Host, strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return port
		}
		if time.Now().After(deadline) {
			t.Fatalf("PgBouncer does not listen: %v", err)
		}
	}
}
