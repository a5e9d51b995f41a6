//go:build !race

package packagetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copied copies the signed release into a directory of the test, as if it had been downloaded, with the public keys.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := bash(`cp -r "$DIR/new" "$DIR/repository" "$DIR/keys/minisign.pub" "$TO/"`, "DIR="+built, "TO="+dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tested matches the code blocks of a document that follow a line <!-- test -->.
var tested = regexp.MustCompile("(?ms)^<!-- test -->\n```sh\n(.*?)^```$")

// TestDocumentVerifiesTheRelease runs the commands of docs/verify.md, then once more for each file after changing a byte
// of it: now they must fail.
func TestDocumentVerifiesTheRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	blocks := tested.FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		script += b[1]
	}
	if len(blocks) < 4 || len(blocks) != strings.Count(string(text), "<!-- test -->") {
		t.Fatalf("docs/verify.md has %d usable blocks", len(blocks))
	}
	script = strings.NewReplacer("VERSION=0.1.0", "VERSION="+newer, "ARCH=amd64", "ARCH="+runtime.GOARCH).Replace(script)
	dir := copied(t)
	verify := func() error {
		return bash(`cd "$TO/new" && cp ../minisign.pub . && `+script, "TO="+dir)
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"SHA256SUMS", "SHA256SUMS.minisig", "fairlead_" + newer + "-1_" + runtime.GOARCH + ".deb",
		"fairlead-" + newer + ".provenance.json", "fairlead-" + newer + "-images.txt",
	} {
		file := filepath.Join(dir, "new", name)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := slices.Clone(content)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := verify(); err == nil {
			t.Errorf("%s was changed, and docs/verify.md does not notice", name)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAptInstallsFromTheSignedRepository also checks that apt refuses a repository with a changed byte.
func TestAptInstallsFromTheSignedRepository(t *testing.T) {
	t.Parallel()
	m := start(t, plain)
	m.sh(`cp -r /packages/repository /srv/
		mkdir -p /etc/apt/keyrings
		rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
		cp /srv/repository/fairlead.asc /etc/apt/keyrings/
		sed 's|^URIs: .*|URIs: file:/srv/repository/apt|' /srv/repository/fairlead.sources >/etc/apt/sources.list.d/fairlead.sources`)
	m.sh("apt-get update && apt-get install --yes fairlead")
	m.says("fairlead --version", "fairlead v"+newer)
	for _, file := range []string{"main/binary-" + runtime.GOARCH + "/Packages.gz", "InRelease"} {
		path := "/srv/repository/apt/dists/stable/" + file
		m.sh("rm -rf /var/lib/apt/lists/* && cp " + path + " /tmp/kept && printf x | dd of=" + path + " bs=1 seek=100 conv=notrunc")
		if out, err := m.try("apt-get --error-on=any update"); err == nil {
			t.Errorf("apt accepts a changed %s:\n%s", file, out)
		}
		m.sh("cp /tmp/kept " + path + " && apt-get --error-on=any update")
	}
}

func TestRPMRepositoryIsSignedAndHasEveryPackage(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	err := bash(`
		cd "$TO/repository"
		gpg --batch --homedir "$TO" --dearmor <fairlead.asc >"$TO/fairlead.gpg"
		gpgv --keyring "$TO/fairlead.gpg" rpm/repodata/repomd.xml.asc rpm/repodata/repomd.xml
		cd rpm
		# repomd.xml has the checksum of primary.xml.gz, and that has those of the packages.
		grep --fixed-strings "$(sha256sum repodata/primary.xml.gz | cut -d' ' -f1)" repodata/repomd.xml
		for package in *.rpm; do
			zgrep --fixed-strings "$(sha256sum "$package" | cut -d' ' -f1)" repodata/primary.xml.gz
			cmp "$package" "$TO/new/$package"
		done
		sed -i s/revision/Revision/ repodata/repomd.xml
		! gpgv --keyring "$TO/fairlead.gpg" repodata/repomd.xml.asc repodata/repomd.xml
	`, "TO="+dir)
	if err != nil {
		t.Error(err)
	}
}

func TestReleaseWithoutKeysIsUnsigned(t *testing.T) {
	t.Parallel()
	for _, signature := range []string{"again/*.minisig", "again/*.asc"} {
		if found, _ := filepath.Glob(filepath.Join(built, signature)); len(found) > 0 { // fails only for a malformed pattern
			t.Errorf("built without keys: %q", found)
		}
	}
	dir := copied(t)
	sign := `unset MINISIGN_KEY_FILE OPENPGP_KEY_FILE; "$ROOT/deploy/package/sign.sh" "$TO/new" "$TO/repository" 2>&1 | grep --count 'NOT signed'`
	if err := bash(`[ "$(`+sign+`)" = 2 ]`, "ROOT="+root, "TO="+dir); err != nil {
		t.Errorf("without keys: %v", err)
	}
	if err := bash(sign, "ROOT="+root, "TO="+dir, "SIGNED=required"); err == nil {
		t.Error("unsigned although signatures are required")
	}
}

// TestKeyIsRemovedWhenSigningFails signs a repository that does not exist.
func TestKeyIsRemovedWhenSigningFails(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	err := bash(`"$ROOT/deploy/package/sign.sh" "$DIR/new" /nonexistent`,
		"ROOT="+root, "DIR="+built, "TMPDIR="+temporary, "OPENPGP_KEY_FILE="+built+"/keys/openpgp.key")
	if err == nil {
		t.Error("signed a repository that does not exist")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestOnlySignedPackagesOfEarlierReleasesStay adds a file to a release, and then changes a package.
func TestOnlySignedPackagesOfEarlierReleasesStay(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	earlier := `"$ROOT/deploy/package/earlier.sh" "$TO/new" "$TO/minisign.pub" "$TO/earlier"`
	err := bash(`
		echo other >"$TO/new/fairlead_9.9.9-1_amd64.deb"
		`+earlier+`
		[ "$(ls "$TO/earlier")" = "$(sed -nE 's/.*  (.*\.(deb|rpm))$/\1/p' "$TO/new/SHA256SUMS" | sort)" ]
	`, "ROOT="+root, "TO="+dir, "LC_ALL=C")
	if err != nil {
		t.Error(err)
	}
	for _, change := range []string{`for f in "$TO"/new/fairlead_*.deb; do echo more >>"$f"; done`, `rm "$TO/new/SHA256SUMS.minisig"`} {
		if err := bash(change+"; "+earlier, "ROOT="+root, "TO="+dir); err == nil {
			t.Errorf("accepted after %s", change)
		}
	}
}

func TestProvenanceNamesEveryFileAndTheBuild(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(built, "new", "fairlead-"+newer+".provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	type resource struct {
		Name, URI string
		Digest    map[string]string
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []resource
		Predicate     struct {
			BuildDefinition struct{ ResolvedDependencies []resource }
			RunDetails      struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" || s.Predicate.RunDetails.Builder.ID == "" {
		t.Errorf("a statement of type %q, predicate %q, builder %q", s.Type, s.PredicateType, s.Predicate.RunDetails.Builder.ID)
	}
	var files []string
	for _, r := range s.Subject {
		if !strings.HasPrefix(r.Name, "ghcr.io/") {
			files = append(files, r.Digest["sha256"]+"  "+r.Name)
		}
	}
	if diff := cmp.Diff(sums(t, "new"), files); diff != "" {
		t.Errorf("subjects (-SHA256SUMS +provenance):\n%s", diff)
	}
	if images := len(s.Subject) - len(files); images != 2 {
		t.Errorf("%d images", images)
	}
	var used []string
	for _, r := range s.Predicate.BuildDefinition.ResolvedDependencies {
		used = append(used, r.URI+" "+r.Digest["gitCommit"])
	}
	want := []string{"git+https://github.com/fairlead-mesh/fairlead 0123456789abcdef", "pkg:generic/go@" + strings.TrimPrefix(runtime.Version(), "go") + " "}
	if len(used) != 3 || !slices.Equal(used[:2], want) || !strings.HasPrefix(used[2], "pkg:generic/node@2") {
		t.Errorf("dependencies %q, want %q and Node.js", used, want)
	}
}
