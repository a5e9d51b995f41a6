//go:build !race

package policy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// people returns a snapshot whose nodes are distributed evenly among users, one in ten of
// them tagged instead.
func people(users, nodes int) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	for id := mesh.UserID(1); int(id) <= users; id++ {
		d.Apply(1, mesh.UserPut{User: meshgen.User(id)})
	}
	for id := mesh.NodeID(1); int(id) <= nodes; id++ {
		n := meshgen.Node(id, mesh.UserID(1+int(id)%users))
		if id%10 == 0 {
			n.Owner, n.Tags = 0, []string{fmt.Sprintf("tag:t%d", id%50)}
		}
		d.Apply(2, mesh.NodePut{Node: n})
	}
	return d.Freeze()
}

// company returns a policy of many rules and groups. Each user is in one of every hundred
// groups.
func company(rules, groups, users int) string {
	var b strings.Builder
	b.WriteString(`{"groups": {`)
	for g := range groups {
		var members []string
		for u := g; u < users; u += 100 {
			members = append(members, fmt.Sprintf(`"user%d"`, u+1))
		}
		fmt.Fprintf(&b, `%s"group:g%d": [%s]`, comma(g), g, strings.Join(members, ","))
	}
	b.WriteString(`}, "tagOwners": {`)
	for tag := range 50 {
		fmt.Fprintf(&b, `%s"tag:t%d": []`, comma(tag), tag)
	}
	b.WriteString(`}, "acls": [`)
	for r := range rules {
		fmt.Fprintf(&b, `%s{"action": "accept", "src": ["group:g%d"], "dst": ["tag:t%d:%d", "group:g%d:22", "10.%d.0.0/16:443"]}`,
			comma(r), r%groups, r%50, 1000+r, (r*7)%groups, r%250)
	}
	b.WriteString(`]}`)
	return b.String()
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func parsed(t testing.TB, text string) *lang.Doc {
	t.Helper()
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return doc
}

// quickest returns the shortest time of each of two functions, in milliseconds. They run
// alternately, so that other load on the machine affects both.
func quickest(a, b func()) (x, y float64) {
	x, y = math.Inf(1), math.Inf(1)
	for range 9 {
		for f, best := range map[*func()]*float64{&a: &x, &b: &y} {
			began := time.Now()
			(*f)()
			*best = min(*best, time.Since(began).Seconds()*1000)
		}
	}
	return x, y
}

// Twice as many nodes take twice as much work, not four times.
func TestRatioCompileGrowsWithTheNodes(t *testing.T) {
	doc := parsed(t, company(1000, 500, 1000))
	five, ten := people(1000, 5_000), people(1000, 10_000)
	small, large := quickest(func() { policy.WorldOf(five, doc) }, func() { policy.WorldOf(ten, doc) })
	t.Logf("1,000 rules, 500 groups: %.1f ms at 5,000 nodes, %.1f ms at 10,000, ratio %.2f", small, large, large/small)
	if large > 2.3*small {
		t.Errorf("twice the nodes cost %.2f times as much", large/small)
	}
}

// Adding a node classifies only that node.
func TestRatioNextCostsWhatChanged(t *testing.T) {
	doc := parsed(t, company(1000, 500, 1000))
	s := people(1000, 10_000)
	w := policy.WorldOf(s, doc)
	all, one := quickest(func() { policy.WorldOf(s, doc) }, func() {
		next, touched := mesh.Apply(s, s.Rev+1, mesh.NodePut{Node: meshgen.Node(10_001, 7)})
		w.Next(next, touched)
	})
	t.Logf("10,000 nodes: all %.1f ms, one more %.3f ms", all, one)
	if one*50 > all {
		t.Error("one node costs more than a fiftieth of all")
	}
}

// There are no more classes than the document can distinguish, however many users there
// are.
func TestClassesAreBoundedByTheDocument(t *testing.T) {
	const groups = 20
	var b strings.Builder
	b.WriteString(`{"tagOwners": {"tag:t0": []}, "groups": {`)
	for g := range groups {
		var members []string
		for u := g; u < 5000; u += groups {
			members = append(members, fmt.Sprintf(`"user%d"`, u+1))
		}
		fmt.Fprintf(&b, `%s"group:g%d": [%s]`, comma(g), g, strings.Join(members, ","))
	}
	b.WriteString(`}, "acls": [`)
	for g := range groups {
		fmt.Fprintf(&b, `%s{"action": "accept", "src": ["group:g%d"], "dst": ["tag:t0:%d", "autogroup:self:*"]}`, comma(g), g, g+1)
	}
	b.WriteString(`]}`)
	w := policy.WorldOf(people(5000, 10_000), parsed(t, b.String()))
	classes := map[policy.Class]bool{}
	for n := range w.Nodes.All() {
		classes[w.Class(n)] = true
	}
	// One class for each group, one for tag:t0 and one for the other tags.
	if len(classes) > groups+2 || len(classes) < groups {
		t.Errorf("5,000 users and %d selectors make %d classes", groups+1, len(classes))
	}
}

// If every user has a separate rule, each user is a class. Determining who sees whom costs
// far less than comparing all rules of all pairs.
func TestRatioSightOfManyClasses(t *testing.T) {
	rules := func(users int) string {
		var b strings.Builder
		b.WriteString(`{"tagOwners": {"tag:t0": []}, "acls": [`)
		for u := range users {
			fmt.Fprintf(&b, `%s{"action": "accept", "src": ["user%d"], "dst": ["tag:t0:%d"]}`, comma(u), u+1, u+1)
		}
		return b.String() + `]}`
	}
	look := func(users int) func() {
		s, doc := people(users, users), parsed(t, rules(users))
		return func() {
			w := policy.WorldOf(s, doc)
			for n := range s.Nodes.All() {
				w.Sees(w.Class(n), 0, n)
			}
		}
	}
	small, large := quickest(look(500), look(2000))
	t.Logf("who sees whom: %.1f ms for 500 classes, %.1f ms for 2,000", small, large)
	if large > 40*small { // sixteen times as many pairs, four times as many rules
		t.Errorf("four times the classes cost %.1f times as much", large/small)
	}
}

// Rules about every node cost a class little more than rules about one node.
func TestRatioRulesThatReachEveryone(t *testing.T) {
	const users = 2_000
	s := people(users, users)
	world := func(dst string) func() {
		var b strings.Builder
		for u := range users {
			fmt.Fprintf(&b, `%s{"action": "accept", "src": ["user%d"], "dst": ["%s:%d"]}`, comma(u), u+1, dst, u+1)
		}
		doc := parsed(t, `{"acls": [`+b.String()+`]}`)
		return func() { policy.WorldOf(s, doc) }
	}
	one, everyone := quickest(world("user1"), world("*"))
	t.Logf("2,000 rules and classes: %.1f ms, %.1f ms when each rule reaches everyone", one, everyone)
	if everyone > 4*one {
		t.Errorf("%.1f times as much", everyone/one)
	}
}
