package lang

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/spelling"
)

// Problem is one reason why a text is not a valid policy, or a warning.
type Problem struct {
	// Line and Column count from 1, columns in characters. They are 0 for a problem with
	// the whole text.
	Line, Column int
	Text         string
}

func (p Problem) compare(q Problem) int { return cmp.Or(p.Line-q.Line, p.Column-q.Column) }

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Text)
}

// Problems holds the problems of a text, in the order of the text and up to a limit.
type Problems []Problem

// Error returns a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

const (
	maxText = 500 // maximum length of a problem in bytes
	// maxEdits limits the edit distance to a suggested name, and maxKnown the number of
	// names that are searched.
	maxEdits = 3
	maxKnown = 1_000
)

// shortened truncates a message that quotes something very long.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// Nearest returns a hint with the known name that was probably meant, or an empty string.
// The prefix up to a colon is the same in all names of a kind, so it does not count as
// similarity.
func Nearest(name string, known []string) string {
	own := len(name) - 1 - strings.IndexByte(strings.TrimSuffix(name, ":"), ':')
	best := spelling.Nearest(name, known[:min(len(known), maxKnown)], min(maxEdits, (own+1)/2, own-1))
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}
