package apispec

import (
	"bytes"
	_ "embed"
	"os"
	"regexp"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
)

// released is openapi.yaml of the last release.
//
//go:embed released.yaml
var released []byte

// releasedBy matches the first line of released.yaml, as written by make release. A file
// without it, such as a copy of openapi.yaml, was written by something else.
var releasedBy = regexp.MustCompile(
	`^# openapi\.yaml (?:before the first release|of v(\S+), the last release)\. Only make release writes this file\.\n`)

func TestWhatWasReleasedStillWorksUnlessTheChangelogSaysSo(t *testing.T) {
	head := releasedBy.FindSubmatch(released)
	if head == nil {
		t.Fatal("released.yaml was not written by make release: bring back the last one")
	}
	breaks, err := apitest.Breaking(released, Document)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	left, err := apitest.Unannounced(breaks, string(changelog), string(head[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range left {
		t.Errorf("%s; keep what was released, or announce it in CHANGELOG.md with: **CHANGE** API: `%s`", b, b.Where)
	}
}

func TestSnapshotBeginsAsMakeReleaseWritesIt(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`sed "1i(.*)" api/openapi\.yaml >api/released\.yaml`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("make release does not write released.yaml")
	}
	head := releasedBy.FindSubmatch(append(bytes.Replace(line[1], []byte("$$VERSION"), []byte("v1.2.3"), 1), '\n'))
	if head == nil || string(head[1]) != "1.2.3" {
		t.Errorf("make release begins the file with %s", line[1])
	}
}
