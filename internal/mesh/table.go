package mesh

import (
	"hash/maphash"
	"iter"
	"maps"
	"sync/atomic"
)

// edit marks the parts of a draft that no snapshot shares yet: a part whose
// owner is the current edit may be written in place.
type edit struct{ _ byte }

const (
	pageBits  = 8
	pageSize  = 1 << pageBits
	pageMask  = pageSize - 1
	chunkBits = 2 * pageBits
)

// page holds the values of 256 neighbouring ids.
type page[V any] struct {
	owner *edit
	vals  [pageSize]*V
	count int                      // of vals that are not nil
	sum   atomic.Pointer[[32]byte] // digest, filled on demand once frozen
}

type chunk[V any] struct {
	owner *edit
	pages [pageSize]*page[V]
}

// table maps ids to values. Copying one costs nothing; a change copies one
// page, one chunk and the short list of chunks.
type table[V any] struct {
	owner  *edit
	chunks []*chunk[V]
	count  int
}

func (t *table[V]) at(id int64) *V {
	if id <= 0 || id>>chunkBits >= int64(len(t.chunks)) {
		return nil
	}
	c := t.chunks[id>>chunkBits]
	if c == nil {
		return nil
	}
	p := c.pages[id>>pageBits&pageMask]
	if p == nil {
		return nil
	}
	return p.vals[id&pageMask]
}

// put sets the value of id; nil removes it.
func (t *table[V]) put(e *edit, id int64, v *V) {
	if v == nil && t.at(id) == nil {
		return
	}
	if t.owner != e {
		t.chunks, t.owner = append([]*chunk[V](nil), t.chunks...), e
	}
	for int64(len(t.chunks)) <= id>>chunkBits {
		t.chunks = append(t.chunks, nil)
	}
	c := &t.chunks[id>>chunkBits]
	if *c == nil {
		*c = &chunk[V]{owner: e}
	} else if (*c).owner != e {
		*c = &chunk[V]{owner: e, pages: (*c).pages}
	}
	p := &(*c).pages[id>>pageBits&pageMask]
	if *p == nil {
		*p = &page[V]{owner: e}
	} else if (*p).owner != e {
		*p = &page[V]{owner: e, vals: (*p).vals, count: (*p).count}
	}
	slot := &(*p).vals[id&pageMask]
	switch {
	case *slot == nil && v != nil:
		t.count++
		(*p).count++
	case *slot != nil && v == nil:
		t.count--
		(*p).count--
	}
	*slot = v
	if (*p).count == 0 {
		*p = nil // ids are not handed out again: it would stay empty
	}
}

// all yields the values in the order of their ids.
func (t *table[V]) all() iter.Seq[*V] {
	return func(yield func(*V) bool) {
		for p := range t.pages() {
			for _, v := range p.vals {
				if v != nil && !yield(v) {
					return
				}
			}
		}
	}
}

func (t *table[V]) pages() iter.Seq[*page[V]] {
	return func(yield func(*page[V]) bool) {
		for _, p := range t.numbered() {
			if !yield(p) {
				return
			}
		}
	}
}

// numbered yields the pages with the first id of each.
func (t *table[V]) numbered() iter.Seq2[int64, *page[V]] {
	return func(yield func(int64, *page[V]) bool) {
		for i, c := range t.chunks {
			if c == nil {
				continue
			}
			for j, p := range c.pages {
				if p != nil && !yield(int64(i)<<chunkBits|int64(j)<<pageBits, p) {
					return
				}
			}
		}
	}
}

// changed returns the ids whose values differ between two tables.
func changed[ID ~int64, V any](a, b *table[V]) []ID {
	var ids []ID
	for i := range max(len(a.chunks), len(b.chunks)) {
		ca, cb := chunkAt(a, i), chunkAt(b, i)
		if ca == cb {
			continue
		}
		for j := range pageSize {
			pa, pb := pageAt(ca, j), pageAt(cb, j)
			if pa == pb {
				continue
			}
			for k := range pageSize {
				if valueAt(pa, k) != valueAt(pb, k) {
					ids = append(ids, ID(int64(i)<<chunkBits|int64(j)<<pageBits|int64(k)))
				}
			}
		}
	}
	return ids
}

func chunkAt[V any](t *table[V], i int) *chunk[V] {
	if i >= len(t.chunks) {
		return nil
	}
	return t.chunks[i]
}

func pageAt[V any](c *chunk[V], i int) *page[V] {
	if c == nil {
		return nil
	}
	return c.pages[i]
}

func valueAt[V any](p *page[V], i int) *V {
	if p == nil {
		return nil
	}
	return p.vals[i]
}

// shards is a compromise between copying a long list of maps and copying long maps.
const shards = 512

type shard[K comparable, V any] struct {
	owner *edit
	m     map[K]V
}

// index is a map of which a change copies one part in 512.
type index[K comparable, V any] struct {
	owner  *edit
	seed   maphash.Seed // decides only where an entry lies
	room   int          // entries that a new part is made for
	shards *[shards]*shard[K, V]
}

func newIndex[K comparable, V any]() index[K, V] {
	return index[K, V]{seed: maphash.MakeSeed(), shards: new([shards]*shard[K, V])}
}

func (x *index[K, V]) at(k K) (V, bool) {
	s := x.shards[maphash.Comparable(x.seed, k)%shards]
	if s == nil {
		var zero V
		return zero, false
	}
	v, ok := s.m[k]
	return v, ok
}

func (x *index[K, V]) put(e *edit, k K, v V) { x.own(e, k).m[k] = v }

func (x *index[K, V]) drop(e *edit, k K) {
	if _, ok := x.at(k); ok {
		delete(x.own(e, k).m, k)
	}
}

func (x *index[K, V]) own(e *edit, k K) *shard[K, V] {
	if x.owner != e {
		list := *x.shards
		x.shards, x.owner = &list, e
	}
	s := &x.shards[maphash.Comparable(x.seed, k)%shards]
	switch {
	case *s == nil:
		*s = &shard[K, V]{owner: e, m: make(map[K]V, x.room)}
	case (*s).owner != e:
		*s = &shard[K, V]{owner: e, m: maps.Clone((*s).m)}
	}
	return *s
}
