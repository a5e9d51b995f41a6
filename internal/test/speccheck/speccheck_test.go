package speccheck

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
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
	Tests   []string // "package Test" or "package Test/subtest"
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

// problems returns mistakes in the list itself: duplicate rows, and rows without a proof.
func problems(sections []section) (found []string) {
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
		}
	}
	return found
}

func TestEveryRowHasAProof(t *testing.T) {
	for _, p := range problems(read(t, list)) {
		t.Error(p)
	}
}

// Prove that the check can fail.
func TestRowsWithoutAProofAreFound(t *testing.T) {
	for text, want := range map[string]string{
		`{id: a, says: b, tests: [p TestA, p TestA/one]}`: "",
		`{id: a, says: b, due: console}`:                  "",
		`{id: a, says: b, outside: not ours}`:             "",
		`{id: a, says: b}`:                                "a: give exactly one of tests, due and outside",
		`{id: a, says: b, due: deploy, tests: [p TestA]}`: "a: give exactly one of tests, due and outside",
		`{id: a, says: b, due: later}`:                    "a: nothing is due with later",
		`{id: a, due: deploy}`:                            `"a" is there twice, or says nothing`,
	} {
		if diff := cmp.Diff(want, strings.Join(problems(read(t, []byte("[{section: s, rows: ["+text+"]}]"))), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// With -results, the page is compared with the tests that passed; without it, with the tests that should
// pass.
func TestCoverageIsUpToDate(t *testing.T) {
	const path = "../../../docs/spec-coverage.md"
	got := page(read(t, list), ranTests(t))
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
		t.Errorf("%s (-want +got), rewrite with go test ./internal/test/speccheck -update:\n%s", path, diff)
	}
}

// page returns the content of docs/spec-coverage.md. A nil ran stands for a run in which every test passed.
func page(sections []section, ran outcomes) string {
	var body strings.Builder
	proven, open, due, outside := 0, 0, map[string]int{}, 0
	for _, s := range sections {
		fmt.Fprintf(&body, "\n## %s\n\n| row | says | proof |\n|---|---|---|\n", s.Section)
		for _, r := range s.Rows {
			var proof string
			switch missing := ran.missing(r.Tests); {
			case r.Due != "":
				due[r.Due]++
				proof = "due: " + r.Due
			case r.Outside != "":
				outside++
				proof = "outside: " + r.Outside
			case ran != nil && len(missing) > 0:
				open++
				proof = "**not proven**: " + strings.Join(missing, ", ")
			default:
				proven++
				proof = "`" + strings.Join(r.Tests, "`, `") + "`"
			}
			fmt.Fprintf(&body, "| %s | %s | %s |\n", r.ID, r.Says, proof)
		}
	}
	total := fmt.Sprintf("%d rows are proven, %d wait for the deployment, %d for the console, and %d are outside this product.", proven, due["deploy"], due["console"], outside)
	if open > 0 {
		total = fmt.Sprintf("**%d rows are not proven.** ", open) + total
	}
	return fmt.Sprintf(`# Coverage of the specification

Every statement of the specification and of the decisions that complete it, and the tests that prove it. The rows come from
%s. CI runs all tests, then reads their reports and fails if a test named here failed, was skipped or did not
run (%s). A test is named by package, function and subtest; those under TestSpecification run the real
binary on both databases. [specification.md](specification.md) lists where Fairlead deviates from the specification, and why.

%s
`, "`internal/test/speccheck/rows.yaml`", "`make speccheck`", total) + body.String()
}
