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

// page holds the values of 256 consecutive ids.
type page[V any] struct {
	owner *edit
	vals  [pageSize]*V
	count int                      // number of vals that are not nil
	sum   atomic.Pointer[[32]byte] // digest, filled on demand once frozen
}

type chunk[V any] struct {
	owner *edit
	pages [pageSize]*page[V]
}

// Table holds all objects of one noun by id. Copying one costs nothing; a change copies
// one page, one chunk and the short list of chunks.
type Table[ID ~int64, V any] struct {
	owner  *edit
	chunks []*chunk[V]
	count  int
}

// Get returns the object with this id.
func (t *Table[ID, V]) Get(id ID) (*V, bool) { return found(t.at(id)) }

// lookup returns the object for the result of an index lookup.
func (t *Table[ID, V]) lookup(id ID, ok bool) (*V, bool) {
	if !ok {
		return nil, false
	}
	return t.Get(id)
}

// Len returns the number of objects.
func (t *Table[ID, V]) Len() int { return t.count }

func (t *Table[ID, V]) at(id ID) *V {
	if id <= 0 || id>>chunkBits >= ID(len(t.chunks)) {
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
func (t *Table[ID, V]) put(e *edit, id ID, v *V) {
	if v == nil && t.at(id) == nil {
		return
	}
	if t.owner != e {
		t.chunks, t.owner = append([]*chunk[V](nil), t.chunks...), e
	}
	for ID(len(t.chunks)) <= id>>chunkBits {
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
		*p = nil // ids are not reused, so the page would stay empty
	}
}

// All yields all objects, sorted by id.
func (t *Table[ID, V]) All() iter.Seq[*V] {
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

func (t *Table[ID, V]) pages() iter.Seq[*page[V]] {
	return func(yield func(*page[V]) bool) {
		for _, p := range t.numbered() {
			if !yield(p) {
				return
			}
		}
	}
}

// numbered yields the pages with the first id of each.
func (t *Table[ID, V]) numbered() iter.Seq2[ID, *page[V]] {
	return func(yield func(ID, *page[V]) bool) {
		for i, c := range t.chunks {
			if c == nil {
				continue
			}
			for j, p := range c.pages {
				if p != nil && !yield(ID(i)<<chunkBits|ID(j)<<pageBits, p) {
					return
				}
			}
		}
	}
}

// changedSince returns the ids whose values differ from those of an older table, in
// order. Pages that both share are skipped.
func (t *Table[ID, V]) changedSince(old *Table[ID, V]) []ID {
	var ids []ID
	for i := range max(len(t.chunks), len(old.chunks)) {
		ca, cb := t.chunkAt(i), old.chunkAt(i)
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
					ids = append(ids, ID(i)<<chunkBits|ID(j)<<pageBits|ID(k))
				}
			}
		}
	}
	return ids
}

func (t *Table[ID, V]) chunkAt(i int) *chunk[V] {
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

// shards balances the cost of copying the list of shards against the cost of copying one
// shard.
const shards = 512

type shard[K comparable, V any] struct {
	owner *edit
	m     map[K]V
}

// index is a sharded map: a change copies only one of its shards.
type index[K comparable, V any] struct {
	owner  *edit
	seed   maphash.Seed // only decides in which shard an entry is
	room   int          // capacity of a new shard
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

// all yields all entries, in no particular order.
func (x *index[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, s := range x.shards {
			if s == nil {
				continue
			}
			for k, v := range s.m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

func (x *index[K, V]) put(e *edit, k K, v V) { x.own(e, k).m[k] = v }

func (x *index[K, V]) drop(e *edit, k K) {
	if _, ok := x.at(k); ok {
		delete(x.own(e, k).m, k)
	}
}

// release drops an entry if it belongs to id. In a change that swaps the names of two objects, it may already belong to the other.
func release[K, ID comparable](e *edit, x *index[K, ID], k K, id ID) {
	if owner, ok := x.at(k); ok && owner == id {
		x.drop(e, k)
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
