//go:build !race

package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tapLine matches one bats result: "ok 3 name", "ok 3 name # skip reason" or "not ok 3 name".
var tapLine = regexp.MustCompile(`^(not )?ok \d+ (.*?)( # skip.*)?$`)

func TestProxyScript(t *testing.T) {
	t.Parallel()
	runBats(t, "scripts/test/proxy.bats", "PROXY_IMAGE="+images.name("proxy"))
}

var shellScript = regexp.MustCompile(`^#!.*\b(sh|bash|bats)\n`)

func TestShellScriptsHaveNoCommonMistakes(t *testing.T) {
	t.Parallel()
	files, err := command(t.Context(), root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for _, name := range strings.Split(strings.TrimSuffix(files, "\x00"), "\x00") {
		// Skip files that git still lists but that were deleted in the working tree.
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil && shellScript.Match(text) {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) < 5 {
		t.Errorf("only %q were found", scripts)
	}
	if _, err := command(t.Context(), root, "shellcheck", scripts...); err != nil {
		t.Error(err)
	}
}

func TestSetupScript(t *testing.T) {
	t.Parallel()
	runBats(t, "scripts/test/setup.bats")
}

// runBats runs a bats file and reports each of its tests as a subtest.
func runBats(t *testing.T, file string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bats", "--tap", file)
	cmd.Dir, cmd.Env = root, append(environ(), env...)
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	ran := 0
	for i, line := range lines {
		m := tapLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		ran++
		t.Run(m[2], func(t *testing.T) {
			if m[3] != "" {
				t.Skip(m[3])
			}
			if m[1] == "" {
				return
			}
			for _, line := range lines[i+1:] {
				if !strings.HasPrefix(line, "#") {
					break
				}
				t.Log(line)
			}
			t.Fail()
		})
	}
	if err != nil && !t.Failed() || ran == 0 {
		t.Fatalf("bats: %v\n%s", err, out)
	}
}
