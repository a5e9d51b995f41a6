package policy

import (
	"fmt"
	"net/netip"
	"slices"
)

// TestFailure is a statement of the policy about itself that does not hold.
type TestFailure struct {
	Line Line // of the test
	Src  string
	Dst  string // with the port, or with the user of a shell before it
	Want string // accept, check or deny
	Text string // names the test, what happened, and the rule by which it did
}

// What a test wants, or what rules about shells say.
const (
	wantAccept = "accept"
	wantCheck  = "check"
	wantDeny   = "deny"
)

// RunTests returns the tests of the document that do not hold, in the order of the
// text.
//
// A test is about identities, whether or not someone has them: a person of this
// name, every member of this group, a node with this tag alone. An address that a
// node has means this node. What a test denies, no node that is there may have
// either, by whatever other tags or addresses it has.
func (w *World) RunTests() (failures []TestFailure) {
	if w.Doc == nil {
		return nil
	}
	for i := range w.Doc.tests {
		t := &w.Doc.tests[i]
		for k := range t.Accept {
			failures = w.testAccept(failures, t, &t.Accept[k])
		}
		for k := range t.Deny {
			failures = w.testDeny(failures, t, &t.Deny[k])
		}
	}
	for i := range w.Doc.sshTests {
		t := &w.Doc.sshTests[i]
		for _, d := range t.Dst {
			for _, claim := range []struct {
				want  string
				users []string
			}{{wantAccept, t.Accept}, {wantCheck, t.Check}, {wantDeny, t.Deny}} {
				for _, user := range claim.users {
					failures = w.testShell(failures, t, d, user, claim.want)
				}
			}
		}
	}
	return failures
}

// individuals are those who must all be allowed what a target is, each by the
// addresses that it may have.
func (w *World) individuals(t Target) (list [][]party) {
	somebody, something := imagine(party{name: "somebody"}), imagine(party{name: "a node with tags", tags: []string{prefixTag}})
	switch t.Kind {
	case User:
		return [][]party{imagine(party{name: t.Name, names: w.namesFor(t.Name)})}
	case Group:
		for _, name := range w.rules.groups[t.Name] {
			list = append(list, imagine(party{name: name, names: w.namesFor(name)}))
		}
		return list
	case Tag:
		return [][]party{imagine(party{name: "a node with " + t.Name, tags: []string{t.Name}})}
	case Member:
		return [][]party{somebody}
	case Tagged:
		return [][]party{something}
	case Any:
		return [][]party{somebody, something}
	default:
		for _, p := range t.Prefixes {
			end := party{name: t.Name, span: p}
			if p.IsSingleIP() {
				end = w.atAddress(p.Addr())
			}
			list = append(list, []party{end})
		}
		return list
	}
}

// atAddress is the node that has an address, or an address to which some router
// leads.
func (w *World) atAddress(a netip.Addr) party {
	if n, ok := w.NodeByAddr(a); ok {
		return w.destination(a, n)
	}
	return somewhere(a)
}

// opposites pairs each one that a test asks about with each that it must reach.
func (w *World) opposites(src, dst Target) (list []ends) {
	for _, s := range w.individuals(src) {
		if dst.Kind == Self {
			list = append(list, ends{s, s})
			continue
		}
		for _, d := range w.individuals(dst) {
			list = append(list, ends{s, d})
		}
	}
	return list
}

// inquiries are what a test means: without a protocol, TCP or UDP.
func (t *Test) inquiries(port uint16) []inquiry {
	if t.Protocol != 0 {
		return []inquiry{{protocol: t.Protocol, port: port}}
	}
	return []inquiry{{protocol: protocolTCP, port: port}, {protocol: protocolUDP, port: port}}
}

func (w *World) testAccept(failures []TestFailure, t *Test, d *TestDestination) []TestFailure {
	for _, e := range w.opposites(t.Src, d.Target) {
		var near []Finding
		allowed := false
		for _, ask := range t.inquiries(d.Port) {
			rules, nearest := w.weigh(e, ask)
			if allowed = len(rules) > 0; allowed {
				break
			}
			if near == nil {
				near = nearest
			}
		}
		if allowed {
			continue
		}
		who := t.Src.Name
		if t.Src.Kind == Group {
			who = e.src[0].called() + " of " + t.Src.Name
		}
		text := fmt.Sprintf("%s should reach %s and does not: ", who, d.Text)
		if len(near) == 0 {
			text += "no rule comes near"
		} else {
			text += "the nearest rule is that on " + near[0].String()
		}
		return append(failures, t.failure(d, wantAccept, text))
	}
	return failures
}

func (w *World) testDeny(failures []TestFailure, t *Test, d *TestDestination) []TestFailure {
	for _, ask := range t.inquiries(d.Port) {
		for _, e := range w.opposites(t.Src, d.Target) {
			if rules, _ := w.weigh(e, ask); len(rules) > 0 {
				text := fmt.Sprintf("%s should not reach %s and does by %s", t.Src.Name, d.Text, rules[0].where())
				return append(failures, t.failure(d, wantDeny, text))
			}
		}
		if f, p, ok := w.someNode(t.Src, d.Target, ask); ok {
			text := fmt.Sprintf("%s should not reach %s, but %s reaches %s by %s", t.Src.Name, d.Text, p.src.called(), p.dst.called(), f.where())
			return append(failures, t.failure(d, wantDeny, text))
		}
	}
	return failures
}

