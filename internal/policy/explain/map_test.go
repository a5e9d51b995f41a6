package explain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func mapOf(t testing.TB, from, to *policy.World, ask explain.MapQuestion) *explain.AccessMap {
	t.Helper()
	m, err := explain.MapOf(from, to, ask)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pairs returns how many pairs of a cell are unchanged, lost, gained and changed.
func pairs(c explain.AccessCell) [4]int {
	return [4]int{c.Pairs - c.GainedPairs - c.ChangedPairs, c.LostPairs, c.GainedPairs, c.ChangedPairs}
}

func TestMapSaysOfEveryPairWhatTheRulesSay(t *testing.T) {
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 7))}
		s := d.mesh()
		text := d.text()
		before := d.world(t, s, text)
		after := d.world(t, s, d.edited(text))
		m := mapOf(t, before, after, explain.MapQuestion{By: explain.ByNodes})
		found := map[string][4]int{}
		for _, c := range m.Cells {
			if m.From[c.From].Kind == explain.KindNode && m.To[c.To].Kind == explain.KindNode {
				found[m.From[c.From].Name+" "+m.To[c.To].Name] = pairs(c)
			}
		}
		want := map[string][4]int{}
		for a := range s.Nodes.All() {
			for b := range s.Nodes.All() {
				if a == b || a.KeyExpired || b.KeyExpired {
					continue
				}
				was, is := nodeOpenings(before, a, b), nodeOpenings(after, a, b)
				some, now := strings.Contains(was, "true"), strings.Contains(is, "true")
				if !some && !now {
					continue
				}
				kind := 3
				switch {
				case was == is:
					kind = 0
				case !now:
					kind = 1
				case !some:
					kind = 2
				}
				var n [4]int
				n[kind] = 1
				want[a.Name+" "+b.Name] = n
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("seed %d (-rules +map):\n%s\n%s", seed, diff, text)
		}
	}
}

func TestMapOfRoutesSaysWhatTheRulesSay(t *testing.T) {
	inside := map[string]string{"10.1.0.0/16": "10.1.9.1 10.1.2.1 10.1.2.200", "10.1.2.0/24": "10.1.2.1 10.1.2.200", "2001:db8::/64": "2001:db8::1", "autogroup:internet": "1.1.1.1 2600::1"}
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 8))}
		s := d.mesh()
		w := d.world(t, s, d.text())
		m := mapOf(t, w, w, explain.MapQuestion{By: explain.ByNodes})
		reached := map[string]bool{}
		for _, c := range m.Cells {
			reached[m.From[c.From].Name+" "+m.To[c.To].Name] = true
		}
		for _, to := range m.To {
			for _, from := range m.From {
				if to.Kind == explain.KindNode || from.Kind != explain.KindNode || alsoInternet(s, to.Name) {
					continue
				}
				a, _ := s.Nodes.Get(from.Node)
				want := !a.KeyExpired && !a.NeedsApproval && slices.ContainsFunc(strings.Fields(inside[to.Name]), func(text string) bool {
					return opensAnywhere(w, s, a, netip.MustParseAddr(text), to.Name)
				})
				if got := reached[from.Name+" "+to.Name]; got != want {
					t.Fatalf("seed %d: %s reaches %s: %t, want %t", seed, from.Name, to.Name, got, want)
				}
			}
		}
	}
}

// alsoInternet reports whether a router serves a route and, as an exit node, the same
// addresses as a part of the internet.
func alsoInternet(s *mesh.Snapshot, route string) bool {
	for n := range s.Nodes.All() {
		if slices.Contains(n.Routes, netip.MustParsePrefix("2001:db8::/64")) && slices.ContainsFunc(n.Routes, mesh.Exit) {
			return route == "2001:db8::/64"
		}
	}
	return false
}

// opensAnywhere reports whether a router of a route accepts a node.
func opensAnywhere(w *policy.World, s *mesh.Snapshot, a *mesh.Node, dst netip.Addr, route string) bool {
	for at := range s.Nodes.All() {
		leads := slices.ContainsFunc(at.Routes, func(p netip.Prefix) bool {
			if route == "autogroup:internet" {
				return p.Bits() == 0 && p.Contains(dst)
			}
			return p.String() == route
		})
		if !leads {
			continue
		}
		for _, src := range a.Addrs() {
			if src.Is4() == dst.Is4() && strings.Contains(openings(w, src, dst, at), "true") {
				return true
			}
		}
	}
	return false
}

