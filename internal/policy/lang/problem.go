package lang

import (
	"fmt"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/spelling"
)

// Problem is one reason why a text is not a policy, or a warning about one.
type Problem struct {
	// Line and Column say where it is, both from 1 and in characters. They are 0
	// for what is wrong with the text as a whole.
	Line, Column int
	Text         string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Text)
}

// Problems is all that was found wrong with a text, in its order and up to a
// limit.
type Problems []Problem

// Error has a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

const (
	maxText = 500 // bytes of a problem
	// maxEdits is how far a name may be from what was meant, and maxKnown is
	// among how many that is looked for.
	maxEdits = 3
	maxKnown = 1_000
)

// shortened cuts a text that quotes something enormous.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// Nearest says which known name was probably meant, or nothing. What stands
// before a colon is the same in all names of a sort and makes none nearer.
func Nearest(name string, known []string) string {
	own := len(name) - 1 - strings.IndexByte(strings.TrimSuffix(name, ":"), ':')
	best := spelling.Nearest(name, known[:min(len(known), maxKnown)], min(maxEdits, (own+1)/2, own-1))
	if best == "" {
		return ""
	}
	return "; the nearest known name is " + best
}
