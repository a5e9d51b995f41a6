package lang_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func TestInvalidPoliciesReportThePosition(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "the policy is empty: use {} to let all nodes reach each other",
		"[]":                           "line 1, column 1: the policy must be an object",
		"{\n  \"groups\": 7\n}":        "line 2, column 13: groups must be an object",
		"{\n/* äö */ \"groups\": 7\n}": "line 2, column 20: groups must be an object",
		"{\n/* äö */ é":                "line 2, column 10: invalid character 'é' at start of value",
		"{\"\xff\": 1}":                "line 1, column 3: the policy is not valid UTF-8",
		"{\n\"groups\": 1,\n\"tagOwners\": 2}": "line 2, column 11: groups must be an object\n" +
			"line 3, column 14: tagOwners must be an object",
		strings.Repeat(" ", 1<<20+1): "the policy is larger than 1024 KiB",
		strings.Repeat("[", 1<<20):   "the policy has more than 100000 lists and objects",
	} {
		_, problems := lang.Parse([]byte(text))
		if diff := cmp.Diff(want, problems.Error()); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", text, diff)
		}
	}
}

// The cost of a hostile document is limited by its parts, not by its size alone.
func TestLargeDocumentsAreRefusedByTheirParts(t *testing.T) {
	sets := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"ipsets": {"ipset:0": ["10.0.0.0"]`)
		for i := range n {
			fmt.Fprintf(&b, `, "ipset:%d": ["ipset:%d", "10.%d.%d.2"]`, i+1, i, i>>8, i&255)
		}
		return b.String() + "}}"
	}
	for name, c := range map[string]struct{ text, want string }{
		"rules": {
			`{"acls": [` + strings.Repeat(`{"action":"accept","src":[],"dst":[]},`, 10_001) + `]}`,
			"acls has more than 10000 entries",
		},
		"targets": {
			`{"ssh": [{"action": "accept", "users": ["root"], "dst": [], "src": [` + strings.Repeat(`"*",`, 100_001) + `]}]}`,
			"the policy has more than 100000 sources and destinations",
		},
		"depth": {
			`{"nodeAttrs": [{"target": ["*"], "app": {"example.com/a": [` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `]}}]}`,
			"the value is nested more than 32 levels deep",
		},
		"sets": {sets(2_000), "the ipsets are too large: they take more than 100000 steps to build"},
	} {
		_, problems := lang.Parse([]byte(c.text))
		if len(problems) != 1 || problems[0].Text != c.want {
			t.Errorf("%s: %v, want %s", name, problems, c.want)
		}
	}
}

func TestTargetsSayWhereTheyStandAndHowTheyWereWritten(t *testing.T) {
	doc, problems := lang.Parse([]byte(`{
		"hosts": {"nas": "10.0.0.9"},
		"acls": [
			{
				"action": "accept",
				"src": ["Alice@",
					"[fd00::1]"],
				"dst": [
					"nas:80"
				],
			},
		],
	}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []lang.Rule{{
		Line: 4,
		Src: []lang.Target{
			{Kind: lang.User, Name: "alice", Line: 6},
			{Kind: lang.Addresses, Name: "[fd00::1]", Prefixes: []netip.Prefix{netip.MustParsePrefix("fd00::1/128")}, Line: 7},
		},
		Dst: []lang.Destination{{
			Target:   lang.Target{Kind: lang.Addresses, Name: "nas", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")}, Line: 9},
			Services: []lang.Service{{Ports: []lang.PortRange{{First: 80, Last: 80}}}},
		}},
	}}
	if diff := cmp.Diff(want, doc.Rules, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProblemsEndAtALimit(t *testing.T) {
	_, problems := lang.Parse([]byte(`{"groups": {"group:a": [` + strings.Repeat(`"*",`, 100) + `]}}`))
	if len(problems) != 20 {
		t.Errorf("%d problems, want 20", len(problems))
	}
}

// FuzzParse checks that every text is either a policy or has problems, that comments and
// spaces have no meaning, and that documents are in normal form.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/language/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		text, _ := divide(string(raw))
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, problems := lang.Parse(text)
		if (doc == nil) != (len(problems) > 0) {
			t.Fatalf("document %v and problems %v", doc, problems)
		}
		again, others := lang.Parse(text)
		if diff := cmp.Diff(problems, others); diff != "" {
			t.Fatalf("the same text has other problems: %s", diff)
		}
		if doc == nil {
			for _, p := range problems {
				if p.Text == "" || p.Line < 0 || p.Line > 1+strings.Count(string(text), "\n") {
					t.Fatalf("problem %+v", p)
				}
			}
			return
		}
		if a, b := describe(doc), describe(again); a != b {
			t.Fatalf("the same text means something else: %s", cmp.Diff(a, b))
		}
		normal(t, doc)
		oneLine, err := hujson.Minimize(text)
		if err != nil {
			t.Fatal(err)
		}
		bare, problems := lang.Parse(oneLine)
		if len(problems) > 0 {
			t.Fatalf("without comments: %v", problems)
		}
		if a, b := withoutLines(describe(doc)), withoutLines(describe(bare)); a != b {
			t.Fatalf("comments and spaces mean something: %s", cmp.Diff(a, b))
		}
	})
}

func withoutLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "line "); ok {
			_, line, _ = strings.Cut(rest, ":")
		}
		b.WriteString(line)
	}
	return b.String()
}

// normal checks that a document has the normal form that its compiler relies on.
func normal(t *testing.T, d *lang.Doc) {
	target := func(ts ...lang.Target) {
		for _, x := range ts {
			if (x.Kind == lang.Addresses) == (x.Prefixes == nil) && !strings.HasPrefix(x.Name, "ipset:") || x.Name == "" {
				t.Fatalf("target %+v", x)
			}
			var before netip.Prefix
			for _, p := range x.Prefixes {
				if !p.IsValid() || p != p.Masked() || before.IsValid() && (before.Overlaps(p) || before.Addr().Compare(p.Addr()) > 0) {
					t.Fatalf("prefixes %v", x.Prefixes)
				}
				before = p
			}
			_, isGroup := d.Groups[x.Name]
			_, isProvided := d.Provided[x.Name]
			_, isTag := d.TagOwners[x.Name]
			if x.Kind == lang.Group && isGroup == isProvided || x.Kind == lang.Tag && !isTag {
				t.Fatalf("%s is not defined", x.Name)
			}
		}
	}
	for _, r := range d.Rules {
		target(r.Src...)
		for _, dst := range r.Dst {
			target(dst.Target)
			if len(dst.Services) == 0 && len(r.App) == 0 {
				t.Fatalf("rule %+v allows nothing", r)
			}
			for _, s := range dst.Services {
				last := -2
				for _, p := range s.Ports {
					if int(p.First) <= last+1 || p.Last < p.First {
						t.Fatalf("ports %v", s.Ports)
					}
					last = int(p.Last)
				}
				if len(s.Ports) == 0 {
					t.Fatalf("service %+v", s)
				}
			}
		}
	}
	for _, r := range d.SSH {
		target(r.Src...)
		target(r.Dst...)
	}
	for _, r := range d.Approvers.Routes {
		target(r.Who...)
	}
	target(d.Approvers.ExitNode...)
	for _, a := range d.Attributes {
		target(a.Targets...)
	}
	for _, c := range d.Tests {
		target(c.Src)
	}
	for _, c := range d.SSHTests {
		target(c.Src)
		target(c.Dst...)
	}
}
