package explain

import (
	"iter"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// evaluator determines what nodes of one class can reach on those of another, by the
// compiled rules. It caches its results.
type evaluator struct {
	*world
	accesses *accessTable
	classes  map[policy.Class]*classRules
	own      []int   // by rule: the access that it gives to nodes of the same user
	access   [][]int // by rule and destination: the access that it gives
}

// classRules holds the rules that apply to the nodes of a class themselves, first for
// IPv4, then for IPv6.
type classRules struct {
	has     [2]bool       // whether the nodes have addresses of the family
	src     [2]bitset.Set // rules that have the nodes as sources
	dst     [2][]offer    // what rules let others reach, except through autogroup:self
	few     [2][]int      // src as a list, if it is short
	shellOf bitset.Set    // SSH rules that have the nodes as sources
	shellAt bitset.Set    // SSH rules that have them as destinations
}

// offer is the access that a rule gives.
type offer struct{ rule, access int }

func newEvaluator(w *policy.World, accesses *accessTable) *evaluator {
	s := &evaluator{world: newWorld(w), accesses: accesses, classes: map[policy.Class]*classRules{}}
	s.own, s.access = make([]int, len(s.rules)), make([][]int, len(s.rules))
	for r := range s.rules {
		for k, d := range s.rules[r].Dst {
			s.access[r] = append(s.access[r], accesses.number(accessOf(d.Services)))
			if d.Kind == lang.Self {
				s.own[r] = accesses.plus(s.own[r], s.access[r][k])
			}
		}
	}
	return s
}

func (s *evaluator) class(c policy.Class) *classRules {
	if known, ok := s.classes[c]; ok {
		return known
	}
	k := s.rulesOf(s.Rules().Applied(c))
	s.classes[c] = k
	return k
}

func (s *evaluator) rulesOf(applied policy.Applied) *classRules {
	k := &classRules{has: applied.Has, src: applied.Src, shellOf: applied.ShellSrc, shellAt: applied.ShellDst}
	for family, destinations := range applied.Dst {
		for _, d := range destinations {
			if access := s.access[d.Rule][d.Destination]; access != nothing {
				k.dst[family] = s.addOffer(k.dst[family], offer{d.Rule, access})
			}
		}
		k.few[family] = k.src[family].Few()
	}
	return k
}

// addOffer adds an offer to a list that is in the order of the rules.
func (s *evaluator) addOffer(list []offer, o offer) []offer {
	if last := len(list) - 1; last >= 0 && list[last].rule == o.rule {
		list[last].access = s.accesses.plus(list[last].access, o.access)
		return list
	}
	return append(list, o)
}

// between yields the offers of class b to class a, in the order of the rules.
func between(a, b *classRules, family int) iter.Seq[offer] {
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

// reach returns what nodes of class a can reach on those of class b, in each address
// family; own means that both have the same owner.
func (s *evaluator) reach(a, b *classRules, own bool) (sums [2]int) {
	for family := range sums {
		for o := range between(a, b, family) {
			sums[family] = s.accesses.plus(sums[family], o.access)
		}
		if own && b.has[family] {
			for r := range bitset.Both(a.src[family], s.self) {
				sums[family] = s.accesses.plus(sums[family], s.own[r])
			}
		}
	}
	return sums
}

// lines adds the lines of the rules that allow nodes of class a any part of an access to
// those of class b.
func (s *evaluator) lines(list []lang.Line, a, b *classRules, own bool, what int) []lang.Line {
	for family := range a.src {
		for o := range between(a, b, family) {
			if s.accesses.meets(o.access, what) {
				list = addLine(list, s.rules[o.rule].Line)
			}
		}
		if own && b.has[family] {
			for r := range bitset.Both(a.src[family], s.self) {
				if s.accesses.meets(s.own[r], what) {
					list = addLine(list, s.rules[r].Line)
				}
			}
		}
	}
	return list
}
