package textdiff_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/textdiff"
)

func TestDiffReadsAsDiffOfTheSystem(t *testing.T) {
	from := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n"
	for name, c := range map[string]struct{ to, want string }{
		"equal":   {from, ""},
		"changed": {strings.Replace(from, "d\n", "D\n", 1), "--- old\n+++ new\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n"},
		"added":   {from + "n\n", "--- old\n+++ new\n@@ -11,3 +11,4 @@\n k\n l\n m\n+n\n"},
		"two parts": {
			"A\n" + from[2:len(from)-2] + "M\n",
			"--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n d\n@@ -10,4 +10,4 @@\n j\n k\n l\n-m\n+M\n",
		},
		"no newline at the end": {from[:len(from)-1], "--- old\n+++ new\n@@ -10,4 +10,4 @@\n j\n k\n l\n-m\n+m\n\\ No newline at end of file\n"},
	} {
		if d := cmp.Diff(c.want, textdiff.Unified("old", "new", from, c.to)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got, want := textdiff.Unified("old", "new", "", "x\n"), "--- old\n+++ new\n@@ -0,0 +1 @@\n+x\n"; got != want {
		t.Errorf("from nothing: %q, want %q", got, want)
	}
}

// For any two texts, the program patch turns the first into the second.
func TestDiffIsWhatPatchUnderstands(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("there is no patch on this machine")
	}
	draw := rand.New(rand.NewPCG(4, 2))
	text := func(lines, letters int) string {
		var b strings.Builder
		for range draw.IntN(lines + 1) {
			b.WriteString(string(rune('a'+draw.IntN(letters))) + "\n")
		}
		return b.String()
	}
	for i := range 60 {
		from, to := text(40, 1+i%8), text(40, 1+i%8)
		if i%10 == 9 { // too different to be compared line by line
			from, to = strings.Repeat("x\n", 700), strings.Repeat("y\n", 700)+to
		}
		file := filepath.Join(t.TempDir(), "policy")
		if err := os.WriteFile(file, []byte(from), 0o600); err != nil {
			t.Fatal(err)
		}
		diff := textdiff.Unified("old", "new", from, to)
		if diff == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), patch, "--quiet", "--fuzz=0", file)
		cmd.Stdin = strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("patch: %v\n%s\n%s", err, out, diff)
		}
		got, err := os.ReadFile(file)
		if err != nil && to != "" { // patch deletes files that become empty
			t.Fatal(err)
		}
		if string(got) != to {
			t.Fatalf("%q becomes %q, want %q, by\n%s", from, got, to, diff)
		}
	}
}
