package explain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// dice generates small meshes and policies for them.
type dice struct{ *rand.Rand }

func (d dice) of(list ...string) string { return list[d.IntN(len(list))] }

func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d dice) mesh() *mesh.Snapshot {
	var evs []mesh.Event
	for i, name := range []string{"ana", "bo", "carol"} {
		evs = append(evs, mesh.UserPut{User: &mesh.User{ID: mesh.UserID(i + 1), Name: name, Email: name + "@example.com", Groups: [][]string{nil, {"dev"}, {"dev", "ops"}}[d.IntN(3)]}})
	}
	for id := range mesh.NodeID(4 + d.IntN(9)) {
		n := meshgen.Node(id+1, mesh.UserID(1+d.IntN(3)))
		d.dress(n)
		evs = append(evs, mesh.NodePut{Node: n})
		if d.oneIn(2) {
			evs = append(evs, mesh.Online{ID: n.ID, Replica: "a", Conn: 1, At: meshgen.Start})
		}
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

func (d dice) dress(n *mesh.Node) {
	switch d.IntN(10) {
	case 0, 1, 2:
		n.Owner, n.Tags = 0, []string{d.of("tag:db", "tag:web")}
	case 3:
		n.Owner, n.Tags = 0, []string{"tag:db", "tag:web"}
	case 4:
		n.IPv6 = netip.Addr{}
	case 5:
		n.IPv4 = netip.Addr{}
	}
	for _, route := range []string{"10.1.0.0/16", "10.1.2.0/24", "2001:db8::/64", "0.0.0.0/0", "::/0"} {
		if d.oneIn(6) {
			n.Routes = append(n.Routes, netip.MustParsePrefix(route))
		}
	}
	n.KeyExpired = d.oneIn(12)
	if n.NeedsApproval = d.oneIn(12); n.NeedsApproval {
		n.Routes = nil
	}
}

func (d dice) person() string {
	return d.of("ana", "bo@example.com", "carol@", "group:ops", "group:dev", "autogroup:member", "dave")
}

func (d dice) node() string {
	return d.of(d.person(), d.person(), "tag:db", "tag:web", "autogroup:tagged")
}

func (d dice) address() string {
	return d.of("100.64.0.1", "100.64.0.0/29", "fd7a:115c:a1e0::/125", "10.1.0.0/16", "10.1.2.0/25", "10.0.0.0/8", "2001:db8::/65", "first", "0.0.0.0/0")
}

func (d dice) list(one func() string) []string {
	list := []string{one()}
	for d.oneIn(3) {
		list = append(list, one())
	}
	return list
}

func (d dice) ports() string { return d.of("*", "22", "22,80", "0-443", "8000-8100", "65535") }

func (d dice) text() string {
	source := func() string { return d.of(d.node(), d.node(), d.address(), "*") }
	target := func() string { return d.of(d.node(), d.node(), d.address(), "autogroup:internet", "*") }
	acls, grants, ssh := []map[string]any{}, []map[string]any{}, []map[string]any{}
	for range d.IntN(5) {
		rule := map[string]any{"action": "accept", "src": d.list(source), "dst": d.list(func() string { return target() + ":" + d.ports() })}
		if d.oneIn(4) {
			rule["src"], rule["dst"] = d.list(d.person), []string{"autogroup:self:" + d.ports(), target() + ":" + d.ports()}
		}
		if d.oneIn(4) {
			rule["proto"] = d.of("tcp", "udp", "sctp")
		}
		acls = append(acls, rule)
	}
	for range d.IntN(4) {
		rule := map[string]any{"src": d.list(source), "dst": d.list(target), "ip": d.list(func() string { return d.of(d.ports(), "tcp:22", "udp:53", "gre:*", "icmp:*") })}
		if d.oneIn(3) {
			rule["via"] = []string{d.of("tag:db", "tag:web")}
		}
		grants = append(grants, rule)
	}
	for range d.IntN(4) {
		rule := map[string]any{
			"action": d.of("accept", "check"), "src": d.list(d.node), "dst": d.list(d.node),
			"users": d.list(func() string { return d.of("root", "autogroup:nonroot", "deploy") }),
		}
		if d.oneIn(3) {
			rule["src"], rule["dst"] = d.list(d.person), []string{"autogroup:self"}
		}
		ssh = append(ssh, rule)
	}
	text, err := json.MarshalIndent(map[string]any{
		"groups": map[string][]string{"group:ops": {d.of("ana", "bo"), "carol"}}, "hosts": map[string]string{"first": "100.64.0.1"},
		"tagOwners": map[string][]string{"tag:db": {}, "tag:web": {}}, "acls": acls, "grants": grants, "ssh": ssh,
	}, "", " ")
	if err != nil {
		panic(err) // maps of strings can always be encoded
	}
	return string(text)
}

// edited returns a text with one part replaced by another.
func (d dice) edited(text string) string {
	edits := [][2]string{
		{`"root"`, `"autogroup:nonroot"`},
		{`"autogroup:nonroot"`, `"root"`},
		{`"deploy"`, `"root"`},
		{`"check"`, `"accept"`},
		{":22", ":23"},
		{`"*"`, `"22"`},
		{`"ana"`, `"carol"`},
		{`"autogroup:member"`, `"ana"`},
		{`"autogroup:self`, `"autogroup:member`},
		{"10.1.2.0/25", "10.1.0.0/16"},
		{"autogroup:tagged", "tag:db"},
	}
	d.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	for _, e := range edits {
		other := strings.Replace(text, e[0], e[1], 1)
		if _, problems := lang.Parse([]byte(other)); other != text && len(problems) == 0 {
			return other
		}
	}
	return text
}

func (d dice) world(t *testing.T, s *mesh.Snapshot, text string) *policy.World {
	t.Helper()
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, text)
	}
	return policy.WorldOf(s, doc)
}

