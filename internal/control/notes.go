package control

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// maxNote is how long a note may be, in characters.
const maxNote = 1000

// SetNote replaces the note of a node. An empty string removes it. Clients do not see
// notes, so none gets an update.
func (s *Nodes) SetNote(ctx context.Context, a mesh.Actor, ref, text, ifRevision string) (*mesh.Node, error) {
	if length := utf8.RuneCountInString(text); length > maxNote {
		return nil, refuse(Invalid, "text", "the note has %d characters; the maximum is %d", length, maxNote)
	}
	// Unlike a name, a note may have several lines.
	if err := checkText("text", strings.NewReplacer("\n", " ", "\t", " ").Replace(text), len(text)); err != nil {
		return nil, err
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(_ *policy.World, now mesh.Time, n *mesh.Node) (bool, error) {
		was := n.Note.Text
		if n.Note = (mesh.Note{Text: text, Author: a.String(), At: now}); text == "" {
			n.Note = mesh.Note{}
		}
		return text != was, nil
	})
	if err != nil {
		return nil, err
	}
	if after != before {
		s.logFor(a).Info("node note changed", "node", after.ID, "name", after.Name, "characters", utf8.RuneCountInString(text))
	}
	return after, nil
}
