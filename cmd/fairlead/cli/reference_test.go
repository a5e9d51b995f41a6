package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestEveryCommandHasAManPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if r := fairlead(t, "", []string{"man", "--dir", dir}); r.status != 0 {
		t.Fatal(&r.stderr)
	}
	request := regexp.MustCompile(`^\.(TH|SH|PP|TP|B|BR|nf|fi)\b`)
	for _, cmd := range described(New(Env{})) {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, ".") && !request.MatchString(line) || strings.HasPrefix(line, "'") {
				t.Errorf("%s: man takes this for a command: %s", cmd.CommandPath(), line)
			}
		}
	}
}

func TestManTextIsTextWhateverItHas(t *testing.T) {
	got := manText(".first\n'second\n\na\\b - é…")
	if diff := cmp.Diff("\\&.first\n\\&'second\n.PP\na\\eb \\- \\[u00E9]\\[u2026]", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReferenceDescribesEveryCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cli.md")
	if r := fairlead(t, "", []string{"man", "--markdown", file}); r.status != 0 {
		t.Fatal(&r.stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	eachCommand(New(Env{}), func(cmd *cobra.Command) {
		if cmd.HasParent() && cmd.IsAvailableCommand() && !strings.Contains(string(text), "\n## "+cmd.CommandPath()+"\n") {
			t.Errorf("%s has no section", cmd.CommandPath())
		}
	})
	if got := markdownText("a <b> *c* [d] `e`"); got != "a \\<b\\> \\*c\\* \\[d\\] \\`e\\`" {
		t.Errorf("escaped: %s", got)
	}
}