// openings returns, for all relevant protocols and ports, whether one address may open a
// connection to another.
func openings(w *policy.World, src, dst netip.Addr, at *mesh.Node) string {
	var b strings.Builder
	for _, protocol := range []int{6, 17, 132} {
		for _, port := range []uint16{0, 22, 23, 53, 80, 443, 444, 8000, 8101, 65535} {
			fmt.Fprintf(&b, "%t ", explain.Allows(w, src, dst, at, protocol, port))
		}
	}
	echo := 1
	if dst.Is6() {
		echo = 58
	}
	for _, protocol := range []int{echo, 47, 50} {
		fmt.Fprintf(&b, "%t ", explain.Allows(w, src, dst, at, protocol, 0))
	}
	return b.String()
}

// nodeOpenings returns the openings between two nodes, in both families.
func nodeOpenings(w *policy.World, a, b *mesh.Node) (text string) {
	for _, src := range a.Addrs() {
		for _, dst := range b.Addrs() {
			if src.Is4() == dst.Is4() {
				text += openings(w, src, dst, b)
			}
		}
	}
	if a.NeedsApproval {
		text = strings.ReplaceAll(text, "true", "false")
	}
	return text
}

// shells returns the results of SSH logins from a to b, one for each user.
func shells(w *policy.World, a, b *mesh.Node) (text string) {
	for _, user := range []string{"root", "deploy", "other"} {
		does := "deny"
		for _, rule := range w.Shells(w.Class(b), b.Owner) {
			in := !a.NeedsApproval && a.Tagged() && slices.Contains(rule.Addrs, a.Addrs()[0]) ||
				!a.NeedsApproval && !a.Tagged() && slices.ContainsFunc(rule.People, func(u *mesh.User) bool { return u.ID == a.Owner })
			if in && (slices.Contains(rule.Users, user) || user != "root" && slices.Contains(rule.Users, lang.NonRoot)) {
				if does = "accept"; rule.Check {
					does = "check"
				}
				break
			}
		}
		text += user + does
	}
	return text
}

type totals struct{ Lost, Gained, Changed, Unchanged, Losing, Gaining, Losers, LosersOnline, Shells int }

