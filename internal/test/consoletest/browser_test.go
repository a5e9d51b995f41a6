//go:build !race

package consoletest

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var (
	browser = flag.Bool("browser", false, "run the tests of console/web/e2e in a browser")
	only    = flag.String("only", "", "of those, the files whose names contain this")
	screens = flag.String("screens", "", "take pictures of every screen into dist/screens: few, or all")
)

// TestBrowser runs the tests in console/web/e2e and reports each as a subtest.
func TestBrowser(t *testing.T) {
	if !*browser {
		t.Skip("this is make console-test")
	}
	clienttest.Build(t, clienttest.Newest) // build it before a browser test waits for it: the first build takes minutes
	newRig(t).vitest(t, "vitest.config.ts")
}

// TestFigurePages checks the performance budgets of the pages with 5,000 nodes, or as many as CROWD says.
func TestFigurePages(t *testing.T) { newRig(t).vitest(t, "budgets.config.ts") }

// TestScreens takes the screenshots.
func TestScreens(t *testing.T) {
	if *screens == "" {
		t.Skip("this is make screens")
	}
	newRig(t).vitest(t, "screens.config.ts", "SCREENS="+*screens)
}

// newRig builds the programs under test and starts what all tests share.
func newRig(t *testing.T) *rig {
	t.Helper()
	fairlead, console := build(t, t.TempDir())
	pg, err := pgtest.Start(pgtest.Options{Args: []string{"-c", "max_connections=500"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return startRig(t, fairlead, console, pg)
}

// vitest runs browser tests on their own stages and reports each of them.
func (r *rig) vitest(t *testing.T, config string, env ...string) {
	t.Helper()
	r.run(t, config, env).report(t)
}

// chosen returns which test files to run: the value of -only, or else the file in -run=TestBrowser/FILE/…, which is how a
// failed test is rerun. The tests of a file depend on each other, so it runs as a whole.
func chosen() string {
	if path := strings.Split(flag.Lookup("test.run").Value.String(), "/"); *only == "" && len(path) > 1 {
		return strings.Trim(path[1], "^$")
	}
	return *only
}

// run runs the files of a vitest configuration that are chosen.
func (r *rig) run(t *testing.T, config string, env []string) outcome {
	t.Helper()
	results := filepath.Join(t.TempDir(), "results.json")
	args := []string{"node_modules/vitest/vitest.mjs", "run", "--config", "e2e/" + config, "--reporter=default", "--reporter=json", "--outputFile.json=" + results}
	if only := chosen(); only != "" {
		args = append(args, "--passWithNoTests", only)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = filepath.Join("..", "..", "..", "console", "web")
	cmd.Env = append(append(os.Environ(), "CONSOLE_RIG="+r.URL, "CHROMIUM="+r.seclusion.browser, "NO_COLOR=1"), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := cmd.Run()
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatalf("vitest left no results: %v", err)
	}
	var all outcome
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if ended != nil && !slices.ContainsFunc(all.TestResults, func(s suite) bool { return !s.passed() }) {
		t.Errorf("vitest: %v", ended)
	}
	return all
}

// outcome is the JSON report of vitest.
type outcome struct{ TestResults []suite }

// suite is the result of one test file.
type suite struct {
	Name, Message    string
	AssertionResults []struct {
		AncestorTitles  []string
		Title, Status   string
		FailureMessages []string
	}
}

func (s suite) name() string {
	name, _, _ := strings.Cut(filepath.Base(s.Name), ".")
	return name
}

// passed also returns false if a test of the suite did not run, because nobody would notice that otherwise.
func (s suite) passed() bool {
	for _, result := range s.AssertionResults {
		if result.Status != "passed" {
			return false
		}
	}
	return len(s.AssertionResults) > 0
}

// report reports each result as a subtest.
func (o outcome) report(t *testing.T) {
	t.Helper()
	if len(o.TestResults) == 0 && chosen() == "" {
		t.Error("no test ran")
	}
	for _, suite := range o.TestResults {
		if len(suite.AssertionResults) == 0 {
			t.Errorf("%s: no test ran: %s", suite.name(), suite.Message)
		}
		for _, result := range suite.AssertionResults {
			t.Run(strings.Join(append([]string{suite.name()}, append(result.AncestorTitles, result.Title)...), "/"), func(t *testing.T) {
				if result.Status != "passed" {
					t.Errorf("%s: %s", result.Status, strings.Join(result.FailureMessages, "\n"))
				}
			})
		}
	}
}
