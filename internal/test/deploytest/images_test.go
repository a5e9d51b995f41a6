//go:build !race

package deploytest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// docker is Debian's own Docker client, which has BuildKit built in.
const docker = "/usr/bin/docker"

var (
	deploy     = flag.Bool("deploy", false, "start deployments with Docker")
	fromSource = flag.Bool("from-source", false, "compile all images from source, as setup.sh does in a clone")
	ha         = flag.Bool("ha", false, "start deploy/compose/ha.yaml and break it")
	root       = filepath.Join("..", "..", "..")
	images     built
)

// built describes the images under test, which all tests of a run share.
type built struct {
	tag    string // tag of all images
	commit string // the commit they were built from
}

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	flag.Parse()
	if !*deploy {
		fmt.Println("nothing is started without -deploy")
		return 0
	}
	ctx := context.Background()
	defer images.remove(ctx)
	if err := images.build(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the images from this working tree with binaries compiled here. Unchanged images come
// from Docker's cache.
func (b *built) build(ctx context.Context) error {
	b.tag = fmt.Sprintf("test-%d", os.Getpid())
	lock, err := lockTree()
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := command(ctx, root, "internal/test/deploytest/images.sh", "debian", "postgres", "tailscale"); err != nil {
		return err
	}
	if _, err := command(ctx, root, "make", "--no-print-directory", "build"); err != nil {
		return err
	}
	commit, err := command(ctx, root, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	b.commit = strings.TrimSpace(commit)
	for _, args := range [][]string{
		{"server", "--target=server", "--file=deploy/docker/Dockerfile", "--build-arg=BINARIES=prebuilt", "--build-arg=CERTIFICATES_IMAGE=debian:bookworm-slim"},
		{"console", "--target=console", "--file=deploy/docker/Dockerfile", "--build-arg=BINARIES=prebuilt", "--build-arg=CERTIFICATES_IMAGE=debian:bookworm-slim"},
		{"demo", "--target=demo", "--file=deploy/docker/Dockerfile", "--build-arg=BINARIES=prebuilt"},
		{"proxy", "--file=deploy/docker/proxy/Dockerfile"},
		{"certbot", "--file=deploy/docker/certbot/Dockerfile"},
	} {
		line := append([]string{"build", "--quiet", "--tag=" + b.name(args[0]), "--build-arg=COMMIT=" + b.commit}, args[1:]...)
		if _, err := command(ctx, root, docker, append(line, ".")...); err != nil {
			return err
		}
	}
	return nil
}

// lockTree prevents other runs from writing dist while this one copies from it, until the returned
// file is closed.
func lockTree() (*os.File, error) {
	f, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	return f, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}

func (b *built) name(image string) string { return "fairlead/" + image + ":" + b.tag }

func (b *built) remove(ctx context.Context) {
	if b.tag == "" {
		return
	}
	for image := range strings.FieldsSeq("server console demo proxy certbot") {
		// Ignore the error: an image that was never built cannot be removed.
		_, _ = command(ctx, root, docker, "image", "rm", b.name(image))
	}
}