// compareAll compares the access between each pair of nodes and counts the changes.
func compareAll(from, to *policy.World) (n totals) {
	for a := range to.Nodes.All() {
		loser := false
		for b := range to.Nodes.All() {
			if a == b {
				continue
			}
			oldA, _ := from.Nodes.Get(a.ID)
			oldB, _ := from.Nodes.Get(b.ID)
			before, after := nodeOpenings(from, oldA, oldB), nodeOpenings(to, a, b)
			had, has := strings.Contains(before, "true"), strings.Contains(after, "true")
			switch {
			case before == after && had:
				n.Unchanged++
			case before == after:
			case had && has:
				n.Changed++
			case had:
				n.Lost++
			default:
				n.Gained++
			}
			was, is := strings.Fields(before), strings.Fields(after)
			loses, gains := false, false
			for i := range was {
				loses, gains = loses || was[i] == "true" && is[i] == "false", gains || was[i] == "false" && is[i] == "true"
			}
			loser = loser || loses
			if loses {
				n.Losing++
			}
			if gains {
				n.Gaining++
			}
			if shells(from, oldA, oldB) != shells(to, a, b) {
				n.Shells++
			}
		}
		if loser {
			n.Losers++
			if a.Presence.Online {
				n.LosersOnline++
			}
		}
	}
	return n
}

func totalsOf(e *explain.Effect) totals {
	n := totals{e.Lost, e.Gained, e.Changed, e.Unchanged, e.Losing, e.Gaining, e.Losers, e.LosersOnline, 0}
	for _, s := range e.Shells {
		n.Shells += s.Pairs
	}
	return n
}

func TestPreviewCountsWhatAllowsSaysOfEachPair(t *testing.T) {
	var sum totals
	for seed := range uint64(150) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		s := d.mesh()
		old := d.text()
		text := d.edited(old)
		if d.oneIn(3) {
			text = d.text()
		}
		from, to := d.world(t, s, old), d.world(t, s, text)
		want := compareAll(from, to)
		effect := explain.Preview(from, to, nil)
		if diff := cmp.Diff(want, totalsOf(effect)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s\nfrom %s\nto %s\n%s", seed, diff, old, text, meshText(s))
		}
		pairs := 0
		for _, shift := range effect.Shifts {
			pairs += shift.Pairs
		}
		if pairs != want.Lost+want.Gained+want.Changed {
			t.Fatalf("seed %d: shifts have %d pairs, want %+v", seed, pairs, want)
		}
		principalsAgree(t, seed, to, effect)
		routesAgree(t, seed, from, to, effect)
		sum.Lost, sum.Gained, sum.Changed, sum.Unchanged, sum.Shells = sum.Lost+want.Lost, sum.Gained+want.Gained, sum.Changed+want.Changed, sum.Unchanged+want.Unchanged, sum.Shells+want.Shells
	}
	t.Logf("%+v", sum)
	if sum.Lost == 0 || sum.Gained == 0 || sum.Changed == 0 || sum.Unchanged == 0 || sum.Shells == 0 {
		t.Errorf("the worlds are too much alike: %+v", sum)
	}
}

// The tags of nodes change, but the policy stays the same.
func TestPreviewOfOtherTagsCountsWhatAllowsSays(t *testing.T) {
	for seed := range uint64(100) {
		d := dice{rand.New(rand.NewPCG(seed, 5))}
		s := d.mesh()
		text := d.text()
		doc := d.world(t, s, text).Doc
		edited := s
		for n := range s.Nodes.All() {
			if d.oneIn(3) {
				other := *n
				other.Owner, other.Tags, other.Routes = mesh.UserID(1+d.IntN(3)), nil, nil
				d.dress(&other)
				edited, _ = mesh.Apply(edited, edited.Rev+1, mesh.NodePut{Node: &other})
			}
		}
		// Restore the addresses, which must not change.
		for n := range s.Nodes.All() {
			other, _ := edited.Nodes.Get(n.ID)
			same := *other
			same.IPv4, same.IPv6 = n.IPv4, n.IPv6
			edited, _ = mesh.Apply(edited, edited.Rev+1, mesh.NodePut{Node: &same})
		}
		from, to := policy.WorldOf(s, doc), policy.WorldOf(edited, doc)
		effect := explain.Preview(from, to, nil)
		if diff := cmp.Diff(compareAll(from, to), totalsOf(effect)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s\n%s\n%s\nthen %s", seed, diff, text, meshText(s), meshText(edited))
		}
		principalsAgree(t, seed, to, effect)
	}
}

