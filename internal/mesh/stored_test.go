package mesh_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A log written by an earlier version produces the same objects as it did then. It
// contains events of all kinds that existed then.
func TestEarlierLogsReplayAsTheyDid(t *testing.T) {
	log, err := os.ReadFile("testdata/log-2026-11.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s, kinds := mesh.Empty(), map[mesh.Kind]bool{}
	for line := range bytes.Lines(log) {
		evs, err := mesh.DecodeEvents(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range evs {
			kinds[e.Kind()] = true
		}
		s, _ = mesh.Apply(s, s.Rev+1, evs...)
	}
	if len(kinds) != 30 {
		t.Errorf("the log has %d kinds of events, want 30", len(kinds))
	}
	want, err := os.ReadFile("testdata/objects-2026-11.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), meshgen.Dump(s)); diff != "" {
		t.Errorf("then (-) and now (+):\n%s", diff)
	}
}
