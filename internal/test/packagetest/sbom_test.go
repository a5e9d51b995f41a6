//go:build !race

package packagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files reads an archive of the release; names are without its first directory.
func files(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join(built, "new", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
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
		_, inside, _ := strings.Cut(path.Clean(h.Name), "/")
		found[inside] = content
	}
}

func TestArchiveHasStaticBinariesAndListsOfTheirParts(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		if leftOut(arch) {
			continue
		}
		t.Run(arch, func(t *testing.T) {
			name := newer + "-linux-" + arch
			archive := files(t, "fairlead-"+name+".tar.gz")
			for _, file := range []string{
				"LICENSE", "README.md", "CHANGELOG.md", "config.example.yaml", "fairlead.service", "fairlead.licences.txt.gz", "man/fairlead.1.gz",
				"completions/fairlead.bash", "console.example.yaml", "fairlead-console.service", "fairlead-console.licences.txt.gz",
			} {
				if len(archive[file]) == 0 {
					t.Errorf("%s is missing or empty", file)
				}
			}
			if diff := cmp.Diff(modules(t, archive["fairlead"], machine), listed(t, "fairlead-"+name+".cdx.json", "golang")); diff != "" {
				t.Errorf("list of parts (-binary +list):\n%s", diff)
			}
			console := "fairlead-console-" + name + ".cdx.json"
			if diff := cmp.Diff(modules(t, archive["fairlead-console"], machine), listed(t, console, "golang")); diff != "" {
				t.Errorf("list of parts of the console (-binary +list):\n%s", diff)
			}
			pages := listed(t, console, "npm")
			for _, part := range []string{"react-dom ", "@codemirror/view ", "@fontsource-variable/inter ", "tailwindcss "} {
				if !slices.ContainsFunc(pages, func(p string) bool { return strings.HasPrefix(p, part) }) {
					t.Errorf("%s is not listed: %q", part, pages)
				}
			}
		})
	}
}

// modules returns the modules of a static binary, as recorded in it.
func modules(t *testing.T, binary []byte, machine elf.Machine) []string {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	if e.Machine != machine || e.Section(".interp") != nil {
		t.Errorf("the binary is for %v, interpreter %v; want a static one for %v", e.Machine, e.Section(".interp") != nil, machine)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		found = append(found, m.Path+" "+m.Version)
	}
	return found
}

// redistributable matches the licences that allow us to distribute binaries with the licence texts.
var redistributable = regexp.MustCompile(`^(((0BSD|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|ISC|MIT|OFL-1\.1|Unlicense)( AND )?)+)$`)

// listed returns the components of a kind in a software bill of materials.
func listed(t *testing.T, name, kind string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built, "new", name))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		BOMFormat  string
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct{ Expression string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.BOMFormat != "CycloneDX" {
		t.Errorf("format %q", d.BOMFormat)
	}
	var found []string
	for _, c := range d.Components {
		if !strings.HasPrefix(c.PURL, "pkg:"+kind+"/") {
			continue
		}
		found = append(found, c.Name+" "+c.Version)
		if len(c.Licenses) != 1 || !redistributable.MatchString(c.Licenses[0].Expression) {
			t.Errorf("%s has the licence %v, which nobody has checked yet", c.Name, c.Licenses)
		}
		if c.PURL != "pkg:"+kind+"/"+strings.Replace(c.Name, "@", "%40", 1)+"@"+strings.ReplaceAll(c.Version, "+", "%2B") {
			t.Errorf("%s has the package URL %q", c.Name, c.PURL)
		}
	}
	return found
}
