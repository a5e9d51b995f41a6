package policy

import (
	"iter"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// side is a world of which is asked what classes of nodes reach of each other, by
// the rules that were compiled for their classes.
type side struct {
	*World
	book    *accessBook
	classes map[Class]*sideClass
	own     []int   // by rule: what it lets nodes of one person reach
	access  [][]int // by rule and destination: what it lets others reach
}

// sideClass is what nodes of a class may by their own addresses, and what others
// may there; first IPv4, then IPv6.
type sideClass struct {
	info    *classInfo
	has     [2]bool       // addresses of the family
	src     [2]bitset.Set // rules
	dst     [2][]offer    // by rules other than those about autogroup:self
	few     [2][]int      // src as a list, if that is short
	shellOf bitset.Set    // rules about shells that let it in
	shellAt bitset.Set    // rules about shells on it
}

// offer is what a rule lets in.
type offer struct{ rule, access int }

func newSide(w *World, book *accessBook) *side {
	s := &side{World: w, book: book, classes: map[Class]*sideClass{}, own: make([]int, len(w.rules.rules)), access: make([][]int, len(w.rules.rules))}
	for r := range w.rules.rules {
		for _, d := range w.rules.rules[r].Dst {
			s.access[r] = append(s.access[r], book.number(accessOf(d.Services)))
		}
	}
	for r := range w.rules.self.All() {
		for k, d := range w.rules.rules[r].Dst {
			if d.Kind == lang.Self {
				s.own[r] = book.plus(s.own[r], s.access[r][k])
			}
		}
	}
	return s
}

func (s *side) class(c Class) *sideClass {
	if known, ok := s.classes[c]; ok {
		return known
	}
	i := s.rules.info(c)
	k := &sideClass{info: i, has: [2]bool{i.addrs.four, i.addrs.six}}
	s.classes[c] = k
	if c == Nobody {
		return k
	}
	var dst [2]bitset.Set
	for sel := range i.own.All() {
		selector := &s.rules.selectors[sel]
		f := i.familiesOf(selector, i.addrs)
		for family, counts := range [2]bool{f.four, f.six} {
			if counts {
				k.src[family].AddAll(selector.src, nil)
				dst[family].AddAll(selector.dst, s.rules.via)
			}
		}
	}
	for family := range dst {
		for r := range dst[family].All() {
			if access := s.offered(i, r, family == 1); access != nothing {
				k.dst[family] = append(k.dst[family], offer{r, access})
			}
		}
	}
	for family := range k.few {
		k.few[family] = k.src[family].Few()
	}
	for n := range s.rules.ssh {
		r := &s.rules.ssh[n]
		if r.on(i) {
			k.shellAt.Add(n)
		}
		for _, src := range r.srcs {
			if i.own.Has(src) {
				k.shellOf.Add(n)
			}
		}
	}
	return k
}

// offered is what a rule lets others reach of nodes of a class themselves.
func (s *side) offered(i *classInfo, r int, six bool) (sum int) {
	for k, access := range s.access[r] {
		for _, sel := range s.rules.dsts[r][k] {
			f := i.familiesOf(&s.rules.selectors[sel], i.addrs)
			if i.own.Has(sel) && (six && f.six || !six && f.four) {
				sum = s.book.plus(sum, access)
			}
		}
	}
	return sum
}

// between yields what rules let nodes of class a reach of those of class b, in the
// order of the rules.
func between(a, b *sideClass, family int) iter.Seq[offer] {
	return func(yield func(offer) bool) {
		offers, few := b.dst[family], a.few[family]
		if few != nil && len(few) < len(offers)/8 {
			for _, r := range few {
				i, ok := slices.BinarySearchFunc(offers, r, func(o offer, r int) int { return o.rule - r })
				if ok && !yield(offers[i]) {
					return
				}
			}
			return
		}
		for _, o := range offers {
			if a.src[family].Has(o.rule) && !yield(o) {
				return
			}
		}
	}
}

// reach is what nodes of class a reach of those of class b, in each family; own
// says that one person has both.
func (s *side) reach(a, b *sideClass, own bool) (sums [2]int) {
	for family := range sums {
		for o := range between(a, b, family) {
			sums[family] = s.book.plus(sums[family], o.access)
		}
		if own && b.has[family] {
			for r := range bitset.Both(a.src[family], s.rules.self) {
				sums[family] = s.book.plus(sums[family], s.own[r])
			}
		}
	}
	return sums
}

// lines adds where the rules stand by which nodes of class a reach what was lost or
// gained of class b.
func (s *side) lines(list []lang.Line, a, b *sideClass, own bool, what int) []lang.Line {
	for family := range a.src {
		for o := range between(a, b, family) {
			if s.book.meets(o.access, what) {
				list = addLine(list, s.rules.rules[o.rule].Line)
			}
		}
		if own && b.has[family] {
			for r := range bitset.Both(a.src[family], s.rules.self) {
				if s.book.meets(s.own[r], what) {
					list = addLine(list, s.rules.rules[r].Line)
				}
			}
		}
	}
	return list
}
