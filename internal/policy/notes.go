package policy

import (
	"fmt"
	"slices"
)

// maxNotes bounds what is noted of one kind.
const maxNotes = 20

// Notes are the document's warnings, and what of it means nobody who is there. That
// may be meant: a user can be named before the first sign-in.
func (w *World) Notes() (notes []string) {
	if w.Doc == nil {
		return nil
	}
	for _, warning := range w.Doc.Warnings() {
		notes = append(notes, warning.String())
	}
	people := map[string]bool{}
	for u := range w.Users() {
		for _, name := range namesOf(u) {
			people[name] = true
		}
	}
	var strangers []string
	for _, name := range w.Doc.Users() {
		if !people[name] {
			strangers = append(strangers, name)
		}
	}
	for _, name := range strangers[:min(len(strangers), maxNotes)] {
		note := fmt.Sprintf("there is no user %s", name)
		if _, ok := w.NodeNamed(name); ok {
			note += ", but a node of that name: a policy names nodes by a tag, by an address, or by an entry of hosts"
		}
		notes = append(notes, note)
	}
	if more := len(strangers) - maxNotes; more > 0 {
		notes = append(notes, fmt.Sprintf("there are not %d more users who are named", more))
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
