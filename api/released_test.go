package apispec

import (
	_ "embed"
	"os"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/apitest"
)

//go:embed released.yaml
var released []byte

func TestWhatWasReleasedStillWorksUnlessTheChangelogSaysSo(t *testing.T) {
	breaks, err := apitest.Breaking(released, Document)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range apitest.Unannounced(breaks, string(changelog)) {
		t.Errorf("%s; keep what was released, or announce it in CHANGELOG.md with: **CHANGE** API: `%s`", b, b.Where)
	}
}
