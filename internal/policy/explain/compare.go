package explain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Limits of what an effect lists.
const (
	maxShifts     = 200
	maxFollowed   = 20_000 // maximum number of shifts that are tracked
	maxSamples    = 20
	maxPrincipals = 20
	maxLines      = 20
	// maxWork limits how many pairs of buckets are compared. A pair in which something
	// changes counts as changeWork for each pair of subsets.
	maxWork    = 8_000_000
	changeWork = 8
)

// comparison computes the difference between two worlds.
type comparison struct {
	before, after *evaluator
	accesses      *accessTable
	effect        *Effect

	buckets    []*bucket
	subsets    []*subset
	byOwner    bool // subsets have one owner each, because rules use autogroup:self
	subsetOf   map[mesh.NodeID]*subset
	sets       [][]string // the names of principals with nodes in the same buckets
	fullBefore bool       // whether every pair reached everything
	fullAfter  bool
	some       bool // whether there is any pair of nodes

	shifts map[shiftKey]*shift
	shells map[shiftKey]*shellShift
}

// bucket is a set of nodes that neither world distinguishes.
type bucket struct {
	index               int
	srcBefore, srcAfter *classRules // rules for the nodes as sources
	dstBefore, dstAfter *classRules // rules for the nodes as destinations; empty for expired nodes
	nodes               int
	subsets             []*subset
	sshBefore, sshAfter bool      // whether port 22 is reachable in each world
	lost                bool      // whether every node reaches less
	lostTo              []*bucket // buckets in which its nodes reach less, except on nodes with the same owner
}

// subset holds the nodes of a bucket that belong to the same principals and, if rules use
// autogroup:self, to the same owner.
type subset struct {
	*bucket
	number                  int // index in comparison.subsets
	principals              int
	ownerBefore, ownerAfter mesh.UserID
	nodes                   []*mesh.Node
	names                   []string // names of their principals, set by principalsIn
	online                  int
	sshBefore, sshAfter     bool // whether nodes of the same user reach port 22 in each world
	lost                    bool
}

type shiftKey struct {
	from, to int
	own      bool
}

// shift is a Shift under construction.
type shift struct {
	Shift
	affected
	lost, gained int
	losers       map[*subset]bool
}

// shellShift is a ShellShift under construction.
type shellShift struct {
	ShellShift
	affected
}

// affected holds the subsets for which something changes, if each subset has one owner.
type affected struct {
	key      shiftKey
	from, to bitset.Set
}

func (f *affected) add(c *comparison, a, b *subset) {
	if c.byOwner {
		f.from.Add(a.number)
		f.to.Add(b.number)
	}
}

// principalOf returns the tags of a node, or the name of its owner.
func (w *world) principalOf(n *mesh.Node) string {
	if n.Tagged() {
		return strings.Join(n.Tags, ", ")
	}
	if u := w.owner(n); u != nil {
		return u.Name
	}
	return n.Name
}

// sort assigns all nodes that are in both worlds to buckets and subsets.
func (c *comparison) sort() {
	type bucketKey struct {
		before, after             policy.Class
		lapsedBefore, lapsedAfter bool
	}
	buckets := map[bucketKey]*bucket{}
	bucketOf := map[mesh.NodeID]*bucket{}
	of := map[string]bitset.Set{} // the buckets of a principal
	for n := range c.after.Nodes.All() {
		was, ok := c.before.Nodes.Get(n.ID)
		if !ok {
			continue
		}
		key := bucketKey{c.before.PeerClass(was), c.after.PeerClass(n), was.CutOff(), n.CutOff()}
		j := buckets[key]
		if j == nil {
			j = &bucket{
				index: len(c.buckets), srcBefore: c.before.class(key.before), srcAfter: c.after.class(key.after),
				dstBefore: c.before.class(c.before.Class(was)), dstAfter: c.after.class(c.after.Class(n)),
			}
			buckets[key], c.buckets = j, append(c.buckets, j)
		}
		bucketOf[n.ID] = j
		p := c.after.principalOf(n)
		s := of[p]
		s.Add(j.index)
		of[p] = s
	}
	numbers, numberOf := map[string]int{}, map[string]int{}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		key := of[p].Key()
		if _, ok := numbers[key]; !ok {
			numbers[key] = len(c.sets)
			c.sets = append(c.sets, nil)
		}
		numberOf[p] = numbers[key]
		c.sets[numbers[key]] = append(c.sets[numbers[key]], p)
	}
	c.fill(bucketOf, numberOf)
}

