package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/spelling"
)

// A Problem is one thing to fix, and where.
type Problem struct {
	File      string // the file, or the environment variable that holds the value
	Line      int    // 0 if the problem has no line
	Key       string // empty if it concerns the whole file; several are separated by commas
	Text      string
	WrongType bool // the value has the wrong type for the key
	Minor     bool // a warning about a key that has no effect
}

// String returns the problem on one line: place, key, text.
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

// Problems is the error that Load returns: all problems, in the order of the file, then those without a line,
// then those of the environment.
type Problems []Problem

// Error returns a first line that operators search for, then one line per problem.
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

// inOrder sorts ps in the order that Problems documents; file is the configuration file.
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

// folded merges minor warnings with the same text and puts the others last, where readers look: a Headscale
// file has twenty keys without effect, and perhaps one that matters.
func folded(warnings []Problem) []Problem {
	var minor, major []Problem
	for _, w := range warnings {
		if !w.Minor {
			major = append(major, w)
			continue
		}
		same := func(m Problem) bool { return m.File == w.File && m.Text == w.Text }
		if i := slices.IndexFunc(minor, same); i >= 0 {
			minor[i].Key += ", " + w.Key
		} else {
			minor = append(minor, w)
		}
	}
	return append(minor, major...)
}

// unknown returns an error about an unknown name, with the known one that was probably meant. A known name
// with the same last word is preferred over similar spelling: people forget the section more often than they
// misspell the key.
func unknown(what, name string, known []string) error {
	last := "." + name[strings.LastIndexByte(name, '.')+1:]
	near := spelling.Nearest(name, known, len(strings.TrimPrefix(name, variablePrefix))/3)
	for _, k := range known {
		if strings.HasSuffix(k, last) || near == "" && strings.HasPrefix(name, k+"_") {
			near = k
			break
		}
	}
	if near == "" {
		return fmt.Errorf("unknown %s; all are listed at https://github.com/fairlead-mesh/fairlead/blob/main/docs/configuration.md", what)
	}
	return fmt.Errorf("unknown %s; did you mean %s?", what, near)
}
