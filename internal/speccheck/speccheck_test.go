package speccheck

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite docs/spec-coverage.md")

//go:embed rows.yaml
var list []byte

type section struct {
	Section string
	Rows    []row
}

// row has exactly one of tests, due and outside.
type row struct {
	ID      string
	Says    string
	Tests   []string // "package Test", "package Test/subtest", or of a shell or browser test "file name of the test"
	Due     string
	Outside string
}

func read(t *testing.T, text []byte) (sections []section) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&sections); err != nil {
		t.Fatal(err)
	}
	return sections
}

// sources are the test files of a package, or one file of shell or browser tests, as one text.
func sources(dir string) string {
	var all strings.Builder
	pattern := filepath.Join("../..", dir)
	if ext := filepath.Ext(dir); ext != ".bats" && ext != ".ts" {
		pattern = filepath.Join(pattern, "*_test.go")
	}
	files, _ := filepath.Glob(pattern) // the pattern is ours
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		all.Write(text)
	}
	return all.String()
}

// problems of a list: what is not proven, or by tests that are not there.
func problems(sections []section, sources func(dir string) string) (found []string) {
	seen := map[string]bool{}
	for _, s := range sections {
		for _, r := range s.Rows {
			if seen[r.ID] || r.ID == "" || r.Says == "" {
				found = append(found, fmt.Sprintf("%q is there twice, or says nothing", r.ID))
			}
			seen[r.ID] = true
			ways := 0
			for _, given := range []bool{len(r.Tests) > 0, r.Due != "", r.Outside != ""} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				found = append(found, r.ID+": give exactly one of tests, due and outside")
			}
			if r.Due != "" && r.Due != "deploy" && r.Due != "console" {
				found = append(found, r.ID+": nothing is due with "+r.Due)
			}
			for _, test := range r.Tests {
				if !exists(test, sources) {
					found = append(found, r.ID+": there is no "+test)
				}
			}
		}
	}
	return found
}

func exists(test string, sources func(dir string) string) bool {
	dir, name, _ := strings.Cut(test, " ")
	switch filepath.Ext(dir) {
	case ".bats":
		return strings.Contains(sources(dir), "\n@test \""+name+"\" {")
	case ".ts": // with test.each("a")(, the name begins a line of its own or follows a parenthesis
		return regexp.MustCompile(`(?m)(^\s*test|\))\(\s*"` + regexp.QuoteMeta(name) + `",`).MatchString(sources(dir))
	}
	name, subtest, _ := strings.Cut(name, "/")
	text := sources(dir)
	return strings.Contains(text, "\nfunc "+name+"(t *testing.T") && (subtest == "" || strings.Contains(text, `"`+subtest+`"`))
}

func TestEveryRowIsProvenOrDue(t *testing.T) {
	for _, p := range problems(read(t, list), sources) {
		t.Error(p)
	}
}

// The check itself must be able to fail.
func TestRowsThatAreNotProvenAreFound(t *testing.T) {
	tests := func(string) string {
		return "\nfunc TestA(t *testing.T) {\n\"one\"\n@test \"it works\" {\n  test(\"looks well\", async () => {\n  test.each(a)(\n    \"on $b\", async"
	}
	for text, want := range map[string]string{
		`{id: a, says: b, tests: [p TestA, p TestA/one]}`: "",
		`{id: a, says: b, tests: [p.bats it works]}`:      "",
		`{id: a, says: b, tests: [e.ts looks well]}`:      "",
		`{id: a, says: b, tests: [e.ts on $b]}`:           "",
		`{id: a, says: b, tests: [e.ts looks]}`:           "a: there is no e.ts looks",
		`{id: a, says: b, due: console}`:                  "",
		`{id: a, says: b, outside: not ours}`:             "",
		`{id: a, says: b}`:                                "a: give exactly one of tests, due and outside",
		`{id: a, says: b, due: deploy, tests: [p TestA]}`: "a: give exactly one of tests, due and outside",
		`{id: a, says: b, due: later}`:                    "a: nothing is due with later",
		`{id: a, says: b, tests: [p TestB]}`:              "a: there is no p TestB",
		`{id: a, says: b, tests: [p TestA/two]}`:          "a: there is no p TestA/two",
		`{id: a, says: b, tests: [p.bats it]}`:            "a: there is no p.bats it",
		`{id: a, due: deploy}`:                            `"a" is there twice, or says nothing`,
	} {
		if diff := cmp.Diff(want, strings.Join(problems(read(t, []byte("[{section: s, rows: ["+text+"]}]")), tests), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A row that is tested and not listed would not show.
func TestEveryTestedRowIsListed(t *testing.T) {
	var listed []string
	for _, s := range read(t, list) {
		for _, r := range s.Rows {
			for _, test := range r.Tests {
				listed = append(listed, strings.TrimPrefix(test, "cmd/fairlead TestSpecification/"))
			}
		}
	}
	text := sources("cmd/fairlead")
	rows := regexp.MustCompile(`(?m)^\t\t"((?:endpoint|command|state|error|fields|log|metrics)-[a-z-]+)":`).FindAllStringSubmatch(text, -1)
	if len(rows) < 50 {
		t.Errorf("only %d rows were found", len(rows))
	}
	for _, m := range rows {
		if !slices.Contains(listed, m[1]) {
			t.Errorf("TestSpecification/%s is not in rows.yaml", m[1])
		}
	}
}

func TestCoverageIsUpToDate(t *testing.T) {
	const path = "../../docs/spec-coverage.md"
	got := page(read(t, list))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite with go test ./internal/speccheck -update:\n%s", path, diff)
	}
}

// page is docs/spec-coverage.md.
func page(sections []section) string {
	var body strings.Builder
	proven, due, outside := 0, map[string]int{}, 0
	for _, s := range sections {
		fmt.Fprintf(&body, "\n## %s\n\n| row | says | proof |\n|---|---|---|\n", s.Section)
		for _, r := range s.Rows {
			var proof string
			switch {
			case r.Due != "":
				due[r.Due]++
				proof = "due: " + r.Due
			case r.Outside != "":
				outside++
				proof = "outside: " + r.Outside
			default:
				proven++
				proof = "`" + strings.Join(r.Tests, "`, `") + "`"
			}
			fmt.Fprintf(&body, "| %s | %s | %s |\n", r.ID, r.Says, proof)
		}
	}
	return fmt.Sprintf(`# Coverage of the specification

Every statement of the specification and of the decisions that complete it, and the tests that prove it. Written by
%s from %s; a test fails when a row has no
proof or names a test that is not there. A test is %s, or %s; what is under TestSpecification
runs the real binary on both databases.

%d rows are proven, %d wait for the deployment, %d for the console, and %d are nothing that this product does.
`, "`go test ./internal/speccheck -update`", "`internal/speccheck/rows.yaml`", "`package Test/subtest`", "`file name of the test`", proven, due["deploy"], due["console"], outside) + body.String()
}