// principalsAgree checks that changes name exactly the principals whose nodes are
// affected.
func principalsAgree(t *testing.T, seed uint64, w *policy.World, e *explain.Effect) {
	t.Helper()
	check := func(what string, named explain.Principals, nodes map[mesh.NodeID]bool) {
		var want []string
		for id := range nodes {
			n, _ := w.Nodes.Get(id)
			name := strings.Join(n.Tags, ", ")
			if u, ok := w.Users.Get(n.Owner); ok && !n.Tagged() {
				name = u.Name
			}
			want = append(want, name)
		}
		slices.Sort(want)
		if diff := cmp.Diff(slices.Compact(want), named.Names); diff != "" {
			t.Fatalf("seed %d, %s (-want +got):\n%s", seed, what, diff)
		}
	}
	pairs := func(what string, from, to explain.Principals, all int, samples []explain.NodePair) {
		if len(samples) < all {
			return // not all pairs are known
		}
		sources, destinations := map[mesh.NodeID]bool{}, map[mesh.NodeID]bool{}
		for _, p := range samples {
			sources[p.From], destinations[p.To] = true, true
		}
		check(what+" from", from, sources)
		check(what+" to", to, destinations)
	}
	for _, s := range e.Shifts {
		pairs("access", s.From, s.To, s.Pairs, s.Samples)
	}
	for _, s := range e.Shells {
		pairs("shells", s.From, s.To, s.Pairs, s.Samples)
	}
}

// routesAgree checks that access to an address behind a router changes for somebody if and
// only if the effect says so.
func routesAgree(t *testing.T, seed uint64, from, to *policy.World, e *explain.Effect) {
	t.Helper()
	var pool []netip.Addr
	for _, text := range []string{"10.1.0.1", "10.1.2.1", "10.1.2.130", "8.8.8.8", "2001:db8::1", "2001:db8:0:0:8000::1", "2606:4700::1"} {
		pool = append(pool, netip.MustParseAddr(text))
	}
	for router := range to.Nodes.All() {
		if len(router.Routes) == 0 {
			continue
		}
		for a := range to.Nodes.Approved() {
			if a == router {
				continue
			}
			principal := strings.Join(a.Tags, ", ")
			if u, ok := to.Users.Get(a.Owner); ok {
				principal = u.Name
			}
			for _, dst := range pool {
				changed := false
				for _, src := range a.Addrs() {
					changed = changed || src.Is4() == dst.Is4() && openings(from, src, dst, router) != openings(to, src, dst, router)
				}
				if !changed {
					continue
				}
				if !slices.ContainsFunc(e.Routes, func(s explain.RouteShift) bool {
					return slices.Contains(s.Through, router.ID) && slices.Contains(s.From.Names, principal) && s.Prefix.Contains(dst)
				}) {
					t.Fatalf("seed %d: %s reaches %s through %s in another way, which is not told: %+v", seed, a.Name, dst, router.Name, e.Routes)
				}
			}
		}
	}
}

func meshText(s *mesh.Snapshot) string {
	var b strings.Builder
	for n := range s.Nodes.All() {
		fmt.Fprintf(&b, "node %d of %d, tags %v, %v, routes %v, expired %t, needs approval %t\n", n.ID, n.Owner, n.Tags, n.Addrs(), n.Routes, n.KeyExpired, n.NeedsApproval)
	}
	return b.String()
}

func TestWhyAgreesWithAllows(t *testing.T) {
	allowed := 0
	for seed := range uint64(40) {
		d := dice{rand.New(rand.NewPCG(seed, 9))}
		s := d.mesh()
		text := d.text()
		w := d.world(t, s, text)
		for a := range s.Nodes.All() {
			for b := range s.Nodes.All() {
				for _, port := range []uint16{22, 80, 8050} {
					want := false
					for _, src := range a.Addrs() {
						for _, dst := range b.Addrs() {
							want = want || !a.KeyExpired && !a.NeedsApproval && explain.Allows(w, src, dst, b, 6, port)
						}
					}
					got := explain.Why(w, explain.Question{From: explain.End{Node: a.ID}, To: explain.End{Node: b.ID}, Port: port})
					if got.Allowed != want {
						t.Fatalf("seed %d: %s to %s port %d: %+v, want %t\n%s\n%s", seed, a.Name, b.Name, port, got, want, text, meshText(s))
					}
					if want {
						allowed++
					}
				}
			}
		}
	}
	if allowed == 0 {
		t.Error("nobody reaches anyone")
	}
}
