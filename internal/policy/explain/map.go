package explain

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Limits of what an AccessMap lists.
const (
	maxAxis  = 500
	maxCells = 10_000
)

// AccessMap says who reaches whom, and what a draft would change. Nodes whose key has
// expired reach nobody, and nobody reaches them. A user without nodes who is asked for by
// name counts as one untagged node.
type AccessMap struct {
	// From holds the sources and To the destinations, up to a limit.
	From, To         []Principal
	MoreFrom, MoreTo int
	// Cells holds the pairs of principals with nodes that reach each other, before or
	// after, in the order of From and To and up to a limit.
	Cells     []AccessCell
	MoreCells int
	// Rules holds the rules that cells refer to.
	Rules []MapRule
}

// AccessCell is what nodes of one principal can reach on those of another. A route counts
// as one node.
type AccessCell struct {
	From, To int // indexes in AccessMap.From and AccessMap.To
	// Services is what is allowed between some pairs of nodes. Pairs is the number of
	// these pairs, Of the number of all pairs.
	Services  []lang.Service
	Pairs, Of int
	// Own means that the nodes of each of these pairs have the same owner.
	Own bool
	// LostPairs, GainedPairs and ChangedPairs count the pairs for which a draft removes
	// all access, adds access where there was none, or changes it. Lost and Gained hold
	// what these pairs lose and gain.
	LostPairs, GainedPairs, ChangedPairs int
	Lost, Gained                         []lang.Service
	// Rules holds the rules that allow these services, up to a limit.
	Rules []RuleShare
}

// RuleShare holds the numbers of pairs of nodes for which a rule allows something, before
// and after.
type RuleShare struct {
	Rule          int // index in AccessMap.Rules
	Before, After int
}

// MapRule is a rule of the policy in force, of the draft, or of both.
type MapRule struct {
	*lang.Rule
	// Before is its line in the policy in force, After its line in the draft. Without a
	// draft they are equal.
	Before, After  lang.Line
	Added, Removed bool // whether the draft adds or removes it
}

// MapOf determines who reaches whom. Given two different worlds with the same nodes, it
// also returns what changes from the first to the second. Like Preview, it uses the
// compiled rules, and its cost depends on the number of classes, not of nodes.
func MapOf(from, to *policy.World, ask MapQuestion) (*AccessMap, error) {
	s := &mapBuilder{accesses: newAccessTable()}
	s.after = newEvaluator(to, s.accesses)
	s.before = s.after
	if from != to {
		s.before = newEvaluator(from, s.accesses)
	}
	s.collectNames()
	var err error
	if s.from, err = s.axis(ask.From, ask.By, false); err != nil {
		return nil, &AxisError{"from", err}
	}
	if s.to, err = s.axis(ask.To, ask.By, true); err != nil {
		return nil, &AxisError{"to", err}
	}
	s.sortNodes()
	s.imagineNodes()
	s.sortRoutes()
	s.matchRules()
	s.cells = make([]*tally, len(s.from.all)*len(s.to.all))
	s.compareBuckets()
	s.compareOwn()
	return s.finish(), nil
}

// AxisError is the error for an unknown name on one side of a map.
type AxisError struct {
	Side string // "from" or "to"
	Err  error
}

func (e *AxisError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *AxisError) Unwrap() error { return e.Err }

// mapBuilder builds an AccessMap.
type mapBuilder struct {
	before, after *evaluator // without a draft, the same world
	accesses      *accessTable
	groupsOf      map[string][]string // groups of a user in either world, by user name
	named         map[string]bool     // names of users in rules of either world
	from, to      *axis
	buckets       []*mapBucket
	owned         map[mesh.UserID][]*mapSubset
	rules         []MapRule
	ruleBefore    []int // indexes in rules, by rule of the world before
	cells         []*tally
	row           []tally // tallies of one bucket, by principals of to
}

// mapBucket is a set of nodes that neither world distinguishes, or networks behind
// routers.
type mapBucket struct {
	srcBefore, srcAfter, dstBefore, dstAfter *classRules
	from, to                                 []share
	subsets                                  []*mapSubset
	route                                    string
}

// share is how many nodes of a bucket belong to a principal.
type share struct{ principal, nodes int }

// mapSubset holds the nodes of a bucket that belong to the same principals and the same
// user.
type mapSubset struct {
	*mapBucket
	members *membership
	nodes   int
}