func (c *comparison) fill(bucketOf map[mesh.NodeID]*bucket, numberOf map[string]int) {
	type subsetKey struct {
		bucket, principals int
		before, after      mesh.UserID
	}
	subsets := map[subsetKey]*subset{}
	c.subsetOf = make(map[mesh.NodeID]*subset, len(bucketOf))
	c.byOwner = c.before.ownCounts() || c.after.ownCounts()
	for n := range c.after.Nodes.All() {
		j := bucketOf[n.ID]
		if j == nil {
			continue
		}
		key := subsetKey{bucket: j.index, principals: numberOf[c.after.principalOf(n)]}
		if c.byOwner {
			was, _ := c.before.Nodes.Get(n.ID)
			key.before, key.after = was.Owner, n.Owner
		}
		e := subsets[key]
		if e == nil {
			e = &subset{bucket: j, number: len(c.subsets), principals: key.principals, ownerBefore: key.before, ownerAfter: key.after}
			subsets[key], c.subsets, j.subsets = e, append(c.subsets, e), append(j.subsets, e)
		}
		j.nodes++
		e.nodes = append(e.nodes, n)
		c.subsetOf[n.ID] = e
		if n.Presence.Online {
			e.online++
		}
	}
	c.shifts, c.shells = map[shiftKey]*shift{}, map[shiftKey]*shellShift{}
	c.fullBefore, c.fullAfter = true, true
}

// same reports whether the same user owns both subsets, before or after.
func same(a, b *subset) bool {
	return a.ownerBefore != 0 && a.ownerBefore == b.ownerBefore || a.ownerAfter != 0 && a.ownerAfter == b.ownerAfter
}

// pairsBetween returns the number of ordered pairs of nodes of two subsets.
func pairsBetween(a, b *subset) int {
	if a == b {
		return len(a.nodes) * (len(a.nodes) - 1)
	}
	return len(a.nodes) * len(b.nodes)
}

// ownPairs yields the pairs of subsets with the same owner.
func (c *comparison) ownPairs(yield func(a, b *subset) bool) {
	byBefore, byAfter := map[mesh.UserID][]*subset{}, map[mesh.UserID][]*subset{}
	for _, e := range c.subsets {
		if e.ownerBefore != 0 {
			byBefore[e.ownerBefore] = append(byBefore[e.ownerBefore], e)
		}
		if e.ownerAfter != 0 {
			byAfter[e.ownerAfter] = append(byAfter[e.ownerAfter], e)
		}
	}
	for _, a := range c.subsets {
		for _, b := range byBefore[a.ownerBefore] {
			if !yield(a, b) {
				return
			}
		}
		for _, b := range byAfter[a.ownerAfter] {
			if (a.ownerBefore == 0 || a.ownerBefore != b.ownerBefore) && !yield(a, b) {
				return
			}
		}
	}
}

// comparePairs compares all pairs except those with the same owner.
func (c *comparison) comparePairs() {
	own := make([]map[int]int, len(c.buckets)) // by both buckets
	for a, b := range c.ownPairs {
		if own[a.index] == nil {
			own[a.index] = map[int]int{}
		}
		own[a.index][b.index] += pairsBetween(a, b)
	}
	work := 0
	for _, a := range c.buckets {
		if work > maxWork {
			c.effect.Truncated = true
			return
		}
		for _, b := range c.buckets {
			work++
			n := a.nodes * b.nodes
			if a == b {
				n -= a.nodes
			}
			if n -= own[a.index][b.index]; n == 0 {
				continue
			}
			before, after := c.before.reach(a.srcBefore, b.dstBefore, false), c.after.reach(a.srcAfter, b.dstAfter, false)
			sshBefore, sshAfter := c.count(before, after, n)
			b.sshBefore, b.sshAfter = b.sshBefore || sshBefore, b.sshAfter || sshAfter
			if before == after {
				continue
			}
			lost, gained := c.difference(before, after), c.difference(after, before)
			c.countParts(lost, gained, n)
			if lost != nothing {
				a.losesTo(b, own[a.index] != nil)
			}
			for _, x := range a.subsets {
				for _, y := range b.subsets {
					work += changeWork
					if !same(x, y) {
						c.note(x, y, false, false, false, lost, gained)
					}
				}
			}
		}
	}
}

