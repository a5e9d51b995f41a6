package explain

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// maxNotes limits the number of notes of one kind.
const maxNotes = 20

// Notes returns the warnings about a policy, and about tags of nodes that it does not
// define.
func Notes(w *policy.World) (notes []string) {
	if w.Doc == nil {
		return nil
	}
	for _, warning := range w.Doc.WarningsFor(w.Snapshot) {
		notes = append(notes, warning.String())
	}
	var tags []string
	for n := range w.Nodes.All() {
		for _, tag := range n.Tags {
			if _, ok := w.Doc.TagOwners[tag]; !ok {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	for _, tag := range tags[:min(len(tags), maxNotes)] {
		notes = append(notes, fmt.Sprintf("nodes have %s, which tagOwners does not define", tag))
	}
	return notes
}
