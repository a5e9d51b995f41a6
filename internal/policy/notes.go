package policy

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxNotes bounds what is noted of one kind.
const maxNotes = 20

// WarningsFor returns the document's warnings, and warnings about users it names who do
// not exist. That may be intended: a user can be named before the first sign-in.
func (d *Doc) WarningsFor(s *mesh.Snapshot) []Problem {
	if d == nil {
		return nil
	}
	people := map[string]bool{}
	for u := range s.Users() {
		for _, name := range namesOf(u) {
			people[name] = true
		}
	}
	var strangers []string
	for _, name := range d.Users() {
		if !people[name] {
			strangers = append(strangers, name)
		}
	}
	warnings := slices.Clone(d.warnings)
	for _, name := range strangers[:min(len(strangers), maxNotes)] {
		text := "there is no user " + name
		if _, ok := s.NodeNamed(name); ok {
			text += ", but there is a node of that name: a policy names nodes by tag, by address, or by an entry in hosts"
		}
		warnings = append(warnings, Problem{Text: text})
	}
	if more := len(strangers) - maxNotes; more > 0 {
		warnings = append(warnings, Problem{Text: fmt.Sprintf("%d more users in the policy do not exist", more)})
	}
	return warnings
}

// Notes returns WarningsFor, and the tags that nodes carry but the document does not define.
func (w *World) Notes() (notes []string) {
	if w.Doc == nil {
		return nil
	}
	for _, warning := range w.Doc.WarningsFor(w.Snapshot) {
		notes = append(notes, warning.String())
	}
	var tags []string
	for n := range w.Nodes() {
		for _, tag := range n.Tags {
			if _, ok := w.Doc.owners[tag]; !ok {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	for _, tag := range tags[:min(len(tags), maxNotes)] {
		notes = append(notes, fmt.Sprintf("nodes carry %s, which tagOwners does not define", tag))
	}
	return notes
}