// losesTo records that nodes of a bucket no longer reach something in another bucket.
// This applies to all of its nodes, unless some users have nodes in both.
func (j *bucket) losesTo(b *bucket, own bool) {
	if own {
		j.lostTo = append(j.lostTo, b)
		return
	}
	j.lost = true
}

// compareOwn compares the pairs with the same owner, before or after.
func (c *comparison) compareOwn() {
	for a, b := range c.ownPairs {
		n := pairsBetween(a, b)
		if n == 0 {
			continue
		}
		ownBefore := a.ownerBefore != 0 && a.ownerBefore == b.ownerBefore
		ownAfter := a.ownerAfter != 0 && a.ownerAfter == b.ownerAfter
		before, after := c.before.reach(a.srcBefore, b.dstBefore, ownBefore), c.after.reach(a.srcAfter, b.dstAfter, ownAfter)
		sshBefore, sshAfter := c.count(before, after, n)
		b.sshBefore, b.sshAfter = b.sshBefore || sshBefore, b.sshAfter || sshAfter
		if before != after {
			lost, gained := c.difference(before, after), c.difference(after, before)
			c.countParts(lost, gained, n)
			a.lost = a.lost || lost != nothing
			c.note(a, b, true, ownBefore, ownAfter, lost, gained)
		}
	}
}

// count adds pairs to the totals, and reports whether they reach port 22.
func (c *comparison) count(before, after [2]int, n int) (sshBefore, sshAfter bool) {
	none := [2]int{}
	switch {
	case before == after && before != none:
		c.effect.Unchanged += n
	case before == after:
	case after == none:
		c.effect.Lost += n
	case before == none:
		c.effect.Gained += n
	default:
		c.effect.Changed += n
	}
	c.some = true
	full := func(has [2]int) bool { return c.accesses.full[has[0]] || c.accesses.full[has[1]] }
	c.fullBefore, c.fullAfter = c.fullBefore && full(before), c.fullAfter && full(after)
	return c.accesses.ssh(before), c.accesses.ssh(after)
}

// countParts adds pairs to the totals of those that lose or gain something.
func (c *comparison) countParts(lost, gained, n int) {
	if lost != nothing {
		c.effect.Losing += n
	}
	if gained != nothing {
		c.effect.Gaining += n
	}
}

// difference returns what is in a but not in b, in either family.
func (c *comparison) difference(a, b [2]int) int {
	if b == ([2]int{}) && a[0] == a[1] {
		return a[0]
	}
	return c.accesses.plus(c.accesses.minus(a[0], b[0]), c.accesses.minus(a[1], b[1]))
}

// note records what changes between two subsets.
func (c *comparison) note(a, b *subset, own, ownBefore, ownAfter bool, lost, gained int) {
	n := pairsBetween(a, b)
	if n == 0 {
		return
	}
	key := shiftKey{a.principals, b.principals, own}
	s := c.shifts[key]
	if s == nil {
		if len(c.shifts) >= maxFollowed {
			c.effect.MoreShifts++
			return
		}
		s = &shift{
			Shift:    Shift{From: c.principals(key.from), To: c.principals(key.to), Own: own},
			affected: affected{key: key}, losers: map[*subset]bool{},
		}
		c.shifts[key] = s
	}
	s.Pairs += n
	s.add(c, a, b)
	s.lost, s.gained = c.accesses.plus(s.lost, lost), c.accesses.plus(s.gained, gained)
	if lost != nothing {
		s.LostLines = c.before.lines(s.LostLines, a.srcBefore, b.dstBefore, ownBefore, lost)
		if !s.losers[a] {
			s.losers[a] = true
			s.Online += a.online
		}
	}
	if gained != nothing {
		s.GainedLines = c.after.lines(s.GainedLines, a.srcAfter, b.dstAfter, ownAfter, gained)
	}
	s.Samples = sample(s.Samples, a, b)
}

