// Package policytest runs the test corpora of the language and of explanations.
package policytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Corpus runs a check on each file of testdata/folder. divide separates the input from the
// expected output. With update, the actual output is written to the file instead. The first
// line of each file is a comment with the rule that it proves.
func Corpus(t *testing.T, folder string, update bool,
	divide func(file string) (given, want string), judge func(t *testing.T, given, want string) string,
) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + folder + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want := divide(string(raw))
			if !strings.HasPrefix(given, "// ") || len(raw) > 4<<10 {
				t.Fatal("the file is larger than 4 KiB or does not begin with the rule it proves")
			}
			got := judge(t, given, want)
			if update {
				if err := os.WriteFile(file, []byte(given+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got), rewrite with -update:\n%s", file, diff)
			}
		})
	}
}
