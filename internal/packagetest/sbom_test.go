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

func TestArchiveHasStaticBinaryAndListOfItsParts(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			name := "fairlead-" + newer + "-linux-" + arch
			archive := files(t, name+".tar.gz")
			for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "config.example.yaml", "fairlead.service", "licences.txt.gz", "man/fairlead.1.gz", "completions/fairlead.bash"} {
				if len(archive[file]) == 0 {
					t.Errorf("%s is missing or empty", file)
				}
			}
			binary := bytes.NewReader(archive["fairlead"])
			e, err := elf.NewFile(binary)
			if err != nil {
				t.Fatal(err)
			}
			if e.Machine != machine || e.Section(".interp") != nil {
				t.Errorf("the binary is for %v, interpreter %v; want a static one for %v", e.Machine, e.Section(".interp") != nil, machine)
			}
			info, err := buildinfo.Read(binary)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
			for _, m := range info.Deps {
				want = append(want, m.Path+" "+m.Version)
			}
			if diff := cmp.Diff(want, listed(t, name+".cdx.json")); diff != "" {
				t.Errorf("list of parts (-binary +list):\n%s", diff)
			}
		})
	}
}

// listed are the components that a list of parts names.
func listed(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built, "new", name))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.BOMFormat != "CycloneDX" {
		t.Errorf("format %q", d.BOMFormat)
	}
	var found []string
	for _, c := range d.Components {
		found = append(found, c.Name+" "+c.Version)
		if !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s has the package URL %q", c.Name, c.PURL)
		}
	}
	return found
}