func (c *comparison) principals(set int) Principals { return principalsOf(c.sets[set]) }

func principalsOf(names []string) Principals {
	return Principals{Names: names[:min(len(names), maxPrincipals)], Count: len(names)}
}

// ends returns the principals of an effect that have nodes in the affected subsets. Rules
// with autogroup:self affect each owner differently, so these may be only some of the
// principals in the sets.
func (c *comparison) ends(f *affected) (from, to Principals) {
	if !c.byOwner {
		return c.principals(f.key.from), c.principals(f.key.to)
	}
	return c.principalsIn(f.from), c.principalsIn(f.to)
}

func (c *comparison) principalsIn(subsets bitset.Set) Principals {
	names := map[string]bool{}
	for i := range subsets.All() {
		e := c.subsets[i]
		if e.names == nil {
			for _, n := range e.nodes {
				if p := c.after.principalOf(n); !slices.Contains(e.names, p) {
					e.names = append(e.names, p)
				}
			}
		}
		for _, p := range e.names {
			names[p] = true
		}
	}
	return principalsOf(slices.Sorted(maps.Keys(names)))
}

// sample adds pairs of two subsets, up to a limit.
func sample(list []NodePair, a, b *subset) []NodePair {
	for _, x := range a.nodes {
		for _, y := range b.nodes {
			if len(list) >= maxSamples {
				return list
			}
			if x != y {
				list = append(list, NodePair{x.ID, y.ID})
			}
		}
	}
	return list
}

// addLine adds a line to a sorted list without duplicates, up to a limit.
func addLine(list []lang.Line, l lang.Line) []lang.Line {
	i, found := slices.BinarySearch(list, l)
	if found || len(list) >= maxLines {
		return list
	}
	return slices.Insert(list, i, l)
}

// countLosers counts the nodes that no longer reach something. If a bucket loses access
// to another bucket, so does each of its subsets, provided that the other bucket has
// nodes of a different user.
func (c *comparison) countLosers() {
	for _, e := range c.subsets {
		e.lost = e.lost || e.bucket.lost
		for _, b := range e.lostTo {
			others := b.nodes
			for _, d := range b.subsets {
				if same(e, d) {
					others -= len(d.nodes)
				}
			}
			if b == e.bucket && !same(e, e) {
				others--
			}
			if e.lost = e.lost || others > 0; e.lost {
				break
			}
		}
		if e.lost {
			c.effect.Losers += len(e.nodes)
			c.effect.LosersOnline += e.online
		}
	}
}

// finish adds the sorted results to the effect.
func (c *comparison) finish() {
	list := slices.SortedFunc(maps.Values(c.shifts), func(a, b *shift) int {
		return cmp.Or(b.Pairs-a.Pairs, compareEnds(a.From, a.To, b.From, b.To), othersFirst(a.Own, b.Own))
	})
	for _, s := range list[:min(len(list), maxShifts)] {
		s.From, s.To = c.ends(&s.affected)
		s.Lost, s.Gained = c.accesses.all[s.lost].services(), c.accesses.all[s.gained].services()
		c.effect.Shifts = append(c.effect.Shifts, s.Shift)
	}
	c.effect.MoreShifts += max(0, len(list)-maxShifts)
	shells := slices.SortedFunc(maps.Values(c.shells), func(a, b *shellShift) int {
		return cmp.Or(b.Pairs-a.Pairs, compareEnds(a.From, a.To, b.From, b.To), othersFirst(a.Own, b.Own))
	})
	for _, s := range shells[:min(len(shells), maxShifts)] {
		s.From, s.To = c.ends(&s.affected)
		c.effect.Shells = append(c.effect.Shells, s.ShellShift)
	}
	c.effect.MoreShells += max(0, len(shells)-maxShifts)
}

func compareEnds(from, to, otherFrom, otherTo Principals) int {
	return cmp.Or(slices.Compare(from.Names, otherFrom.Names), slices.Compare(to.Names, otherTo.Names))
}

// othersFirst compares two values of Own: changes that affect only nodes of the same user
// come last.
func othersFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
