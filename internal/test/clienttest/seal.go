package clienttest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// sealedGroup is the group that seal.sh confines to loopback.
const sealedGroup = 64123

//go:embed seal.sh
var sealScript string

// seal runs seal.sh.
func seal(ctx context.Context, args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", sealScript, "seal.sh"}, args...)...)
	var out, problem strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("confining clients to loopback: %w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// sealed returns the credentials of a process that can reach nothing but this
// host's loopback.
func sealed(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: a client on this host's network must be confined to loopback")
	}
	if _, err := seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Gid: sealedGroup}
}

// SealProcess confines this process, and every process it starts, to loopback. It is for programs
// that contain a client. Without root it does nothing: tests with such a program call RequireSealed before
// they start it.
func SealProcess() error {
	if os.Getuid() != 0 {
		return nil
	}
	if _, err := seal(context.Background()); err != nil {
		return err
	}
	return syscall.Setgid(sealedGroup)
}

// MayDownload exempts a go command, which may have to download modules or a toolchain, from SealProcess. It
// must not be used for a client.
func MayDownload(cmd *exec.Cmd) {
	if os.Getgid() == sealedGroup {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{}}
	}
}

// RequireSealed skips a test unless SealProcess has confined this process.
func RequireSealed(t testing.TB) {
	t.Helper()
	if os.Getgid() != sealedGroup {
		t.Skip("needs root: a program that contains a client must be confined to loopback")
	}
}
