//go:build !race

package packagetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	older, newer = "0.1.0", "0.2.0"
	root         = "../../.."
	image        = "fairlead/package-test"
)

var (
	enabled = flag.Bool("packages", false, "build a release and try its packages in containers")
	arm64   = flag.Bool("arm64", true, "build for arm64 too, which takes minutes; nothing of it can run here")
	again   = flag.Bool("again", true, "build the release a second time under different conditions, and compare")
	// built is a directory: new holds the files of the newer release, again the same release built a second time,
	// unless the flag is false, and old the packages of the older release for this machine. The newer release is signed
	// with the keys in keys, its package repositories are in repository, and its binaries for this machine in binaries.
	built string
)

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	flag.Parse()
	if !*enabled {
		fmt.Println("nothing is built without -packages")
		return 0
	}
	dir, err := os.MkdirTemp("", "fairlead-packages-")
	if err == nil {
		defer os.RemoveAll(dir)
		built = dir
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds both releases from copies of the current tree, and the image of the machines. The second copy
// has a different name, and files with different times and modes.
func build(dir string) error {
	tools, err := filepath.Abs(filepath.Join(root, ".bin"))
	if err != nil {
		return err
	}
	architectures := "amd64"
	if *arm64 {
		architectures += " arm64"
	}
	return bash(`
		copy() {
			mkdir -p "$1"
			(cd "$ROOT" && git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read) |
				tar --extract --no-same-permissions --directory="$1"
			# What npm would fetch again; the pages are built in each place.
			cp --recursive --reflink=auto "$ROOT/console/web/node_modules" "$1/console/web/"
		}
		make_in() {
			make --no-print-directory --directory="$1" BIN="$TOOLS" COMMIT=0123456789abcdef BUILD_TIME=2026-01-02T03:04:05Z "${@:2}"
		}
		"$ROOT/internal/test/deploytest/images.sh" debian
		docker build --quiet --tag "$IMAGE" "$ROOT/internal/test/packagetest/testdata"
		copy "$DIR/a"
		mkdir "$DIR/keys"
		minisign -G -W -p "$DIR/keys/minisign.pub" -s "$DIR/keys/minisign.key"
		export GNUPGHOME=$DIR/gnupg
		install -d -m 700 "$GNUPGHOME"
		gpg --batch --quiet --passphrase '' --quick-generate-key 'Package test' ed25519 sign never
		gpg --batch --armor --export-secret-keys >"$DIR/keys/openpgp.key"
		gpgconf --kill gpg-agent
		export MINISIGN_KEY_FILE=$DIR/keys/minisign.key OPENPGP_KEY_FILE=$DIR/keys/openpgp.key
		make_in "$DIR/a" release VERSION=v$NEWER SIGNED=required
		unset MINISIGN_KEY_FILE OPENPGP_KEY_FILE
		cp --recursive "$DIR/a/dist/stage/$ARCH" "$DIR/stage"
		ARCHITECTURES=$ARCH make_in "$DIR/a" packages VERSION=v$OLDER &
		[ "$AGAIN" = false ] || (
			umask 077
			export TZ=Asia/Tokyo LANG=C.UTF-8 GOAMD64=v3 GOFLAGS=-ldflags=-w
			copy "$DIR/another/place"
			find "$DIR/another/place" -type f -not -path '*/node_modules/*' -exec touch -d 2001-01-01 {} +
			make_in "$DIR/another/place" release VERSION=v$NEWER
			mv "$DIR/another/place/dist/release" "$DIR/again"
		)
		wait $!
		mkdir "$DIR/binaries"
		mv "$DIR/stage/fairlead" "$DIR/stage/fairlead-console" "$DIR/binaries/"
		mv "$DIR/a/dist/release" "$DIR/new"
		mv "$DIR/a/dist/repository" "$DIR/repository"
		mv "$DIR/a/dist/packages" "$DIR/old"
		chmod -R a+rX "$DIR"
	`, "ROOT="+root, "TOOLS="+tools, "DIR="+dir, "IMAGE="+image, "OLDER="+older, "NEWER="+newer, "ARCH="+runtime.GOARCH, "ARCHITECTURES="+architectures, fmt.Sprint("AGAIN=", *again))
}

func bash(script string, environment ...string) error {
	cmd := exec.CommandContext(context.Background(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func TestReleaseIsTheSameWhereverItIsBuilt(t *testing.T) {
	if !*again {
		t.Skip("needs a second build: run make packages-test")
	}
	if diff := cmp.Diff(sums(t, "new"), sums(t, "again")); diff != "" {
		t.Errorf("built again in another place, with other modes, times and settings (-first +second):\n%s", diff)
	}
}

func TestReleaseHasEveryPartAndItsSum(t *testing.T) {
	var files []string
	for _, line := range sums(t, "new") {
		files = append(files, strings.Fields(line)[1])
	}
	want := []string{
		"fairlead-0.2.0-1.aarch64.rpm", "fairlead-0.2.0-1.x86_64.rpm", "fairlead-0.2.0-images.txt",
		"fairlead-0.2.0-linux-amd64.cdx.json", "fairlead-0.2.0-linux-amd64.tar.gz",
		"fairlead-0.2.0-linux-arm64.cdx.json", "fairlead-0.2.0-linux-arm64.tar.gz",
		"fairlead-chart-0.2.0.tgz",
		"fairlead-console-0.2.0-1.aarch64.rpm", "fairlead-console-0.2.0-1.x86_64.rpm",
		"fairlead-console-0.2.0-linux-amd64.cdx.json", "fairlead-console-0.2.0-linux-arm64.cdx.json", "fairlead-console-0.2.0.oci.tar",
		"fairlead-console_0.2.0-1_amd64.deb", "fairlead-console_0.2.0-1_arm64.deb", "fairlead-server-0.2.0.oci.tar",
		"fairlead_0.2.0-1_amd64.deb", "fairlead_0.2.0-1_arm64.deb",
	}
	want = slices.DeleteFunc(want, leftOut)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files of SHA256SUMS (-want +got):\n%s", diff)
	}
	if err := bash(`cd "$DIR" && sha256sum --check --strict SHA256SUMS`, "DIR="+filepath.Join(built, "new")); err != nil {
		t.Error(err)
	}
}

// leftOut reports whether a file or an architecture is not built.
func leftOut(name string) bool {
	return !*arm64 && (strings.Contains(name, "arm64") || strings.Contains(name, "aarch64"))
}

func sums(t *testing.T, release string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built, release, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// GitHub would replace ~, and SHA256SUMS would list files that nobody can download.
func TestFilesOfAReleaseCandidateHaveNamesThatGitHubKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a~b")
	err := bash(`mkdir "$TO"; touch "$TO"/fairlead_1.2.0~rc.1-1_amd64.deb "$TO"/SHA256SUMS; "$ROOT/deploy/package/build.sh" rename "$TO"
		[ "$(cd "$TO" && echo *)" = "SHA256SUMS fairlead_1.2.0-rc.1-1_amd64.deb" ]`, "ROOT="+root, "TO="+dir, "LC_ALL=C")
	if err != nil {
		t.Error(err)
	}
}

func TestPackagesOrderVersionsAsWeDo(t *testing.T) {
	versions := []string{"3f2a1b9", "v1.1.0", "v1.2.0-rc.1", "v1.2.0-rc.1-3-g0123abc", "v1.2.0-rc.2", "v1.2.0", "v1.2.0-14-g0123abc", "v1.2.0-14-g0123abc-dirty", "v1.2.1"}
	var spelt []string
	for _, v := range versions {
		cmd := exec.CommandContext(t.Context(), root+"/deploy/package/build.sh", "version", v)
		cmd.Env = append(os.Environ(), "BUILD_TIME=2026-01-02T03:04:05Z")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		spelt = append(spelt, strings.TrimSpace(string(out)))
	}
	want := []string{"0~20260102030405.3f2a1b9", "1.1.0", "1.2.0~rc.1", "1.2.0~rc.1+3.g0123abc", "1.2.0~rc.2", "1.2.0", "1.2.0+14.g0123abc", "1.2.0+14.g0123abc+dirty", "1.2.1"}
	if diff := cmp.Diff(want, spelt); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	for i := range len(spelt) - 1 {
		if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", spelt[i], "lt", spelt[i+1]).Run(); err != nil {
			t.Errorf("%s is not before %s: %v", spelt[i], spelt[i+1], err)
		}
	}
}
