//go:build !race

package deploytest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testUpgrade moves the stack's directory to a new commit, as git pull does, and runs setup.sh again.
func testUpgrade(t *testing.T, s *Stack) {
	s = s.In(t)
	own := built{tag: images.tag + "-upgrade"}
	before := built{tag: own.tag + "-before"}
	t.Cleanup(func() {
		own.remove(context.WithoutCancel(t.Context()))
		before.remove(context.WithoutCancel(t.Context()))
	})
	for image := range strings.FieldsSeq("server console proxy") {
		s.run(s.Dir, docker, "tag", images.name(image), own.name(image))
	}
	s.setEnv("IMAGE_TAG", own.tag)
	s.run(root, "git", "clone", "--quiet", "--shared", "--no-checkout", ".", filepath.Join(s.Dir, "clone"))
	if err := os.Rename(filepath.Join(s.Dir, "clone", ".git"), filepath.Join(s.Dir, ".git")); err != nil {
		t.Fatal(err)
	}
	s.run(s.Dir, "git", "reset", "--quiet")
	s.run(s.Dir, "git", "-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "--quiet", "--allow-empty", "--message=next")
	next := strings.TrimSpace(s.run(s.Dir, "git", "rev-parse", "HEAD"))

	if got := runningCommit(t, s); got != images.commit {
		t.Fatalf("commit %s runs from images of %s", got, images.commit)
	}
	out, err := s.Run("scripts/setup.sh", "--check")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, service := range s.Services() {
		wantText(t, out, "[WARN] "+service+" runs commit "+images.commit[:12]+", but "+next[:12]+" is checked out here: run scripts/setup.sh")
	}

	usePrebuilt(t, s, next)
	// Debian's Docker client comes first, because it has BuildKit.
	out = s.run(s.Dir, "env", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "scripts/setup.sh")
	wantText(t, out, "upgrading to commit "+next[:12], "building images: server console proxy")
	if got := runningCommit(t, s); got != next {
		t.Errorf("after the upgrade commit %s runs, want %s", got, next)
	}
	for _, service := range s.Services() {
		labels := s.Inspect(service).Config.Labels
		for label, want := range map[string]string{"revision": next, "created": "20", "version": ""} {
			if got := labels["org.opencontainers.image."+label]; got == "dev" || !strings.HasPrefix(got, want) {
				t.Errorf("%s has the %s %q", service, label, got)
			}
		}
	}
	id := func(image string) string { return s.run(s.Dir, docker, "inspect", "--format={{.Id}}", image) }
	if id(before.name("server")) != id(images.name("server")) {
		t.Error("the previous image was not kept")
	}
}

// usePrebuilt makes Compose build its images from a server linked here with another commit and from
// the existing console. Compiling them in Docker would take minutes.
func usePrebuilt(t *testing.T, s *Stack, commit string) {
	t.Helper()
	lock, err := lockTree()
	if err := errors.Join(err, os.MkdirAll(filepath.Join(s.Dir, "dist"), 0o755)); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	run(t, "cp", "dist/fairlead-console", filepath.Join(s.Dir, "dist"))
	run(t, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags=-s -w -X main.commit="+commit,
		"-o", filepath.Join(s.Dir, "dist")+"/", "./cmd/fairlead")
	const args = "{build: {args: {BINARIES: prebuilt, CERTIFICATES_IMAGE: debian:bookworm-slim}}}\n"
	s.WriteFile("prebuilt.yaml", "services:\n  fairlead: "+args+"  console: "+args, 0o644)
	s.setEnv("COMPOSE_FILE", s.Env("COMPOSE_FILE")+":prebuilt.yaml")
}

func runningCommit(t *testing.T, s *Stack) string {
	t.Helper()
	var version struct{ Commit string }
	if err := json.Unmarshal([]byte(content(t, "http://"+s.Addr("PROXY_DEV_PUBLISH")+"/version")), &version); err != nil {
		t.Fatal(err)
	}
	return version.Commit
}
