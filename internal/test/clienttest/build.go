package clienttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The oldest and the newest version that the server supports.
const (
	Oldest = "v1.74.1"
	Newest = "v1.102.5"
)

// Versions returns the versions that represent all supported ones, oldest first.
func Versions() []string { return []string{Oldest, "v1.80.3", "v1.90.9", "v1.96.5", Newest} }

// Build returns the directory with tailscale and tailscaled of a version, such as v1.102.5. They are built
// the first time, which takes minutes, and kept in the user's cache for all later test processes.
func Build(t testing.TB, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "fairlead-clients", version)
	err = keep(dir, func(empty string) error { return install(t.Context(), version, empty) })
	if err != nil {
		t.Fatalf("building the client %s: %v", version, err)
	}
	return dir
}

// keep creates a directory once, by filling an empty one. Others that need the same directory, in this
// process or another, wait for it. An existing directory is complete.
func keep(dir string, fill func(empty string) error) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	unfinished := dir + ".unfinished"
	if err := errors.Join(os.RemoveAll(unfinished), os.Mkdir(unfinished, 0o755)); err != nil {
		return err
	}
	if err := fill(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

// Omitted are build tags that omit features that no test uses: storing state in AWS or Kubernetes, and workload identity
// federation. They save a quarter of the code to compile.
const Omitted = "ts_omit_aws,ts_omit_kube,ts_omit_identityfederation"

// install builds the two programs into dir. The version is stamped as in the vendor's builds; without it,
// the programs would report an error.
func install(ctx context.Context, version, dir string) error {
	number := strings.TrimPrefix(version, "v")
	stamp := fmt.Sprintf("-s -w -X tailscale.com/version.shortStamp=%s -X tailscale.com/version.longStamp=%[1]s", number)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags="+stamp, "-tags="+Omitted,
		"tailscale.com/cmd/tailscale@"+version, "tailscale.com/cmd/tailscaled@"+version)
	cmd.Dir = dir
	MayDownload(cmd)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go install: %w\n%s", err, out.Bytes())
	}
	return nil
}
