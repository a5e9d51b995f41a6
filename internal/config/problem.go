package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing to change, and where.
type Problem struct {
	File      string // the file, or the environment variable the value came from
	Line      int    // 0 when the problem has no line
	Key       string // empty when the file as a whole is meant
	Text      string
	WrongType bool // the value is not of the type the key takes
}

// String is the problem on one line: place, key, text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	for _, part := range []string{p.Key, p.Text} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// Problems is the error Load returns: all of them, in the order of the file,
// then those that have no line, then those of the environment.
type Problems []Problem

// Error is one line that operators search for, then one line per problem.
func (ps Problems) Error() string {
	var b strings.Builder
	b.WriteString("failed to parse configuration")
	if slices.ContainsFunc(ps, func(p Problem) bool { return p.WrongType }) {
		b.WriteString(": yaml: unmarshal errors")
	}
	for _, p := range ps {
		fmt.Fprintf(&b, "\n  %s", p)
	}
	return b.String()
}

// inOrder sorts ps as Problems promises; file is the configuration file.
func inOrder(ps []Problem, file string) {
	rank := func(p Problem) int {
		switch {
		case p.File != file:
			return 2
		case p.Line == 0:
			return 1
		default:
			return 0
		}
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(rank(a)-rank(b), a.Line-b.Line)
	})
}

// nearest returns the name that takes the fewest edits to reach from name. A
// known name that ends in the same last word wins over spelling: people forget
// the section more often than they misspell the key.
func nearest(name string, known []string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	best, fewest := "", 1<<30
	for _, k := range known {
		d := edits(name, k)
		if strings.HasSuffix(k, "."+last) {
			d = 0
		}
		if d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// edits is the number of inserted, deleted or replaced bytes between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
