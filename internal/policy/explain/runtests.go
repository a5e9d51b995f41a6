package explain

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// TestFailure is a test of a policy that fails.
type TestFailure struct {
	Line lang.Line // line of the test
	Src  string
	Dst  string // followed by the port, or preceded by the SSH user
	Want string // accept, check or deny
	Text string // describes the test, the result, and the rule that caused it
}

// What a test expects, and what SSH rules do.
const (
	wantAccept = "accept"
	wantCheck  = "check"
	wantDeny   = "deny"
)

// RunTests returns the tests of a document that fail, in the order of the text.
//
// A test is about identities, whether or not they exist: a user with this name, every
// member of this group (for a group of the identity provider, somebody who is only in
// this group, and everyone who is in it now), a node with only this tag. The address of a node means that node.
// What a test denies must not be possible for any existing node either, whatever other
// tags or addresses it has.
func RunTests(w *policy.World) []TestFailure {
	if w.Doc == nil || len(w.Doc.Tests)+len(w.Doc.SSHTests) == 0 {
		return nil
	}
	run := &testRun{world: newWorld(w), subjects: map[string]*subject{}}
	for n := range w.Nodes.All() {
		run.nodes = append(run.nodes, run.endpointsOf(n, netip.Addr{})...)
	}
	for i := range w.Doc.Tests {
		t := &w.Doc.Tests[i]
		for k := range t.Accept {
			run.accept(t, &t.Accept[k])
		}
		for k := range t.Deny {
			run.deny(t, &t.Deny[k])
		}
	}
	for i := range w.Doc.SSHTests {
		t := &w.Doc.SSHTests[i]
		for _, d := range t.Dst {
			for _, claim := range []struct {
				want  string
				users []string
			}{{wantAccept, t.Accept}, {wantCheck, t.Check}, {wantDeny, t.Deny}} {
				for _, user := range claim.users {
					run.shell(t, d, user, claim.want)
				}
			}
		}
	}
	return run.failures
}

// testRun runs the tests of a document.
type testRun struct {
	*world
	nodes    []endpoint // all nodes, each with all its addresses
	subjects map[string]*subject
	failures []TestFailure
}

// subject is the source or a destination of a test.
type subject struct {
	// individuals holds the identities for which the test must pass, each with its
	// possible addresses.
	individuals [][]endpoint
	// present holds existing nodes that the subject includes, two of each class: a node
	// may be at both ends of a test, and access to itself does not count. It also
	// contains the parts of prefixes that rules name.
	present []endpoint
	// src holds the rules that have one of these endpoints as a source, dst those that
	// have one as a destination.
	src, dst bitset.Set
}

// subject returns the subject of a target. It is computed once for all tests.
func (run *testRun) subject(t lang.Target) *subject {
	key := string(rune('a'+t.Kind)) + t.Name
	if s, ok := run.subjects[key]; ok {
		return s
	}
	s := &subject{individuals: run.individuals(t), present: run.present(&t)}
	run.subjects[key] = s
	for _, endpoints := range append(s.individuals, s.present) {
		for i := range run.rules {
			r := &run.rules[i]
			if !s.src.Has(i) && slices.ContainsFunc(endpoints, func(p endpoint) bool { return run.sourceIn(r.Src, &p) >= 0 }) {
				s.src.Add(i)
			}
			if !s.dst.Has(i) && slices.ContainsFunc(endpoints, func(p endpoint) bool { return run.leadsTo(r, &p) }) {
				s.dst.Add(i)
			}
		}
	}
	return s
}

// leadsTo reports whether a rule has d as a destination, for any source.
func (w *world) leadsTo(r *lang.Rule, d *endpoint) bool {
	nobody := &endpoint{}
	return appliesAt(r, d) && slices.ContainsFunc(r.Dst, func(t lang.Destination) bool { return w.isDestination(&t.Target, nobody, d) })
}

func (w *world) individuals(t lang.Target) (list [][]endpoint) {
	somebody := imagine(endpoint{name: "somebody"})
	something := imagine(endpoint{name: "a tagged node", Identity: lang.Identity{Tags: []string{lang.PrefixTag}}})
	switch t.Kind {
	case lang.User:
		return [][]endpoint{imagine(w.person(t.Name))}
	case lang.Group:
		for _, p := range w.members(t.Name) {
			list = append(list, imagine(p))
		}
		return list
	case lang.Tag:
		return [][]endpoint{imagine(endpoint{name: "a node with " + t.Name, Identity: lang.Identity{Tags: []string{t.Name}}})}
	case lang.Member:
		return [][]endpoint{somebody}
	case lang.Admin:
		for _, p := range w.administrators() {
			list = append(list, imagine(p))
		}
		return list
	case lang.Tagged:
		return [][]endpoint{something}
	case lang.Any:
		return [][]endpoint{somebody, something}
	case lang.Addresses:
		for _, p := range t.Prefixes {
			end := endpoint{name: t.Name, span: p}
			if p.IsSingleIP() {
				end = w.atAddress(p.Addr())
			}
			list = append(list, []endpoint{end})
		}
	case lang.Self, lang.Internet, lang.DangerAll: // not allowed in a test
	}
	return list
}

