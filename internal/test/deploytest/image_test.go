//go:build !race

package deploytest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImagesHoldWhatTheyNeed checks that the server and console images contain only their program,
// CA certificates and the user database, and therefore no shell, and that no image runs as root.
func TestImagesHoldWhatTheyNeed(t *testing.T) {
	t.Parallel()
	const megabyte = 1_000_000
	for _, image := range []struct {
		name, user string
		files      []string // nil: not checked
		size       int64
	}{
		{"server", "10001:10001", []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/bin/fairlead"}, 60 * megabyte},
		{"console", "10002:10002", []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/bin/fairlead-console"}, 20 * megabyte},
		{"proxy", "10003:10003", nil, 250 * megabyte},
		{"certbot", "10003:10003", nil, 350 * megabyte},
	} {
		t.Run(image.name, func(t *testing.T) {
			t.Parallel()
			var found []struct {
				Size   int64
				Config struct {
					User   string
					Labels map[string]string
				}
			}
			if err := json.Unmarshal([]byte(run(t, docker, "image", "inspect", images.name(image.name))), &found); err != nil {
				t.Fatal(err)
			}
			if got := found[0].Config.User; got != image.user {
				t.Errorf("runs as %q, want %q", got, image.user)
			}
			t.Logf("%d MB", found[0].Size/megabyte)
			if found[0].Size >= image.size {
				t.Errorf("%d bytes, want under %d", found[0].Size, image.size)
			}
			for _, label := range []string{"title", "description", "source", "licenses", "version", "revision", "created"} {
				if found[0].Config.Labels["org.opencontainers.image."+label] == "" {
					t.Errorf("label %s is missing", label)
				}
			}
			if image.files != nil {
				if diff := cmp.Diff(image.files, filesOf(t, images.name(image.name))); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// filesOf lists the non-empty files of an image.
func filesOf(t *testing.T, image string) []string {
	t.Helper()
	id := strings.TrimSpace(run(t, docker, "create", image))
	defer run(t, docker, "rm", "--volumes", id)
	var found []string
	for line := range strings.Lines(run(t, "sh", "-c", docker+" export "+id+" | tar --list --verbose")) {
		fields := strings.Fields(line) // mode, owner, size, date, time, name
		if strings.HasPrefix(fields[0], "-") && fields[2] != "0" {
			found = append(found, fields[5])
		}
	}
	slices.Sort(found)
	return found
}

// run runs a program in the repository and returns its stdout.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), root, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wantPages checks that the console in an image has the current pages. The index names every file
// by a hash of its content, so if the index matches, all files do.
func wantPages(t *testing.T, image string) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(root, "console", "web", "dist", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(run(t, docker, "create", image))
	defer run(t, docker, "rm", "--volumes", id)
	program := run(t, "sh", "-c", docker+" cp "+id+":/usr/bin/fairlead-console - | tar --extract --to-stdout")
	if !strings.Contains(program, string(index)) {
		t.Errorf("%s holds no pages, or others than this tree:\n%s", image, index)
	}
}

// Without the flag -from-source, only the console's pages are built, and go only finds all packages and embedded files of
// the programs, because compiling them in Docker would take minutes.
func TestImagesAreBuiltFromSource(t *testing.T) {
	t.Parallel()
	run(t, "internal/test/deploytest/images.sh", "golang", "node")
	source := built{tag: images.tag + "-source"}
	t.Cleanup(func() { source.remove(context.WithoutCancel(t.Context())) })
	if !*fromSource {
		run(t, docker, "build", "--quiet", "--tag="+source.name("console"), "--target=build", "--file=deploy/docker/Dockerfile",
			"--build-arg=PROGRAMS=-n ./cmd/fairlead ./cmd/fairlead-console", ".")
		return
	}
	// Without prebuilt binaries, setup.sh builds all images, as it does in a fresh clone of the repository.
	s := NewStack(t, map[string]string{"IMAGE_TAG": source.tag})
	// Debian's Docker client comes first, because it has BuildKit.
	s.run(s.Dir, "env", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "scripts/setup.sh", "--dev", "--sqlite")
	wantText(t, content(t, "http://"+s.Addr("PROXY_DEV_PUBLISH")+"/health"), `"status":"pass"`)
	wantPages(t, source.name("console"))
}
