package explain_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// staff returns a mesh of users with ten nodes each, and of tagged nodes.
func staff(nodes int) *mesh.Snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	var evs []mesh.Event
	for id := range nodes / 10 {
		evs = append(evs, mesh.UserPut{User: meshgen.User(mesh.UserID(id + 1))})
	}
	for id := range nodes {
		n := meshgen.Node(mesh.NodeID(id+1), mesh.UserID(1+r.IntN(nodes/10)))
		if r.IntN(2) == 0 {
			n.Owner, n.Tags = 0, []string{fmt.Sprintf("tag:t%d", r.IntN(40))}
		}
		if id%100 == 0 {
			n.Routes = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(id / 100)}), 16)}
		}
		evs = append(evs, mesh.NodePut{Node: n})
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

// staffPolicy returns a policy with rules for groups, users, tags, routes and single
// nodes.
func staffPolicy(nodes, rules int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString(`{"groups": {`)
	for g := range 40 {
		fmt.Fprintf(&b, `"group:g%d": [`, g)
		for range nodes / 100 {
			fmt.Fprintf(&b, `"user%d",`, 1+r.IntN(nodes/10))
		}
		b.WriteString("],")
	}
	b.WriteString(`}, "tagOwners": {`)
	for t := range 40 {
		fmt.Fprintf(&b, `"tag:t%d": [],`, t)
	}
	b.WriteString(`}, "ssh": [{"action": "check", "src": ["group:g1"], "dst": ["autogroup:tagged"], "users": ["root"]}], "acls": [`)
	b.WriteString(`{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]},`)
	for range rules - 1 {
		src := []string{"group:g%d", "tag:t%d", "user%d"}[r.IntN(3)]
		dst := []string{"tag:t%d:22,443", "tag:t%d:5432", "100.64.0.%d:80", "10.%d.0.0/16:443"}[r.IntN(4)]
		fmt.Fprintf(&b, `{"action": "accept", "src": ["`+src+`"], "dst": ["`+dst+`"]},`, 1+r.IntN(39), 1+r.IntN(39))
	}
	b.WriteString("]}")
	return b.String()
}

func BenchmarkPreview(b *testing.B) {
	for _, size := range []struct{ nodes, rules int }{{1_000, 200}, {5_000, 500}} {
		s := staff(size.nodes)
		for name, seed := range map[string]uint64{"OneRule": 1, "EveryRule": 2, "FromEverything": 0} {
			b.Run(fmt.Sprintf("nodes=%d/rules=%d/%s", size.nodes, size.rules, name), func(b *testing.B) {
				text := staffPolicy(size.nodes, size.rules, 1)
				to := seen(b, s, text)
				from := to
				switch seed {
				case 0:
					from = policy.WorldOf(s, nil)
				case 1:
					from = seen(b, s, strings.Replace(text, "22,443", "22,444", 1))
				default:
					from = seen(b, s, staffPolicy(size.nodes, size.rules, seed))
				}
				b.ReportAllocs()
				for b.Loop() {
					explain.Preview(from, to, nil)
				}
			})
		}
	}
}

func seen(b testing.TB, s *mesh.Snapshot, text string) *policy.World {
	b.Helper()
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	return policy.WorldOf(s, doc)
}

func BenchmarkRunTests(b *testing.B) {
	const nodes, rules, tests = 5_000, 500, 500
	text := strings.TrimSuffix(staffPolicy(nodes, rules, 1), "}") + `, "tests": [`
	for i := range tests {
		text += fmt.Sprintf(`{"src": "%s", "deny": ["tag:t%d:8443"]},`, []string{"group:g3", "user7", "tag:t5", "*"}[i%4], 1+i%39)
	}
	w := seen(b, staff(nodes), text+"]}")
	for b.Loop() {
		explain.RunTests(w)
	}
}

func BenchmarkWhy(b *testing.B) {
	const nodes, rules = 5_000, 500
	w := seen(b, staff(nodes), staffPolicy(nodes, rules, 1))
	for b.Loop() {
		explain.Why(w, explain.Question{From: explain.End{Group: "group:g3"}, To: explain.End{Tag: "tag:t5"}, Port: 8443})
	}
}
