package explain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// FuzzCompile checks that every question can be evaluated for every valid policy, and
// that the reverse change loses what the change gains.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{"../lang/testdata/language/*.txt", "testdata/access/*.txt", "testdata/preview/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			text, _, _ := strings.Cut(string(raw), "\n-- ")
			f.Add([]byte(text))
		}
	}
	s := meshFor(f, `laptop ana online
phone ana ipv4
desk bo ipv6
db tag:db 10.0.0.0/8
web tag:web tag:db 2001:db8::/64
exit alice 0.0.0.0/0 ::/0 192.168.0.0/16
old alice expired
`)
	everything := policy.WorldOf(s, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, problems := lang.Parse(text)
		if len(problems) > 0 {
			return
		}
		w := policy.WorldOf(s, doc)
		for _, from := range []explain.End{{Node: 1}, {User: "ana"}, {Tag: "tag:db"}} {
			for _, to := range []string{"3", "4", "bo", "tag:web", "10.1.2.3", "8.8.8.8", "100.64.0.6"} {
				end, err := explain.ParseEnd(w, to)
				if err != nil {
					continue // a host of the document with more than one address
				}
				a := explain.Why(w, explain.Question{From: from, To: end, Port: 22})
				if a.Allowed && len(a.Rules) == 0 || len(a.Rules) > 0 && len(a.Nearest) > 0 {
					t.Fatalf("from %+v to %s: %+v", from, to, a)
				}
			}
		}
		for n := range w.Nodes.All() {
			w.Shells(w.Class(n), n.Owner)
		}
		explain.RunTests(w)
		there, back := explain.Preview(everything, w, &explain.End{User: "ana"}), explain.Preview(w, everything, nil)
		if there.Lost != back.Gained || there.Gained != back.Lost || there.Changed != back.Changed || there.Unchanged != back.Unchanged {
			t.Fatalf("there %+v, back %+v", there, back)
		}
	})
}