func (s *mapBuilder) sortNodes() {
	type bucketKey struct{ before, after policy.Class }
	buckets, subsets := map[bucketKey]*mapBucket{}, map[*mapBucket]map[*membership]*mapSubset{}
	s.owned = map[mesh.UserID][]*mapSubset{}
	own := s.before.ownCounts() || s.after.ownCounts()
	membersOf := s.memberships()
	for n := range s.after.Nodes.Approved() {
		was, ok := s.before.Nodes.Get(n.ID)
		if !ok {
			continue
		}
		members := membersOf(n)
		s.from.count(n, members.from)
		s.to.count(n, members.to)
		key := bucketKey{s.before.Class(was), s.after.Class(n)}
		if key == (bucketKey{}) || len(members.from)+len(members.to) == 0 {
			continue
		}
		p := buckets[key]
		if p == nil {
			before, after := s.before.class(key.before), s.after.class(key.after)
			p = &mapBucket{srcBefore: before, dstBefore: before, srcAfter: after, dstAfter: after}
			buckets[key], subsets[p], s.buckets = p, map[*membership]*mapSubset{}, append(s.buckets, p)
		}
		a := subsets[p][members]
		if a == nil {
			a = &mapSubset{mapBucket: p, members: members}
			subsets[p][members], p.subsets = a, append(p.subsets, a)
			if own && n.Owner != 0 {
				s.owned[n.Owner] = append(s.owned[n.Owner], a)
			}
		}
		a.nodes++
	}
	for _, p := range s.buckets {
		for _, a := range p.subsets {
			for _, k := range a.members.from {
				p.from = addShare(p.from, k, a.nodes)
			}
			for _, k := range a.members.to {
				p.to = addShare(p.to, k, a.nodes)
			}
		}
	}
}

// imagineNodes adds what users without nodes would reach, and who would reach them.
func (s *mapBuilder) imagineNodes() {
	for side, a := range []*axis{s.from, s.to} {
		for i := range a.all {
			u, ok := s.after.Users.Get(a.all[i].User)
			if !ok || a.all[i].Nodes > 0 || !a.named {
				continue
			}
			a.imagined[i] = true
			p := &mapBucket{srcAfter: s.after.rulesOf(s.after.Rules().AppliedToNew(u))}
			p.srcBefore = p.srcAfter
			if s.before != s.after {
				p.srcBefore = s.before.rulesOf(s.before.Rules().AppliedToNew(u))
			}
			p.dstBefore, p.dstAfter = p.srcBefore, p.srcAfter
			if side == 0 {
				p.from = []share{{i, 1}}
			} else {
				p.to = []share{{i, 1}}
			}
			s.buckets = append(s.buckets, p)
		}
	}
}

func addShare(list []share, principal, nodes int) []share {
	i := slices.IndexFunc(list, func(s share) bool { return s.principal == principal })
	if i < 0 {
		return append(list, share{principal, nodes})
	}
	list[i].nodes += nodes
	return list
}

// matchRules determines which rules are in both worlds.
func (s *mapBuilder) matchRules() {
	text := func(r *lang.Rule) string {
		t := fmt.Sprint(r.Grant, targetTexts(r.Src), r.Via, r.App)
		for _, d := range r.Dst {
			t += fmt.Sprint(targetTexts([]lang.Target{d.Target}), d.Services)
		}
		return t
	}
	places := map[string][]int{}
	for i := range s.after.rules {
		r := &s.after.rules[i]
		s.rules = append(s.rules, MapRule{Rule: r, Before: r.Line, After: r.Line, Added: s.before != s.after})
		if s.before != s.after {
			s.rules[i].Before = 0
			places[text(r)] = append(places[text(r)], i)
		}
	}
	if s.before == s.after {
		return
	}
	for i := range s.before.rules {
		r := &s.before.rules[i]
		if same := places[text(r)]; len(same) > 0 {
			places[text(r)] = same[1:]
			s.rules[same[0]].Before, s.rules[same[0]].Added = r.Line, false
			s.ruleBefore = append(s.ruleBefore, same[0])
			continue
		}
		s.ruleBefore = append(s.ruleBefore, len(s.rules))
		s.rules = append(s.rules, MapRule{Rule: r, Before: r.Line, Removed: true})
	}
}

func targetTexts(targets []lang.Target) string {
	text := ""
	for _, t := range targets {
		text += fmt.Sprint(t.Kind, t.Name, t.Prefixes)
	}
	return text
}