func TestMapOfGroupsIsTheSumOfItsNodes(t *testing.T) {
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 9))}
		s := d.mesh()
		text := d.text()
		before, after := d.world(t, s, text), d.world(t, s, d.edited(text))
		for _, by := range []explain.Detail{explain.ByGroups, explain.ByUsers} {
			m := mapOf(t, before, after, explain.MapQuestion{By: by})
			cells := map[[2]int]explain.AccessCell{}
			for _, c := range m.Cells {
				cells[[2]int{c.From, c.To}] = c
			}
			for i, from := range m.From {
				for k, to := range m.To {
					nodes := mapOf(t, before, after, explain.MapQuestion{From: []string{from.Name}, To: []string{to.Name}, By: explain.ByNodes})
					var want, rules [4]int
					for _, c := range nodes.Cells {
						for n, count := range pairs(c) {
							want[n] += count
						}
						for _, r := range c.Rules {
							rules[0], rules[1] = rules[0]+r.Before, rules[1]+r.After
						}
					}
					got := cells[[2]int{i, k}]
					var shares [4]int
					for _, r := range got.Rules {
						shares[0], shares[1] = shares[0]+r.Before, shares[1]+r.After
					}
					if pairs(got) != want || shares != rules {
						t.Fatalf("seed %d: %s to %s is %v by rules %v, its nodes are %v by %v\n%s", seed, from.Name, to.Name, pairs(got), shares, want, rules, text)
					}
				}
			}
		}
	}
}

const mapText = `{
	"groups": {"group:ops": ["ana"]},
	"tagOwners": {"tag:db": [], "tag:web": []},
	"acls": [
		// Operators keep the databases.
		{"action": "accept", "src": ["group:ops"], "dst": ["tag:db:22,5432"]},
		{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]},
		{"action": "accept", "src": ["carol"], "dst": ["tag:web:443", "10.1.0.0/16:443"]},
	],
}`

