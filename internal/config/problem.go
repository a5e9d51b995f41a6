package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/spelling"
)

// A Problem is one thing to change, and where.
type Problem struct {
	File      string // the file, or the environment variable the value came from
	Line      int    // 0 when the problem has no line
	Key       string // empty when the file as a whole is meant; several with commas between them
	Text      string
	WrongType bool // the value is not of the type the key takes
	Minor     bool // a warning about a key that makes no difference
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

// folded makes one warning of the minor ones with the same text and puts the
// others last, where readers look: a file of Headscale has twenty keys that make
// no difference, and perhaps one that does.
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

// unknown says that a name means nothing, and which known one was probably meant.
// A known name that ends in the same last word wins over spelling: people forget
// the section more often than they misspell the key.
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
		return fmt.Errorf("unknown %s; docs/configuration.md lists all", what)
	}
	return fmt.Errorf("unknown %s; the nearest known one is %s", what, near)
}