// reachability is what nodes of one bucket can reach on those of another.
type reachability struct {
	before, after     [2]int // by family
	has, lost, gained int
	rules             []ruleHit
}

type ruleHit struct {
	rule          int
	before, after bool
}

func (m *reachability) none() bool { return m.before == [2]int{} && m.after == [2]int{} }

// reach determines what bucket a can reach on bucket b; own means that the nodes have the
// same owner.
func (s *mapBuilder) reach(m *reachability, a, b *mapBucket, own bool) {
	*m = reachability{rules: m.rules[:0]}
	m.after = s.after.reach(a.srcAfter, b.dstAfter, own)
	m.before = m.after
	if s.before != s.after {
		m.before = s.before.reach(a.srcBefore, b.dstBefore, own)
	}
	if m.none() {
		return
	}
	m.has = s.accesses.plus(m.after[0], m.after[1])
	if m.before != m.after {
		m.lost = s.accesses.plus(s.accesses.minus(m.before[0], m.after[0]), s.accesses.minus(m.before[1], m.after[1]))
		m.gained = s.accesses.plus(s.accesses.minus(m.after[0], m.before[0]), s.accesses.minus(m.after[1], m.before[1]))
	}
	s.after.eachRule(a.srcAfter, b.dstAfter, own, func(r int) {
		m.hit(r).after = true
		if s.before == s.after {
			m.hit(r).before = true
		}
	})
	if s.before != s.after {
		s.before.eachRule(a.srcBefore, b.dstBefore, own, func(r int) { m.hit(s.ruleBefore[r]).before = true })
	}
}

func (m *reachability) hit(rule int) *ruleHit {
	i := slices.IndexFunc(m.rules, func(h ruleHit) bool { return h.rule == rule })
	if i < 0 {
		i, m.rules = len(m.rules), append(m.rules, ruleHit{rule: rule})
	}
	return &m.rules[i]
}

// eachRule calls yield with each rule by which nodes of class a reach those of class
// b, perhaps once for each address family.
func (s *evaluator) eachRule(a, b *classRules, own bool, yield func(rule int)) {
	for family := range a.src {
		for o := range between(a, b, family) {
			yield(o.rule)
		}
		if own && b.has[family] {
			for r := range bitset.Both(a.src[family], s.self) {
				yield(r)
			}
		}
	}
}

// tally is a cell under construction.
type tally struct {
	unchanged, lost, gained, changed, own int // numbers of pairs
	has, less, more                       int // accesses, as numbered by accessTable
	rules                                 []RuleShare
}

// add counts n pairs with the same reachability; a negative n removes them again.
func (t *tally) add(b *accessTable, m *reachability, n int) {
	switch none := ([2]int{}); {
	case m.none():
		return
	case m.before == m.after:
		t.unchanged += n
	case m.after == none:
		t.lost += n
	case m.before == none:
		t.gained += n
	default:
		t.changed += n
	}
	t.has, t.less, t.more = b.plus(t.has, m.has), b.plus(t.less, m.lost), b.plus(t.more, m.gained)
	for _, h := range m.rules {
		r := t.rule(h.rule)
		if h.before {
			r.Before += n
		}
		if h.after {
			r.After += n
		}
	}
}

// addAll adds another tally n times.
func (t *tally) addAll(b *accessTable, o *tally, n int) {
	t.unchanged, t.lost, t.gained, t.changed = t.unchanged+n*o.unchanged, t.lost+n*o.lost, t.gained+n*o.gained, t.changed+n*o.changed
	t.has, t.less, t.more = b.plus(t.has, o.has), b.plus(t.less, o.less), b.plus(t.more, o.more)
	for _, share := range o.rules {
		r := t.rule(share.Rule)
		r.Before, r.After = r.Before+n*share.Before, r.After+n*share.After
	}
}

func (t *tally) rule(rule int) *RuleShare {
	i := slices.IndexFunc(t.rules, func(r RuleShare) bool { return r.Rule == rule })
	if i < 0 {
		i, t.rules = len(t.rules), append(t.rules, RuleShare{Rule: rule})
	}
	return &t.rules[i]
}

func (t *tally) pairs() int { return t.unchanged + t.gained + t.changed }

func (s *mapBuilder) cell(from, to int) *tally {
	c := &s.cells[from*len(s.to.all)+to]
	if *c == nil {
		*c = &tally{}
	}
	return *c
}

