package mesh_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A binary must be able to read what it writes: a new case of formatOf also needs a higher Format.
func TestBinaryKnowsTheFormatOfItsEvents(t *testing.T) {
	for _, e := range mesh.Events() {
		if needed := mesh.FormatOf([]mesh.Event{meshgen.Fill(e)}); needed > mesh.Format {
			t.Errorf("%s needs format %d, and this binary knows formats up to %d", e.Kind(), needed, mesh.Format)
		}
	}
}
