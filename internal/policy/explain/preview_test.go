package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
	"github.com/fairlead-mesh/fairlead/internal/policy/policytest"
)

const (
	thenMark   = "-- then --\n"
	effectMark = "-- effect --\n"
)

// The first line of each file is the rule that it proves. Then come a policy, the policy
// that replaces it, the nodes, optionally a viewer, and the effect.
func TestPreviewSaysWhatItsCorpusSays(t *testing.T) {
	policytest.Corpus(t, "preview", *update, after(effectMark), func(t *testing.T, given, _ string) string {
		texts, nodes, ok1 := strings.Cut(strings.TrimSuffix(given, effectMark), nodesMark)
		before, after, ok2 := strings.Cut(texts, thenMark)
		if !ok1 || !ok2 {
			t.Fatal("the file lacks a part")
		}
		nodes, name, _ := strings.Cut(nodes, "viewer ")
		from, to := worldFor(t, before, nodes), worldFor(t, after, nodes)
		var viewer *explain.End
		if name != "" {
			end, err := explain.ParseEnd(to, strings.TrimSpace(name))
			if err != nil {
				t.Fatal(err)
			}
			viewer = &end
		}
		return effectText(to, explain.Preview(from, to, viewer))
	})
}

// effectText formats an effect completely.
func effectText(w *policy.World, e *explain.Effect) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d lost, %d gained, %d changed, %d unchanged; %d lose and %d gain something; %d reach less, %d of them online\n",
		e.Lost, e.Gained, e.Changed, e.Unchanged, e.Losing, e.Gaining, e.Losers, e.LosersOnline)
	for _, s := range e.Shifts {
		fmt.Fprintf(&b, "%s -> %s%s: %d pairs, %d online%s\n", principalsText(s.From), principalsText(s.To), ownText(s.Own), s.Pairs, s.Online, samplesText(w, s.Samples))
		clause(&b, "\tlost ", servicesText(s.Lost, s.LostLines))
		clause(&b, "\tgained ", servicesText(s.Gained, s.GainedLines))
	}
	for _, s := range e.Shells {
		fmt.Fprintf(&b, "shells %s -> %s%s: %d pairs%s\n", principalsText(s.From), principalsText(s.To), ownText(s.Own), s.Pairs, samplesText(w, s.Samples))
		clause(&b, "\tlost ", shellsText(s.Lost, s.LostLines))
		clause(&b, "\tgained ", shellsText(s.Gained, s.GainedLines))
	}
	for _, s := range e.Routes {
		fmt.Fprintf(&b, "%s -> %s through %s\n", principalsText(s.From), s.Prefix, nodeNames(w, s.Through))
		clause(&b, "\tlost ", servicesText(s.Lost, s.LostLines))
		clause(&b, "\tgained ", servicesText(s.Gained, s.GainedLines))
	}
	for _, f := range e.Tests {
		fmt.Fprintf(&b, "%s\n", f.Text)
	}
	for _, g := range e.Guards {
		fmt.Fprintf(&b, "%s: %s (%s)\n", g.Kind, g.Text, nodeNames(w, g.Nodes))
	}
	return b.String()
}

func principalsText(p explain.Principals) string {
	text := strings.Join(p.Names, " | ")
	if more := p.Count - len(p.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func ownText(own bool) string {
	if own {
		return " of the same person"
	}
	return ""
}

func samplesText(w *policy.World, pairs []explain.NodePair) (text string) {
	for _, p := range pairs {
		text += " " + nodeNames(w, []mesh.NodeID{p.From}) + ">" + nodeNames(w, []mesh.NodeID{p.To})
	}
	return text
}

func nodeNames(w *policy.World, ids []mesh.NodeID) string {
	var names []string
	for _, id := range ids {
		n, _ := w.Nodes.Get(id)
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

func servicesText(all []lang.Service, lines []lang.Line) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, s.String())
	}
	return at(texts, lines)
}

func shellsText(all []explain.ShellUser, lines []lang.Line) string {
	var texts []string
	for _, u := range all {
		text := u.Name
		if u.Check {
			text += " after a check"
		}
		texts = append(texts, text)
	}
	return at(texts, lines)
}

func at(texts []string, lines []lang.Line) string {
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s by %v", strings.Join(texts, ", "), lines)
}

// clause writes a line if text is not empty.
func clause(b *strings.Builder, what, text string) {
	if text != "" {
		fmt.Fprintf(b, "%s%s\n", what, text)
	}
}
