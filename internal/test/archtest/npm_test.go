package archtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// npmProjects are the directories with a package.json.
func npmProjects() []string {
	return []string{"api", "console/web", "internal/test/monitortest/schema", "internal/test/oidctest", "site"}
}

// npmManifest is the part of a package.json that is used here.
type npmManifest struct {
	Dependencies, DevDependencies, Overrides map[string]string
}

// npmLock is the part of a package-lock.json that is used here. The entry without a name repeats the
// manifest.
type npmLock struct {
	LockfileVersion int
	Packages        map[string]npmEntry
}

type npmEntry struct {
	npmManifest
	Version, Integrity, Resolved, License string
	Dev                                   bool
}

// distributable lists the licences that allow code to become part of what we distribute, and forTools
// those that are acceptable for tools. MPL-2.0, for example, matters only to those who change the tool.
const (
	distributable = "MIT ISC 0BSD BSD-2-Clause BSD-3-Clause Apache-2.0 OFL-1.1 Unlicense"
	forTools      = distributable + " MIT-0 CC0-1.0 BlueOak-1.0.0 MPL-2.0 Python-2.0"
)

func readNPM[T any](t *testing.T, name string) (v T) {
	t.Helper()
	text, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func TestNPMPackagesArePinnedAndMayBeUsed(t *testing.T) {
	for _, dir := range npmProjects() {
		manifest, lock := readNPM[npmManifest](t, dir+"/package.json"), readNPM[npmLock](t, dir+"/package-lock.json")
		for _, p := range npmProblems(manifest, lock) {
			t.Errorf("%s: %s", dir, p)
		}
	}
}

// npmProblems returns entries that would make two installations differ, or that must not be distributed.
func npmProblems(manifest npmManifest, lock npmLock) (found []string) {
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	for _, pins := range []map[string]string{manifest.Dependencies, manifest.DevDependencies, manifest.Overrides} {
		for name, version := range pins {
			if !exact.MatchString(version) {
				found = append(found, fmt.Sprintf("%s %s is not one version", name, version))
			}
		}
	}
	asked := lock.Packages[""].npmManifest
	asked.Overrides = manifest.Overrides // lock files do not repeat these
	if diff := cmp.Diff(manifest, asked); diff != "" {
		found = append(found, "the lock is of another package.json:\n"+diff)
	}
	for name, p := range lock.Packages {
		if name == "" {
			continue
		}
		if !strings.HasPrefix(p.Integrity, "sha512-") {
			found = append(found, name+" has no checksum")
		}
		if p.Resolved != "" { // empty means any configured registry; the checksum verifies the package
			found = append(found, name+" comes from "+p.Resolved)
		}
		allowed := distributable
		if p.Dev {
			allowed = forTools
		}
		choices := strings.Split(strings.Trim(p.License, "()"), " OR ")
		if !slices.ContainsFunc(choices, func(l string) bool { return slices.Contains(strings.Fields(allowed), l) }) {
			found = append(found, fmt.Sprintf("%s has the licence %q", name, p.License))
		}
	}
	return found
}

// Prove that the check can fail.
func TestNPMPackagesThatAreLooseOrForbiddenAreFound(t *testing.T) {
	pins := map[string]string{"a": "1.2.3"}
	sound := npmEntry{Version: "1.2.3", Integrity: "sha512-x", License: "MIT"}
	for name, change := range map[string]func(*npmManifest, map[string]npmEntry){
		"is not one version":    func(m *npmManifest, _ map[string]npmEntry) { m.DevDependencies = map[string]string{"b": "^1.2.3"} },
		"of another":            func(_ *npmManifest, p map[string]npmEntry) { p[""] = npmEntry{} },
		"has no checksum":       func(_ *npmManifest, p map[string]npmEntry) { p["x"] = npmEntry{License: "MIT"} },
		"comes from":            func(_ *npmManifest, p map[string]npmEntry) { e := sound; e.Resolved = "git://x"; p["x"] = e },
		`the licence "GPL-3.0"`: func(_ *npmManifest, p map[string]npmEntry) { e := sound; e.License = "GPL-3.0"; p["x"] = e },
		`the licence "MPL-2.0"`: func(_ *npmManifest, p map[string]npmEntry) { e := sound; e.License = "MPL-2.0"; p["x"] = e },
		`the licence "AGPL-3.0"`: func(_ *npmManifest, p map[string]npmEntry) {
			e := sound
			e.License, e.Dev = "AGPL-3.0", true
			p["x"] = e
		},
	} {
		manifest := npmManifest{Dependencies: maps.Clone(pins)}
		lock := npmLock{Packages: map[string]npmEntry{"": {npmManifest: npmManifest{Dependencies: pins}}, "node_modules/a": sound}}
		if got := npmProblems(manifest, lock); len(got) != 0 {
			t.Fatalf("sound packages: %q", got)
		}
		change(&manifest, lock.Packages)
		if got := strings.Join(npmProblems(manifest, lock), "\n"); !strings.Contains(got, name) {
			t.Errorf("%s is not found, but %q", name, got)
		}
	}
}

func TestEveryPackageOfAPageIsExplained(t *testing.T) {
	text, err := os.ReadFile(path.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, heading := range map[string]string{"console/web": consoleHeading, "site": "\n## The documentation site\n"} {
		_, section, _ := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		var explained []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(section, -1) {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				explained = append(explained, name[1])
			}
		}
		slices.Sort(explained)
		manifest := readNPM[npmManifest](t, dir+"/package.json")
		used := maps.Clone(manifest.DevDependencies)
		maps.Copy(used, manifest.Dependencies)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), explained); diff != "" {
			t.Errorf("docs/dependencies.md, %s (-package.json +document):\n%s", dir, diff)
		}
	}
}