// atAddress returns the node that has an address, or the address behind a hypothetical
// router.
func (w *world) atAddress(a netip.Addr) endpoint {
	if n, ok := w.Nodes.ByAddr(a); ok {
		return w.destination(a, n)
	}
	return somewhere(a)
}

func (run *testRun) present(t *lang.Target) (list []endpoint) {
	seen := map[policy.Class][]*mesh.Node{}
	for i := range run.nodes {
		p := &run.nodes[i]
		if t.Kind != lang.Any && !run.means(t, p) {
			continue
		}
		class := run.PeerClass(p.at)
		if known := slices.Contains(seen[class], p.at); known || len(seen[class]) < 2 {
			if !known {
				seen[class] = append(seen[class], p.at)
			}
			list = append(list, *p)
		}
	}
	return append(list, run.partsOf(t.Prefixes)...)
}

// partsOf returns the parts of prefixes that rules distinguish.
func (run *testRun) partsOf(whole []netip.Prefix) (list []endpoint) {
	for q := range run.Rules().Prefixes() {
		if slices.ContainsFunc(whole, func(p netip.Prefix) bool { return p.Bits() < q.Bits() && p.Contains(q.Addr()) }) {
			list = append(list, endpoint{name: q.String(), span: q})
		}
	}
	slices.SortFunc(list, func(a, b endpoint) int { return a.span.Compare(b.span) })
	return list
}

// question returns the candidates for each combination of a source and a destination of a
// test, and the rules that could allow any of them.
func (run *testRun) question(src, dst lang.Target) (list []candidates, rules bitset.Set) {
	from := run.subject(src)
	to := &subject{}
	if dst.Kind != lang.Self {
		to = run.subject(dst)
	}
	for _, s := range from.individuals {
		if dst.Kind == lang.Self {
			list = append(list, candidates{s, s})
		}
		for _, d := range to.individuals {
			list = append(list, candidates{s, d})
		}
	}
	for r := range from.src.All() {
		if to.dst.Has(r) || run.self.Has(r) {
			rules.Add(r)
		}
	}
	return list, rules
}

// by returns the first of the given rules that allows one of the candidates.
func (w *world) by(rules bitset.Set, e candidates, ask portQuery) (Finding, bool) {
	for i := range rules.All() {
		r := &w.rules[i]
		for _, six := range []bool{false, true} {
			if p, v, ok := w.closest(r, e, six, ask); ok && v.allowed() {
				return w.because(r, v, &p), true
			}
		}
	}
	return Finding{}, false
}

// queriesOf returns what a test asks for: without a protocol, TCP or UDP.
func queriesOf(t *lang.Test, port uint16) []portQuery {
	if t.Protocol != 0 {
		return []portQuery{{protocol: t.Protocol, port: port}}
	}
	return []portQuery{{protocol: lang.TCP, port: port}, {protocol: lang.UDP, port: port}}
}

func (run *testRun) accept(t *lang.Test, d *lang.TestDestination) {
	all, rules := run.question(t.Src, d.Target)
	for _, e := range all {
		if slices.ContainsFunc(queriesOf(t, d.Port), func(ask portQuery) bool { _, ok := run.by(rules, e, ask); return ok }) {
			continue
		}
		who := t.Src.Name
		if (t.Src.Kind == lang.Group || t.Src.Kind == lang.Admin) && !slices.Contains(e.src[0].Names, t.Src.Name) {
			who = e.src[0].called() + " of " + t.Src.Name
		}
		text := fmt.Sprintf("%s should reach %s but does not: ", who, d.Text)
		if _, near := run.findRules(e, queriesOf(t, d.Port)[0]); len(near) > 0 {
			text += "the closest rule is on " + near[0].String()
		} else {
			text += "no rule comes close"
		}
		run.fail(t, d, wantAccept, text)
		return
	}
}

func (run *testRun) deny(t *lang.Test, d *lang.TestDestination) {
	all, rules := run.question(t.Src, d.Target)
	for _, ask := range queriesOf(t, d.Port) {
		for _, e := range all {
			if f, ok := run.by(rules, e, ask); ok {
				run.fail(t, d, wantDeny, fmt.Sprintf("%s should not reach %s but does%s", t.Src.Name, d.Text, f.where()))
				return
			}
		}
		if f, p, ok := run.someNode(t.Src, d.Target, rules, ask); ok {
			run.fail(t, d, wantDeny, fmt.Sprintf("%s should not reach %s, but %s reaches %s%s",
				t.Src.Name, d.Text, p.src.called(), p.dst.called(), f.where()))
			return
		}
	}
}

