//go:build !race

package packagetest

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	plain = "debian:bookworm-slim" // has no systemd
)

// machine is a container. The packages are under /packages.
type machine struct {
	t    *testing.T
	name string
}

// start starts a machine whose first process does nothing.
func start(t *testing.T, image string) machine {
	t.Helper()
	return run(t, image, []string{"--init"}, "sleep", "infinity")
}

// startSystemd starts a machine and waits until its systemd is up. The machine may mount file systems, which
// systemd needs for the sandbox of a service, but has no network.
func startSystemd(t *testing.T) machine {
	t.Helper()
	m := run(t, image, []string{
		"--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined",
		"--cgroupns=private", "--tmpfs=/run", "--tmpfs=/run/lock", "--tmpfs=/tmp:exec", "--env=container=docker",
	}, "sh", "-c", "mount -o remount,rw /sys/fs/cgroup 2>/dev/null; exec /lib/systemd/systemd")
	m.eventually("systemctl is-system-running | grep -Ex 'running|degraded'")
	return m
}

func run(t *testing.T, image string, options []string, command ...string) machine {
	t.Helper()
	args := append([]string{"run", "--detach", "--rm", "--network=none", "--volume=" + built + ":/packages:ro"}, options...)
	out, err := docker(t.Context(), append(append(args, image), command...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := machine{t, out}
	t.Cleanup(func() {
		if out, err := docker(context.Background(), "rm", "--force", m.name); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return m
}

// sh runs a script and returns its output.
func (m machine) sh(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (m machine) try(script string) (string, error) {
	return docker(m.t.Context(), "exec", m.name, "sh", "-euc", script)
}

// says fails the test unless a script prints the given text.
func (m machine) says(script, want string) {
	m.t.Helper()
	if got := m.sh(script); got != want {
		m.t.Errorf("%s: got %q, want %q", script, got, want)
	}
}

// eventually runs a script until it succeeds.
func (m machine) eventually(script string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := m.try(script)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			m.t.Fatalf("%s: not within a minute: %v\n%s", script, err, out)
		case <-tick.C:
		}
	}
}

func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
