//go:build !race

package packagetest

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// blobs reads an OCI archive and checks that each blob has the digest that names it.
func blobs(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join(built, "new", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if digest, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && digest != "" && digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has the digest %x", h.Name, sum)
		}
		found[h.Name] = content
	}
}

type descriptor struct {
	Digest   string
	Size     int
	Platform struct{ OS, Architecture string }
}

func TestImageArchivesHaveAllArchitecturesAndTheirLayers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(built, "new", "fairlead-"+newer+"-images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, image := range []string{"server", "console"} {
		parts := blobs(t, "fairlead-"+image+"-"+newer+".oci.tar")
		read := func(d descriptor, into any) {
			t.Helper()
			text, ok := parts["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
			if !ok || len(text) != d.Size {
				t.Fatalf("%s: the blob %s of %d bytes is missing or has %d", image, d.Digest, d.Size, len(text))
			}
			if into != nil {
				if err := json.Unmarshal(text, into); err != nil {
					t.Fatal(err)
				}
			}
		}
		var top, all struct{ Manifests []descriptor }
		if err := json.Unmarshal(parts["index.json"], &top); err != nil || len(top.Manifests) != 1 {
			t.Fatalf("%s: index.json has %d entries: %v", image, len(top.Manifests), err)
		}
		read(top.Manifests[0], &all)
		listed = append(listed, fmt.Sprintf("ghcr.io/fairlead-mesh/%s:%s %s", image, newer, top.Manifests[0].Digest))
		var platforms []string
		for _, m := range all.Manifests {
			platforms = append(platforms, m.Platform.OS+"/"+m.Platform.Architecture)
			var manifest struct {
				Config descriptor
				Layers []descriptor
			}
			read(m, &manifest)
			var config struct{ OS, Architecture string }
			read(manifest.Config, &config)
			if config.OS != m.Platform.OS || config.Architecture != m.Platform.Architecture || len(manifest.Layers) != 2 {
				t.Errorf("%s: the image for %v is one for %v with %d layers", image, m.Platform, config, len(manifest.Layers))
			}
			for _, l := range manifest.Layers {
				read(l, nil)
			}
		}
		if diff := cmp.Diff(slices.DeleteFunc([]string{"linux/amd64", "linux/arm64"}, leftOut), platforms); diff != "" {
			t.Errorf("%s: platforms (-want +got):\n%s", image, diff)
		}
	}
	if diff := cmp.Diff(strings.Join(listed, "\n")+"\n", string(text)); diff != "" {
		t.Errorf("list of images (-archives +file):\n%s", diff)
	}
}

// TestImagesAreThoseOfTheDockerfile builds both images from the Dockerfile with the binaries of the release, and
// compares what containers are started with, and every file.
func TestImagesAreThoseOfTheDockerfile(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"server", "console"} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ours := "ghcr.io/fairlead-mesh/" + image + ":" + newer + "-" + runtime.GOARCH
			theirs := "fairlead-test/from-dockerfile-" + image
			err := bash(`
				# Debian's own client has BuildKit built in.
				docker() { if [ -x /usr/bin/docker ]; then /usr/bin/docker "$@"; else command docker "$@"; fi; }
				# docker load creates a tag for each architecture.
				trap 'docker image rm --force "${OURS%-*}-amd64" "${OURS%-*}-arm64" "$THEIRS" || true' EXIT
				docker load --quiet --input "$DIR/new/fairlead-$IMAGE-$VERSION.oci.tar"
				docker run --rm --network=none "$OURS" version | grep "v$VERSION"
				mkdir "$OUT/context"
				cp -r "$DIR/binaries" "$OUT/context/dist"
				DOCKER_BUILDKIT=1 docker build --quiet --tag "$THEIRS" --file "$ROOT/deploy/docker/Dockerfile" --target "$IMAGE" \
					--build-arg BINARIES=prebuilt --build-arg CERTIFICATES_IMAGE="$BASE" \
					--build-arg VERSION="v$VERSION" --build-arg COMMIT=0123456789abcdef --build-arg BUILD_TIME=2026-01-02T03:04:05Z "$OUT/context"
				describe() {
					docker image inspect "$1" | jq '.[0].Config |
						{User, ExposedPorts, Env, Entrypoint, Cmd, Volumes, WorkingDir, Labels, Healthcheck, StopSignal, Shell}'
					local container
					container=$(docker create "$1")
					docker export "$container" >"$OUT/$2.tar"
					docker rm "$container" >/dev/null
					# Mode, owner, name and size. The certificates come from different places.
					tar --list --verbose --numeric-owner --file="$OUT/$2.tar" |
						awk '{ print $1, $2, $6, $6 ~ /ca-certificates/ ? "" : $3 }' | sort --key=3
					tar --extract --to-stdout --file="$OUT/$2.tar" etc/passwd etc/group
				}
				describe "$OURS" ours >"$OUT/ours"
				describe "$THEIRS" theirs >"$OUT/theirs"
			`, "DIR="+built, "IMAGE="+image, "VERSION="+newer, "OUT="+dir, "ROOT="+root, "BASE="+plain, "OURS="+ours, "THEIRS="+theirs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(t, filepath.Join(dir, "theirs")), lines(t, filepath.Join(dir, "ours"))); diff != "" {
				t.Errorf("(-Dockerfile +deploy/package/image):\n%s", diff)
			}
		})
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(found) < 30 {
		t.Fatalf("%s has only %d lines:\n%s", file, len(found), text)
	}
	return found
}
