package backup

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A database of an earlier version still yields the same objects as when it was
// written, on both engines. The backup is of a database with schema version 10 in
// which every column holds a value.
func TestEarlierDatabasesLoadAsTheyWere(t *testing.T) {
	want, err := os.ReadFile("../mesh/testdata/objects-2026-11.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for engine, empty := range engines {
		t.Run(engine, func(t *testing.T) {
			file, err := os.Open("testdata/schema-10.backup")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			to := empty(t)
			if _, err := Restore(t.Context(), file, nil, Target{Database: to}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), meshgen.Dump(load(t, to))); diff != "" {
				t.Errorf("then (-) and now (+):\n%s", diff)
			}
		})
	}
}