// compareBuckets compares all pairs of nodes as if no two had the same owner. Two buckets
// are compared once, whatever principals their nodes belong to.
func (s *mapBuilder) compareBuckets() {
	var m reachability
	s.row = make([]tally, len(s.to.all))
	for _, a := range s.buckets {
		if len(a.from) == 0 {
			continue
		}
		for _, b := range s.buckets {
			if len(b.to) == 0 || a == b || a.route != "" && a.route == b.route {
				continue
			}
			if s.reach(&m, a, b, false); m.none() {
				continue
			}
			for _, t := range b.to {
				s.row[t.principal].add(s.accesses, &m, t.nodes)
			}
		}
		for to := range s.row {
			if r := &s.row[to]; r.pairs()+r.lost > 0 {
				for _, f := range a.from {
					s.cell(f.principal, to).addAll(s.accesses, r, f.nodes)
				}
				*r = tally{rules: r.rules[:0]}
			}
		}
		s.compareWithin(a)
	}
}

// compareWithin compares the nodes of one bucket with each other. A node and itself
// are not a pair.
func (s *mapBuilder) compareWithin(p *mapBucket) {
	var m reachability
	if len(p.subsets) == 0 || len(p.to) == 0 {
		return
	}
	if s.reach(&m, p, p, false); m.none() {
		return
	}
	same := p.inBoth()
	for _, f := range p.from {
		for _, t := range p.to {
			if n := f.nodes*t.nodes - same[[2]int{f.principal, t.principal}]; n > 0 {
				s.cell(f.principal, t.principal).add(s.accesses, &m, n)
			}
		}
	}
}

// inBoth counts the nodes that two principals have in common.
func (p *mapBucket) inBoth() map[[2]int]int {
	shared := map[[2]int]int{}
	for _, a := range p.subsets {
		for _, f := range a.members.from {
			for _, t := range a.members.to {
				shared[[2]int{f, t}] += a.nodes
			}
		}
	}
	return shared
}

// compareOwn corrects the counts for pairs with the same owner.
func (s *mapBuilder) compareOwn() {
	var others, own reachability
	for _, subsets := range s.owned {
		for _, a := range subsets {
			for _, b := range subsets {
				n := a.nodes * b.nodes
				if a == b {
					n -= a.nodes
				}
				if len(a.members.from) == 0 || len(b.members.to) == 0 || n == 0 {
					continue
				}
				if s.reach(&own, a.mapBucket, b.mapBucket, true); own.none() {
					continue
				}
				s.reach(&others, a.mapBucket, b.mapBucket, false)
				for _, f := range a.members.from {
					for _, t := range b.members.to {
						c := s.cell(f, t)
						c.add(s.accesses, &others, -n)
						c.add(s.accesses, &own, n)
						if others.after == ([2]int{}) && own.after != others.after {
							c.own += n
						}
					}
				}
			}
		}
	}
}

func (s *mapBuilder) finish() *AccessMap {
	m := &AccessMap{From: s.from.all, To: s.to.all, MoreFrom: s.from.more, MoreTo: s.to.more}
	shared := map[[2]int]int{}
	for _, p := range s.buckets {
		for key, n := range p.inBoth() {
			shared[key] += n
		}
	}
	places := map[int]int{}
	for i, t := range s.cells {
		if t == nil || t.pairs()+t.lost == 0 {
			continue
		}
		if len(m.Cells) >= maxCells {
			m.MoreCells++
			continue
		}
		from, to := i/len(s.to.all), i%len(s.to.all)
		c := AccessCell{
			From: from, To: to, Pairs: t.pairs(), Own: t.own > 0 && t.own == t.pairs(),
			Of:        s.from.weight(from)*s.to.weight(to) - shared[[2]int{from, to}],
			LostPairs: t.lost, GainedPairs: t.gained, ChangedPairs: t.changed,
			Services: s.accesses.all[t.has].services(), Lost: s.accesses.all[t.less].services(), Gained: s.accesses.all[t.more].services(),
		}
		slices.SortFunc(t.rules, func(a, b RuleShare) int { return a.Rule - b.Rule })
		for _, r := range t.rules {
			if r.Before+r.After == 0 || len(c.Rules) >= maxLines {
				continue
			}
			place, ok := places[r.Rule]
			if !ok {
				place = len(m.Rules)
				places[r.Rule], m.Rules = place, append(m.Rules, s.rules[r.Rule])
			}
			r.Rule = place
			c.Rules = append(c.Rules, r)
		}
		m.Cells = append(m.Cells, c)
	}
	return m
}
