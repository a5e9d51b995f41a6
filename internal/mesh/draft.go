package mesh

import "slices"

// Draft is a snapshot under construction. One goroutine edits it, may read it
// between edits, and freezes it once.
type Draft struct {
	s *Snapshot
	e *edit
}

// Edit starts a draft that shares everything with s until it is changed.
func (s *Snapshot) Edit() *Draft {
	next := *s
	return &Draft{s: &next, e: new(edit)}
}

// Snapshot returns the state so far. It changes with the next Apply.
func (d *Draft) Snapshot() *Snapshot { return d.s }

// Freeze ends the draft and returns its snapshot.
func (d *Draft) Freeze() *Snapshot {
	s := d.s
	d.s, d.e = nil, nil
	return s
}

// Load adds an object of the store to a new draft, and keeps pointers into the event. An
// object is loaded before the events that complete it; Restore comes last.
func (d *Draft) Load(e Event) {
	d.s.Counters.Count(e)
	if e, ok := e.(interface{ load(d *Draft) }); ok {
		e.load(d)
		return
	}
	e.apply(d)
}

// Restore ends loading: it indexes the nodes and sets what is stored in the head of the
// log. Counters are at least what the tables contain, because a binary that does not know a
// counter may have written the head.
func (d *Draft) Restore(rev Revision, at Time, batch BatchID, c Counters) {
	room := d.s.Nodes.count / shards
	d.s.Nodes.byMachine.room, d.s.Nodes.byKey.room, d.s.Nodes.byName.room, d.s.Nodes.byAddr.room = room, room, room, 2*room
	for n := range d.s.Nodes.All() {
		d.indexNode(n)
	}
	d.s.Rev, d.s.IdentityRev, d.s.SettingsRev, d.s.PolicyRev, d.s.Counters = rev, rev, rev, rev, c.AtLeast(d.s.Counters)
	d.Stamp(at, batch)
}

// Apply returns the snapshot after evs and the nodes they touched.
func Apply(s *Snapshot, rev Revision, evs ...Event) (*Snapshot, []NodeID) {
	d := s.Edit()
	touched := d.Apply(rev, evs...)
	return d.Freeze(), touched
}

// Stamp sets the time and the transaction of the newest entry.
func (d *Draft) Stamp(at Time, batch BatchID) { d.s.At, d.s.Batch = at, batch }

// Apply moves the draft to rev and returns the nodes that evs touched. It
// derives nothing: consequences were added to evs by Settle.
func (d *Draft) Apply(rev Revision, evs ...Event) []NodeID {
	var touched []NodeID
	d.s.Rev = rev
	for _, e := range evs {
		d.s.Counters.Count(e)
		e.apply(d)
		if e, ok := e.(nodeEvent); ok {
			touched = append(touched, e.node())
		}
	}
	return touched
}

// addID adds an id to the list of a key.
func addID[K, ID comparable](e *edit, x *index[K, []ID], k K, id ID) {
	ids, _ := x.at(k)
	x.put(e, k, append(slices.Clone(ids), id))
}

// dropID removes an id from the list of a key.
func dropID[K, ID comparable](e *edit, x *index[K, []ID], k K, id ID) {
	ids, _ := x.at(k)
	if ids = slices.DeleteFunc(slices.Clone(ids), func(i ID) bool { return i == id }); len(ids) == 0 {
		x.drop(e, k)
	} else {
		x.put(e, k, ids)
	}
}

// change replaces a value with a changed copy, if it exists.
func change[V any, ID ~int64](e *edit, t *Table[ID, V], id ID, edit func(*V)) {
	if old := t.at(id); old != nil {
		v := *old
		edit(&v)
		t.put(e, id, &v)
	}
}

// keep stores v in a table and in its only index, or removes id if v is nil.
func keep[V any, K comparable, ID ~int64](e *edit, t *Table[ID, V], x *index[K, ID], id ID, v *V, by func(*V) K) {
	if old := t.at(id); old != nil {
		release(e, x, by(old), id)
	}
	if v != nil {
		x.put(e, by(v), id)
	}
	t.put(e, id, v)
}
