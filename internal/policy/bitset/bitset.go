// Package bitset implements sets of small integers, such as the indexes of rules in a
// policy.
package bitset

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of small integers. Missing words count as empty.
type Set []uint64

// Add adds an element.
func (s *Set) Add(i int) {
	for len(*s) <= i>>6 {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// AddList adds all elements of a list.
func (s *Set) AddList(list []int) {
	for _, i := range list {
		s.Add(i)
	}
}

// AddAll adds the elements of t that are not in but.
func (s *Set) AddAll(t, but Set) {
	for len(*s) < len(t) {
		*s = append(*s, 0)
	}
	for i, w := range t {
		if i < len(but) {
			w &^= but[i]
		}
		(*s)[i] |= w
	}
}

// Has reports whether i is an element.
func (s Set) Has(i int) bool { return i>>6 < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// Meets reports whether s and t have an element in common.
func (s Set) Meets(t Set) bool {
	for i := range min(len(s), len(t)) {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// Few returns the elements if there are so few that looking each of them up in another set
// is faster than comparing the sets. Otherwise it returns nil.
func (s Set) Few() []int {
	const limit = 16
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	if n > limit || n > len(s) {
		return nil
	}
	return slices.AppendSeq(make([]int, 0, n), s.All())
}

// All yields the elements in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Both yields the common elements of s and t, in order.
func Both(s, t Set) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range min(len(s), len(t)) {
			for w := s[i] & t[i]; w != 0; w &= w - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Key returns a string that is equal for equal sets.
func (s Set) Key() string {
	for len(s) > 0 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	key := make([]byte, 0, 8*len(s))
	for _, w := range s {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	return string(key)
}
