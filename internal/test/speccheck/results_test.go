package speccheck

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var results = flag.String("results", "", "directory with the events of the tests that ran, as go test -json writes them")

const (
	module = "github.com/fairlead-mesh/fairlead/"
	own    = "speccheck.json" // the report of this test, which is still being written
)

// outcomes holds "pass", "fail" or "skip" for each test that ran, by "package Test/subtest".
type outcomes map[string]string

// ranTests reads the reports of all tests, or returns nil without -results.
func ranTests(t *testing.T) outcomes {
	t.Helper()
	if *results == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(*results, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reports in %s: %v", *results, err)
	}
	ran := outcomes{}
	for _, name := range files {
		if filepath.Base(name) == own {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		err = ran.read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return ran
}

// read adds a report. A later result replaces an earlier one, so a test that passed only on a rerun has
// passed; but a skip does not replace another result.
func (o outcomes) read(r io.Reader) error {
	d := json.NewDecoder(r)
	for {
		var e struct{ Action, Package, Test string }
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		name := strings.TrimPrefix(e.Package, module) + " " + e.Test
		switch {
		case e.Test == "":
		case e.Action == "pass" || e.Action == "fail", e.Action == "skip" && o[name] == "":
			o[name] = e.Action
		}
	}
}

// missing returns which of the tests did not pass, and why. A test with a skipped subtest proves less than it
// claims, so it counts as skipped.
func (o outcomes) missing(tests []string) (found []string) {
	for _, test := range tests {
		dir, name, _ := strings.Cut(test, " ")
		key := dir + " " + strings.ReplaceAll(name, " ", "_")
		switch o[key] {
		case "pass":
			for sub, outcome := range o {
				if outcome == "skip" && strings.HasPrefix(sub, key+"/") {
					found = append(found, sub+" was skipped")
				}
			}
		case "fail":
			found = append(found, test+" failed")
		case "skip":
			found = append(found, test+" was skipped")
		default:
			found = append(found, test+" did not run")
		}
	}
	return found
}

func TestOutcomes(t *testing.T) {
	ran := outcomes{}
	if err := ran.read(strings.NewReader(`
{"Action":"run","Package":"` + module + `p","Test":"TestA"}
{"Action":"pass","Package":"` + module + `p","Test":"TestA/one_two"}
{"Action":"pass","Package":"` + module + `p","Test":"TestA"}
{"Action":"skip","Package":"` + module + `p","Test":"TestA"}
{"Action":"fail","Package":"` + module + `p","Test":"TestTwice"}
{"Action":"pass","Package":"` + module + `p","Test":"TestTwice"}
{"Action":"fail","Package":"` + module + `p","Test":"TestFails"}
{"Action":"skip","Package":"` + module + `p","Test":"TestSkips"}
{"Action":"skip","Package":"` + module + `p","Test":"TestHalf/sub"}
{"Action":"pass","Package":"` + module + `p","Test":"TestHalf"}
{"Action":"pass","Package":"` + module + `p"}`)); err != nil {
		t.Fatal(err)
	}
	for test, want := range map[string][]string{
		"p TestA":         nil,
		"p TestA/one two": nil,
		"p TestTwice":     nil,
		"p TestA/three":   {"p TestA/three did not run"},
		"p TestGone":      {"p TestGone did not run"},
		"q TestA":         {"q TestA did not run"},
		"p TestFails":     {"p TestFails failed"},
		"p TestSkips":     {"p TestSkips was skipped"},
		"p TestHalf":      {"p TestHalf/sub was skipped"},
	} {
		if diff := cmp.Diff(want, ran.missing([]string{test})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test, diff)
		}
	}
	if err := ran.read(strings.NewReader(`{"Action":"pa`)); err == nil {
		t.Error("half a report is accepted")
	}
}

// TestEverythingRan checks that all tests in the list passed, and that CI ran every test of the module.
func TestEverythingRan(t *testing.T) {
	ran := ranTests(t)
	if ran == nil {
		t.Skip("needs the reports of all tests: run make speccheck")
	}
	var listed []string
	for _, s := range read(t, list) {
		for _, r := range s.Rows {
			listed = append(listed, r.Tests...)
			for _, missing := range ran.missing(r.Tests) {
				t.Errorf("%s: %s", r.ID, missing)
			}
		}
	}
	const specification = "cmd/fairlead TestSpecification/"
	for _, test := range slices.Sorted(maps.Keys(ran)) {
		if name, ok := strings.CutPrefix(test, specification); ok && !strings.Contains(name, "/") && !slices.Contains(listed, test) {
			t.Errorf("%s is not in rows.yaml", test)
		}
	}
	declared, err := declaredTests("../../..")
	if err != nil || len(declared) < 1000 {
		t.Fatalf("%d tests were found: %v", len(declared), err)
	}
	for _, missing := range ran.missing(slices.DeleteFunc(declared, func(test string) bool { return slices.Contains(notInCI, test) })) {
		t.Error(missing)
	}
}

// notInCI lists tests that take too long (make scale, make meshes, make replicas, make reports, make storm, make screens, make
// deploy-ha, and the second build of make packages-test), a test that runs until it is interrupted, tests that need programs that
// take long to build or that CI does not install (make move, make e2e-identity, make e2e-matrix and make relay-figures), and this
// one.
var notInCI = []string{
	"bench/load TestManyMeshes", "bench/load TestReplicas", "bench/load TestReports", "bench/load TestScale", "bench/load TestStorm",
	"cmd/fairlead TestRelayIsAsGoodAsTheStockOne",
	"internal/test/consoletest TestDemo", "internal/test/consoletest TestScreens",
	"internal/test/deploytest TestHighAvailability",
	"internal/test/e2e TestControlClientOfTheNextVersionFollowsTheMesh",
	"internal/test/e2e TestPersonSignsInWithGlewlwyd",
	"internal/test/movetest TestHeadscaleStartsWithAnExport",
	"internal/test/packagetest TestReleaseIsTheSameWhereverItIsBuilt",
	"internal/test/speccheck TestEverythingRan",
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// declaredTests returns the test functions in the source code of the module at root.
func declaredTests(root string) (found []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "dist" || strings.HasPrefix(entry.Name(), ".") && path != root):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			found = append(found, fmt.Sprintf("%s %s", filepath.ToSlash(dir), m[1]))
		}
		return err
	})
	return found, err
}