func mapWorld(t *testing.T, text string) *policy.World {
	t.Helper()
	var evs []mesh.Event
	for i, name := range []string{"ana", "bo", "carol"} {
		evs = append(evs, mesh.UserPut{User: &mesh.User{ID: mesh.UserID(i + 1), Name: name}})
	}
	for i, who := range []string{"ana", "ana", "bo", "carol", "tag:db", "tag:db", "tag:web"} {
		n := &mesh.Node{ID: mesh.NodeID(i + 1), Name: fmt.Sprintf("n%d", i+1), IPv4: netip.AddrFrom4([4]byte{100, 64, 0, byte(i + 1)})}
		if strings.HasPrefix(who, "tag:") {
			n.Tags = []string{who}
		} else {
			n.Owner = mesh.UserID(1 + slices.Index([]string{"ana", "bo", "carol"}, who))
		}
		if who == "tag:web" {
			n.Routes = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		}
		evs = append(evs, mesh.NodePut{Node: n})
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return policy.WorldOf(s, doc)
}

// said formats a map as lines of text.
func said(m *explain.AccessMap) (lines []string) {
	for _, c := range m.Cells {
		line := fmt.Sprintf("%s to %s: %d of %d", m.From[c.From].Name, m.To[c.To].Name, c.Pairs, c.Of)
		for _, s := range c.Services {
			line += ", " + s.String()
		}
		if c.Own {
			line += ", own"
		}
		for _, s := range c.Lost {
			line += ", lost " + s.String()
		}
		for _, s := range c.Gained {
			line += ", gained " + s.String()
		}
		for _, r := range c.Rules {
			line += fmt.Sprintf(", rule %d>%d", m.Rules[r.Rule].Before, m.Rules[r.Rule].After)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestMapNamesGroupsNamedUsersTheOthersTagsAndRoutes(t *testing.T) {
	w := mapWorld(t, mapText)
	want := []string{
		"group:ops to group:ops: 2 of 2, all ports, own, rule 7>7",
		"group:ops to tag:db: 4 of 4, ports 22, 5432, rule 6>6",
		"carol to tag:web: 1 of 1, port 443, rule 8>8",
		"carol to 10.1.0.0/16: 1 of 1, port 443, rule 8>8",
	}
	if diff := cmp.Diff(want, said(mapOf(t, w, w, explain.MapQuestion{}))); diff != "" {
		t.Error(diff)
	}
}

func TestMapImaginesANodeForANamedUserWithoutNodes(t *testing.T) {
	withDan := func(text string) *policy.World {
		w := mapWorld(t, text)
		s, _ := mesh.Apply(w.Snapshot, w.Rev+1, mesh.UserPut{User: &mesh.User{ID: 9, Name: "dan"}})
		return policy.WorldOf(s, w.Doc)
	}
	text := strings.Replace(mapText, `["carol"]`, `["carol", "dan"]`, 1)
	text = strings.Replace(text, `"acls": [`, `"acls": [{"action": "accept", "src": ["tag:web"], "dst": ["dan:22", "100.64.0.9:80"]},`, 1)
	w := withDan(text)
	want := []string{"dan to tag:web: 1 of 1, port 443, rule 8>8", "dan to 10.1.0.0/16: 1 of 1, port 443, rule 8>8"}
	if diff := cmp.Diff(want, said(mapOf(t, w, w, explain.MapQuestion{From: []string{"dan"}}))); diff != "" {
		t.Error(diff)
	}
	m := mapOf(t, w, w, explain.MapQuestion{To: []string{"dan"}})
	if diff := cmp.Diff([]string{"tag:web to dan: 1 of 1, port 22, rule 4>4"}, said(m)); diff != "" {
		t.Error(diff)
	}
	if m.To[0].Nodes != 0 {
		t.Errorf("dan has %d nodes, want none", m.To[0].Nodes)
	}
	draft := withDan(strings.Replace(text, `, "dan"]`, "]", 1))
	want = []string{
		"dan to tag:web: 0 of 1, lost port 443, rule 8>0",
		"dan to 10.1.0.0/16: 0 of 1, lost port 443, rule 8>0",
	}
	if diff := cmp.Diff(want, said(mapOf(t, w, draft, explain.MapQuestion{From: []string{"dan"}}))); diff != "" {
		t.Error(diff)
	}
	for _, line := range said(mapOf(t, w, w, explain.MapQuestion{})) {
		if strings.Contains(line, "dan") {
			t.Errorf("a map of everyone has %q", line)
		}
	}
}

func TestMapOfADraftSaysWhatItChanges(t *testing.T) {
	before := mapWorld(t, mapText)
	text := strings.Replace(mapText, "22,5432", "5432", 1)
	text = strings.Replace(text, "\t\t// Operators", "\t\t"+`{"action": "accept", "src": ["carol"], "dst": ["tag:db:5432"]},`+"\n\t\t// Operators", 1)
	after := mapWorld(t, strings.Replace(text, `"tag:web:443", `, "", 1))
	want := []string{
		"group:ops to group:ops: 2 of 2, all ports, own, rule 7>8",
		"group:ops to tag:db: 4 of 4, port 5432, lost port 22, rule 0>7, rule 6>0",
		"carol to tag:db: 2 of 2, port 5432, gained port 5432, rule 0>5",
		"carol to tag:web: 0 of 1, lost port 443, rule 8>0",
		"carol to 10.1.0.0/16: 1 of 1, port 443, rule 0>9, rule 8>0",
	}
	if diff := cmp.Diff(want, said(mapOf(t, before, after, explain.MapQuestion{}))); diff != "" {
		t.Error(diff)
	}
}

func TestMapRefusesNamesThatMeanNothing(t *testing.T) {
	w := mapWorld(t, mapText)
	for _, name := range []string{"nobody", "tag:none", "10.9.0.0/16", "10.1.2.3"} {
		var side *explain.AxisError
		if _, err := explain.MapOf(w, w, explain.MapQuestion{To: []string{name}}); !errors.Is(err, explain.ErrNoSuchEnd) || !errors.As(err, &side) || side.Side != "to" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMapIsBounded(t *testing.T) {
	w := policy.WorldOf(staff(1_000), nil)
	m := mapOf(t, w, w, explain.MapQuestion{By: explain.ByNodes})
	if len(m.From) != 500 || m.MoreFrom != 510 || len(m.Cells) != 10_000 || m.MoreCells == 0 {
		t.Errorf("%d principals and %d more, %d cells and %d more", len(m.From), m.MoreFrom, len(m.Cells), m.MoreCells)
	}
}

func BenchmarkMap(b *testing.B) {
	const nodes, rules = 5_000, 500
	s := staff(nodes)
	text := staffPolicy(nodes, rules, 1)
	w, draft := seen(b, s, text), seen(b, s, strings.Replace(text, "22,443", "22,444", 1))
	for _, by := range []explain.Detail{explain.ByGroups, explain.ByUsers, explain.ByNodes} {
		b.Run("By="+string(by), func(b *testing.B) {
			for b.Loop() {
				mapOf(b, w, w, explain.MapQuestion{By: by})
			}
		})
	}
	b.Run("OfADraft", func(b *testing.B) {
		for b.Loop() {
			mapOf(b, w, draft, explain.MapQuestion{})
		}
	})
	b.Run("OfOneNode", func(b *testing.B) {
		for b.Loop() {
			mapOf(b, w, w, explain.MapQuestion{From: []string{"17"}})
		}
	})
}
