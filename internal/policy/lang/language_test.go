package lang_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
	"github.com/fairlead-mesh/fairlead/internal/policy/policytest"
)

var update = flag.Bool("update", false, "rewrite what the files of testdata expect")

const (
	means = "-- means --\n"
	fails = "-- fails --\n"
)

// The first line of each file is the rule that it proves. Then come a policy, and its
// meaning or what is wrong with it.
func TestTheLanguageMeansWhatItsCorpusSays(t *testing.T) {
	policytest.Corpus(t, "language", *update, divide, func(_ *testing.T, text, _ string) string { return outcome([]byte(text)) })
}

// divide separates a policy from the expected result.
func divide(file string) (text, want string) {
	for _, mark := range []string{means, fails} {
		if i := strings.Index(file, mark); i >= 0 {
			return file[:i], file[i:]
		}
	}
	return file, ""
}

func outcome(text []byte) string {
	doc, problems := lang.Parse(text)
	if len(problems) > 0 {
		return fails + problems.Error() + "\n"
	}
	return means + describe(doc)
}

// describe formats the complete meaning of a document.
func describe(d *lang.Doc) string {
	var b strings.Builder
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "line %d, column %d: warning: %s\n", w.Line, w.Column, w.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Groups)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(d.Groups[name], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Provided)) {
		fmt.Fprintf(&b, "line %d, column %d: %s comes from the identity provider\n", d.Provided[name].Line, d.Provided[name].Column, name)
	}
	for _, tag := range slices.Sorted(maps.Keys(d.TagOwners)) {
		fmt.Fprintf(&b, "%s: owned by %s\n", tag, strings.Join(d.TagOwners[tag], ", "))
	}
	for _, r := range d.Rules {
		fmt.Fprintf(&b, "line %d: %s reach\n", r.Line, targets(r.Src))
		for _, dst := range r.Dst {
			fmt.Fprintf(&b, "\t%s%s\n", targetText(dst.Target), services(dst.Services))
		}
		clause(&b, "\tvia ", strings.Join(r.Via, ", "))
		clause(&b, "\twith ", capabilities(r.App))
		clause(&b, "\tbecause ", r.Comment)
	}
	for _, r := range d.SSH {
		fmt.Fprintf(&b, "line %d: %s open shells of %s as %s\n", r.Line, targets(r.Src), targets(r.Dst), strings.Join(r.Users, ", "))
		if r.Check {
			fmt.Fprintf(&b, "\tafter a check that holds for %v\n", r.CheckPeriod)
		}
		clause(&b, "\twith the variables ", strings.Join(r.AcceptEnv, ", "))
	}
	for _, r := range d.Approvers.Routes {
		fmt.Fprintf(&b, "%s: approved for %s\n", r.Prefix, targets(r.Who))
	}
	clause(&b, "exit nodes: approved for ", targets(d.Approvers.ExitNode))
	for _, a := range d.Attributes {
		fmt.Fprintf(&b, "line %d: %s have %s\n", a.Line, targets(a.Targets), capabilities(a.Attrs))
	}
	if d.RandomizeClientPort {
		b.WriteString("client ports are random\n")
	}
	for _, t := range d.Tests {
		fmt.Fprintf(&b, "line %d: %s by protocol %d\n", t.Line, targetText(t.Src), t.Protocol)
		for _, dst := range t.Accept {
			fmt.Fprintf(&b, "\treaches %s port %d: %s\n", targetText(dst.Target), dst.Port, dst.Text)
		}
		for _, dst := range t.Deny {
			fmt.Fprintf(&b, "\tdoes not reach %s port %d: %s\n", targetText(dst.Target), dst.Port, dst.Text)
		}
	}
	for _, t := range d.SSHTests {
		fmt.Fprintf(&b, "line %d: %s at %s\n", t.Line, targetText(t.Src), targets(t.Dst))
		clause(&b, "\tgets in as ", strings.Join(t.Accept, ", "))
		clause(&b, "\tis checked as ", strings.Join(t.Check, ", "))
		clause(&b, "\tis refused as ", strings.Join(t.Deny, ", "))
	}
	clause(&b, "users: ", strings.Join(d.Users(), ", "))
	return b.String()
}

// clause writes a line if text is not empty.
func clause(b *strings.Builder, what, text string) {
	if text != "" {
		fmt.Fprintf(b, "%s%s\n", what, text)
	}
}

func targets(ts []lang.Target) string {
	texts := make([]string, len(ts))
	for i, t := range ts {
		texts[i] = targetText(t)
	}
	return strings.Join(texts, ", ")
}

func targetText(t lang.Target) string {
	switch t.Kind {
	case lang.User:
		return t.Name + "@"
	case lang.Addresses:
		return strings.Trim(fmt.Sprint(t.Prefixes), "[]")
	default:
		return t.Name
	}
}

func services(all []lang.Service) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(" at")
		for _, p := range s.Ports {
			switch {
			case p == lang.PortRange{First: 0, Last: 65535}:
				b.WriteString(" *")
			case p.First == p.Last:
				fmt.Fprintf(&b, " %d", p.First)
			default:
				fmt.Fprintf(&b, " %d-%d", p.First, p.Last)
			}
		}
		if len(s.Protocols) > 0 {
			fmt.Fprintf(&b, " of protocol %d", s.Protocols[0])
		}
	}
	return b.String()
}

func capabilities(all map[string][]json.RawMessage) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := name
		for _, value := range all[name] {
			text += " " + string(value)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