// where describes the rule and why it matches.
func (f Finding) where() string {
	if f.Line == 0 {
		return ": " + f.Text
	}
	return ", because of the rule on " + f.String()
}

func (run *testRun) fail(t *lang.Test, d *lang.TestDestination, want, text string) {
	run.failures = append(run.failures, TestFailure{
		Line: t.Line, Src: t.Src.Name, Dst: d.Text, Want: want, Text: fmt.Sprintf("test on line %d: %s", t.Line, text),
	})
}

// apart returns a source and a destination of the same address family on different nodes.
// It looks at only two of each, which is enough to find such a pair.
func apart(from, to []endpoint, isSource, isDestination func(*endpoint) bool) (pair, bool) {
	for _, six := range []bool{false, true} {
		few := func(all []endpoint, is func(*endpoint) bool) (list []*endpoint) {
			for i := range all {
				if p := &all[i]; len(list) < 2 && p.six() == six && is(p) {
					list = append(list, p)
				}
			}
			return list
		}
		destinations := few(to, isDestination)
		for _, s := range few(from, isSource) {
			for _, d := range destinations {
				if s.at != d.at {
					return pair{*s, *d}, true
				}
			}
		}
	}
	return pair{}, false
}

// someNode returns an existing node that reaches another. Rules with autogroup:self
// are about users, so they do not depend on which nodes exist.
func (run *testRun) someNode(src, dst lang.Target, rules bitset.Set, ask portQuery) (Finding, pair, bool) {
	if dst.Kind == lang.Self {
		return Finding{}, pair{}, false
	}
	from, to := run.subject(src).present, run.subject(dst).present
	for i := range rules.All() {
		r := &run.rules[i]
		p, ok := apart(from, to, func(s *endpoint) bool { return run.sourceIn(r.Src, s) >= 0 },
			func(d *endpoint) bool { return run.judge(r, new(endpoint), d, ask).reached() })
		if ok {
			return run.because(r, run.judge(r, &p.src, &p.dst, ask), &p), p, true
		}
	}
	return Finding{}, pair{}, false
}

// shellRule returns the first SSH rule that lets s log in at d as a user, or nil.
func (w *world) shellRule(s, d *endpoint, user string) *lang.SSHRule {
	for i := range w.ssh {
		r := &w.ssh[i]
		if !r.HasUser(user) || !w.opensFrom(r, s) {
			continue
		}
		own := samePerson(s, d) && slices.ContainsFunc(r.Dst, func(t lang.Target) bool { return t.Kind == lang.Self })
		if own || w.opensAt(r, d) {
			return r
		}
	}
	return nil
}

// someShell returns an SSH rule by which an existing node may log in on another.
func (run *testRun) someShell(src, dst lang.Target, user string) *lang.SSHRule {
	from, to := run.subject(src).present, run.subject(dst).present
	for i := range run.ssh {
		r := &run.ssh[i]
		if !r.HasUser(user) {
			continue
		}
		_, ok := apart(from, to,
			func(s *endpoint) bool { return run.opensFrom(r, s) }, func(d *endpoint) bool { return run.opensAt(r, d) })
		if ok {
			return r
		}
	}
	return nil
}

func (w *world) opensFrom(r *lang.SSHRule, s *endpoint) bool {
	return slices.ContainsFunc(r.Src, func(t lang.Target) bool { return t.Kind == lang.Any || w.means(&t, s) })
}

// opensAt reports whether an SSH rule applies to d other than through autogroup:self.
func (w *world) opensAt(r *lang.SSHRule, d *endpoint) bool {
	return slices.ContainsFunc(r.Dst, func(t lang.Target) bool { return t.Kind == lang.Any || w.means(&t, d) })
}

// actionOf returns what an SSH rule does; nil stands for no rule.
func actionOf(r *lang.SSHRule) string {
	switch {
	case r == nil:
		return wantDeny
	case r.Check:
		return wantCheck
	}
	return wantAccept
}

func (run *testRun) shell(t *lang.SSHTest, dst lang.Target, user, want string) {
	fail := func(rule *lang.SSHRule) {
		text := fmt.Sprintf("test on line %d: %s should get %s on %s as %s but gets %s", t.Line, t.Src.Name, want, dst.Name, user, actionOf(rule))
		if rule != nil {
			text += fmt.Sprintf(" from the rule on line %d", rule.Line)
		}
		run.failures = append(run.failures, TestFailure{Line: t.Line, Src: t.Src.Name, Dst: user + "@" + dst.Name, Want: want, Text: text})
	}
	all, _ := run.question(t.Src, dst)
	for _, e := range all {
		if rule := run.shellRule(&e.src[0], &e.dst[0], user); actionOf(rule) != want {
			fail(rule)
			return
		}
	}
	if want == wantDeny && dst.Kind != lang.Self {
		if rule := run.someShell(t.Src, dst, user); rule != nil {
			fail(rule)
		}
	}
}
