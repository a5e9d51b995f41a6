package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLoad checks that no file and no variable makes Load panic, that every rejection
// reports a problem with a text, and that loading an accepted configuration again
// gives the same result.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../deploy/config.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, "")
	for _, s := range []string{
		"", "a: &a [*a]", "<<: {a: b}", "? [a]\n: b", "dns: {nameservers: {split: {a.b: [1.1.1.1]}}}", "---\n---\n", "log:\n- a\n", "!!binary a: b",
		"dns: {extra_records: [{name: a, type: A, value: 1.1.1.1}]}", "policy: {path: /a}\noidc:\n", "\xff\xfe", "database: {postgres: {host: a}}",
	} {
		f.Add([]byte(s), "FAIRLEAD_DERP_URLS="+s)
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, data []byte, variable string) {
		if strings.Contains(variable, fileSuffix) || strings.HasPrefix(variable, configVariable) {
			t.Skip("would read other files of this machine")
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, []string{variable})
		var problems Problems
		if err != nil && (!errors.As(err, &problems) || len(problems) == 0 || problems[0].Text == "" || problems[0].File == "") {
			t.Fatalf("refused without a reason: %#v", err)
		}
		again, errAgain := Load(path, []string{variable})
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("first %v, then %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(c, again, equal()); diff != "" || c.Hash() != again.Hash() || c.String() != again.String() {
			t.Fatalf("read twice, differs: %s", diff)
		}
	})
}