// where names the rule first and then why it fits.
func (f Finding) where() string {
	if f.Line == 0 {
		return "no rule: " + f.Text
	}
	return "the rule on " + f.String()
}

func (t *Test) failure(d *TestDestination, want, text string) TestFailure {
	return TestFailure{Line: t.Line, Src: t.Src.Name, Dst: d.Text, Want: want, Text: fmt.Sprintf("test on line %d: %s", t.Line, text)}
}

// present are the nodes that a target means, two of each class: one may be on both
// ends of a question, and what it may do to itself is nobody's concern.
func (w *World) present(t *Target) (list []party) {
	seen := map[Class]int{}
	for n := range w.Nodes() {
		class := w.Kin(n)
		if seen[class] == 2 {
			continue
		}
		before := len(list)
		for _, p := range w.partiesOf(n, netip.Addr{}) {
			if t.Kind == Any || w.is(t, &p) {
				list = append(list, p)
			}
		}
		if len(list) > before {
			seen[class]++
		}
	}
	return list
}

// apart finds two different nodes of one family of which the one may be a source
// and the other a destination. Two of each are enough to tell.
func apart(from, to []party, isSource, isDestination func(*party) bool) (pair, bool) {
	for _, mesh := range MeshPrefixes() {
		few := func(all []party, is func(*party) bool) (list []*party) {
			for i := range all {
				if p := &all[i]; len(list) < 2 && p.six() == mesh.Addr().Is6() && is(p) {
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

// someNode finds a node that is there and reaches another. Rules about
// autogroup:self know people, so what they say does not depend on who is there.
func (w *World) someNode(src, dst Target, ask inquiry) (Finding, pair, bool) {
	if dst.Kind == Self {
		return Finding{}, pair{}, false
	}
	from, to := w.present(&src), w.present(&dst)
	for i := range w.rules.rules {
		r := &w.rules.rules[i]
		p, ok := apart(from, to, func(s *party) bool { return w.sourceIn(r.Src, s) >= 0 },
			func(d *party) bool { return w.judge(r, new(party), d, ask).reached() })
		if ok {
			return w.because(r, w.judge(r, &p.src, &p.dst, ask), &p), p, true
		}
	}
	return Finding{}, pair{}, false
}

// shellRule is the first rule about shells that lets s in at d as a user, or nil.
func (w *World) shellRule(s, d *party, user string) *SSHRule {
	for i := range w.rules.ssh {
		r := w.rules.ssh[i].SSHRule
		if !r.lets(user) || !w.opensFrom(r, s) {
			continue
		}
		own := samePerson(s, d) && slices.ContainsFunc(r.Dst, func(t Target) bool { return t.Kind == Self })
		if own || w.opensAt(r, d) {
			return r
		}
	}
	return nil
}

// someShell finds a rule by which a node that is there opens a shell on another.
func (w *World) someShell(src, dst *Target, user string) *SSHRule {
	from, to := w.present(src), w.present(dst)
	for i := range w.rules.ssh {
		r := w.rules.ssh[i].SSHRule
		if !r.lets(user) {
			continue
		}
		if _, ok := apart(from, to, func(s *party) bool { return w.opensFrom(r, s) }, func(d *party) bool { return w.opensAt(r, d) }); ok {
			return r
		}
	}
	return nil
}

func (w *World) opensFrom(r *SSHRule, s *party) bool {
	return slices.ContainsFunc(r.Src, func(t Target) bool { return t.Kind == Any || w.is(&t, s) })
}

// opensAt leaves out autogroup:self.
func (w *World) opensAt(r *SSHRule, d *party) bool {
	return slices.ContainsFunc(r.Dst, func(t Target) bool { return t.Kind == Any || w.is(&t, d) })
}

// lets reports whether a rule is about a user of the operating system.
func (r *SSHRule) lets(user string) bool {
	return slices.Contains(r.Users, user) || user != "root" && slices.Contains(r.Users, NonRoot)
}

// does is what a rule says to those whom it lets in.
func (r *SSHRule) does() string {
	switch {
	case r == nil:
		return wantDeny
	case r.Check:
		return wantCheck
	}
	return wantAccept
}

func (w *World) testShell(failures []TestFailure, t *SSHTest, dst Target, user, want string) []TestFailure {
	fail := func(rule *SSHRule) []TestFailure {
		text := fmt.Sprintf("test on line %d: %s should get %s at %s as %s and gets %s", t.Line, t.Src.Name, want, dst.Name, user, rule.does())
		if rule != nil {
			text += fmt.Sprintf(" by the rule on line %d", rule.Line)
		}
		return append(failures, TestFailure{Line: t.Line, Src: t.Src.Name, Dst: user + "@" + dst.Name, Want: want, Text: text})
	}
	for _, e := range w.opposites(t.Src, dst) {
		if rule := w.shellRule(&e.src[0], &e.dst[0], user); rule.does() != want {
			return fail(rule)
		}
	}
	if want == wantDeny && dst.Kind != Self {
		if rule := w.someShell(&t.Src, &dst, user); rule != nil {
			return fail(rule)
		}
	}
	return failures
}
