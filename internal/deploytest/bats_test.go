//go:build !race

package deploytest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// tapLine is a result of bats: "ok 3 name", "ok 3 name # skip reason" or "not ok 3 name".
var tapLine = regexp.MustCompile(`^(not )?ok \d+ (.*?)( # skip.*)?$`)

func TestProxyScript(t *testing.T) {
	t.Parallel()
	runBats(t, "scripts/test/proxy.bats", "PROXY_IMAGE="+images.name("proxy"))
}

// runBats makes a subtest of every test of a file.
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
