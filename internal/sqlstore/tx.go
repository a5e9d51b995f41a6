package sqlstore

import (
	"encoding/json"
	"errors"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// tx is a locked log of either engine. It only collects rows; the engine sends them.
type tx struct {
	head   head
	after  mesh.Revision
	found  mesh.Revision // the head when it was locked
	last   store.BatchID // the batch of the head
	missed []logRow
	// complete is set when missed is known to contain everything after the revision after.
	complete bool
	batch    store.BatchID
	confirm  bool
	changes  *changes
}

func newTx(s *schema, h head, missed []logRow, after mesh.Revision, batch store.BatchID) *tx {
	return &tx{head: h, after: after, found: h.rev, last: h.batch, missed: missed, batch: batch, changes: newChanges(s)}
}

func (t *tx) Missed() ([]store.Entry, error) {
	missed, err := entries(t.missed, store.Point{Rev: t.after}, store.Point{Rev: t.found, Batch: t.last})
	t.complete = err == nil && (len(missed) == 0 || missed[len(missed)-1].Rev == t.found)
	return missed, err
}

func (t *tx) Head() mesh.Revision { return t.head.rev }

func (t *tx) Last() store.BatchID { return t.last }

func (t *tx) Now() mesh.Time { return t.head.now }

func (t *tx) Clock() store.Clock { return t.head.clock }

func (t *tx) Rewind() { t.head.now = t.head.clock.Now }

func (t *tx) Timeline() int64 { return int64(t.head.timeline) }

func (t *tx) Confirm() { t.confirm = true }

// empty reports whether there is nothing to commit; bare reports whether an empty commit is requested.
func (t *tx) empty() bool { return len(t.changes.log) == 0 && !t.confirm }
func (t *tx) bare() bool  { return len(t.changes.log) == 0 && t.confirm }

var errBehind = errors.New("cannot append before reading all missed entries")

func (t *tx) Append(c store.Command) (mesh.Revision, error) {
	if !t.complete {
		if _, err := t.Missed(); err != nil || !t.complete {
			return 0, errBehind
		}
	}
	events, err := mesh.EncodeEvents(c.Events)
	if err != nil {
		return 0, err
	}
	actor, err := json.Marshal(c.Actor)
	if err != nil {
		return 0, err
	}
	t.head.rev = mesh.Next(t.head.rev, c.Events)
	for _, e := range c.Events {
		if err := t.changes.add(e); err != nil {
			return 0, err
		}
		t.head.counters.Count(e)
	}
	rev, at, schema := t.head.rev, t.head.now, t.changes.schema
	t.changes.log = append(t.changes.log, schema.log.values(logRow{
		Rev: rev, Batch: t.batch, Prev: t.head.batch, At: at, Actor: string(actor), Events: events,
	}))
	t.head.batch = t.batch
	for i, a := range c.Audit {
		t.changes.audit = append(t.changes.audit, schema.audit.values(auditRow{
			Rev: rev, Idx: i, At: at, Actor: string(actor), Verb: a.Verb, ObjectKind: a.Kind, ObjectID: a.Object,
			Before: a.Before, After: a.After,
			ActorKind: string(c.Actor.Kind), ActorID: c.Actor.ID, ActorName: c.Actor.Name,
		}))
	}
	for i, p := range c.Presence {
		key := [3]int64{int64(p.Node), minuteOf(p.At), bit(p.Online)}
		t.changes.transitions[key] = schema.transitions.values(transitionRow{
			Node: p.Node, Minute: minuteOf(p.At), Online: p.Online, At: p.At, Rev: rev, Idx: len(c.Audit) + i,
		})
	}
	for _, l := range c.Leaders {
		row := leaderRow{Prefix: l.Prefix, Rev: rev, At: at, Node: l.Node, Name: l.Name}
		t.changes.leaders = append(t.changes.leaders, schema.leaders.values(row))
	}
	return t.head.rev, nil
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
