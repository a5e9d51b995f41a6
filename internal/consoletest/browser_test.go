//go:build !race

package consoletest

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/pgtest"
)

var (
	browser = flag.Bool("browser", false, "run the tests of console/web/e2e in a browser")
	only    = flag.String("only", "", "of those, the files whose names contain this")
	screens = flag.String("screens", "", "take pictures of every screen into dist/screens: few, or all")
)

// TestBrowser runs the tests of console/web/e2e, each as a test of its own.
func TestBrowser(t *testing.T) {
	if !*browser {
		t.Skip("this is make console-test")
	}
	r := newRig(t)
	r.vitest(t, "vitest.config.ts")
	r.vitest(t, "budgets.config.ts") // alone: what others do at the same time is not to be measured
}

// TestScreens takes the pictures.
func TestScreens(t *testing.T) {
	if *screens == "" {
		t.Skip("this is make screens")
	}
	newRig(t).vitest(t, "screens.config.ts", "SCREENS="+*screens)
}

// newRig builds what is tested and starts what all tests share.
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

// vitest runs tests in a browser on stages of their own and reports each.
func (r *rig) vitest(t *testing.T, config string, env ...string) {
	t.Helper()
	results := filepath.Join(t.TempDir(), "results.json")
	args := []string{"node_modules/vitest/vitest.mjs", "run", "--config", "e2e/" + config, "--reporter=default", "--reporter=json", "--outputFile.json=" + results}
	if *only != "" {
		args = append(args, "--passWithNoTests", *only)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = filepath.Join("..", "..", "console", "web")
	cmd.Env = append(append(os.Environ(), "CONSOLE_RIG="+r.URL, "CHROMIUM="+r.seclusion.browser, "NO_COLOR=1"), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := cmd.Run()
	report(t, results)
	if ended != nil && !t.Failed() {
		t.Errorf("vitest: %v", ended)
	}
}

// outcome is what vitest writes of its tests.
type outcome struct {
	TestResults []struct {
		Name, Message    string
		AssertionResults []struct {
			AncestorTitles  []string
			Title, Status   string
			FailureMessages []string
		}
	}
}

// report makes a test of each result. One that did not run has failed: nobody
// would miss it otherwise.
func report(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("vitest left no results: %v", err)
	}
	var all outcome
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.TestResults) == 0 && *only == "" {
		t.Error("no test ran")
	}
	for _, suite := range all.TestResults {
		name, _, _ := strings.Cut(filepath.Base(suite.Name), ".")
		if len(suite.AssertionResults) == 0 {
			t.Errorf("%s: no test ran: %s", name, suite.Message)
		}
		for _, result := range suite.AssertionResults {
			t.Run(strings.Join(append([]string{name}, append(result.AncestorTitles, result.Title)...), "/"), func(t *testing.T) {
				if result.Status != "passed" {
					t.Errorf("%s: %s", result.Status, strings.Join(result.FailureMessages, "\n"))
				}
			})
		}
	}
}
