package policy

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// set is a set of small numbers. Missing words count as empty.
type set []uint64

func (s *set) add(i int) {
	for len(*s) <= i>>6 {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

func (s *set) addList(list []int) {
	for _, i := range list {
		s.add(i)
	}
}

// addAll adds the elements of t that are not in but.
func (s *set) addAll(t, but set) {
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

func (s set) has(i int) bool { return i>>6 < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// meets reports whether s and t share an element.
func (s set) meets(t set) bool {
	for i := range min(len(s), len(t)) {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// few returns the elements if there are so few that to look each of them up in
// another set is quicker than to compare the sets.
func (s set) few() []int {
	const limit = 16
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	if n > limit || n > len(s) {
		return nil
	}
	return slices.AppendSeq(make([]int, 0, n), s.all())
}

// all yields the elements in order.
func (s set) all() iter.Seq[int] {
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

// both yields the elements of s and t in order.
func both(s, t set) iter.Seq[int] {
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

// key is equal for equal sets.
func (s set) key() string {
	for len(s) > 0 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	key := make([]byte, 0, 8*len(s))
	for _, w := range s {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	return string(key)
}
