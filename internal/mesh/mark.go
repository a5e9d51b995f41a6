package mesh

import (
	"iter"
	"slices"
	"time"
)

// How many marks are kept, and for how long. The oldest go first.
const (
	MarkLifetime  = 24 * time.Hour
	MaxMarks      = 50_000
	MaxOwnerMarks = 1000
)

// Once names a request that must not be done twice. Owner is who made it, Key the
// name it was given and Request all that was asked; of the latter two only hashes are
// kept.
type Once struct {
	Owner        string
	Key, Request Secret

	answer string
	more   bool
}

// Answers notes, while a command of the actor is decided, what the same request is
// told when it comes again, beside the object that it changed. It holds no secret.
func (a Actor) Answers(text string) {
	if a.Once != nil {
		a.Once.answer = text
	}
}

// Continues notes, while a command is decided, whether further commands belong to the
// same request, so that it is not done yet.
func (a Actor) Continues(more bool) {
	if a.Once != nil {
		a.Once.more = more
	}
}

// Done reports whether the command that was decided last completes the request.
func (o *Once) Done() bool { return o != nil && !o.more }

// Mark remembers that a request was done.
type Mark struct {
	ID      MarkID   `json:"id"`
	Owner   string   `json:"owner"`
	Key     Secret   `json:"key"`
	Request Secret   `json:"request"`
	Rev     Revision `json:"rev"` // of the change it made
	// Object is the id of what it changed; empty when it changed nothing.
	Object string `json:"object,omitempty"`
	// Answer is what it was told beside the object.
	Answer string `json:"answer,omitempty"`
	Until  Time   `json:"until"`
}

// markAsk is what a mark is found by.
type markAsk struct {
	owner string
	key   Secret
}

func (m *Mark) ask() markAsk { return markAsk{m.Owner, m.Key} }

func (m *Mark) fields(f fields) fields {
	return f.int(int64(m.ID)).str(m.Owner).raw(m.Key[:]).raw(m.Request[:]).int(int64(m.Rev)).str(m.Object).str(m.Answer).int(int64(m.Until))
}

// Mark returns the mark that a request of this owner and key left. It may have ended.
func (s *Snapshot) Mark(o *Once) (*Mark, bool) {
	if o == nil {
		return nil, false
	}
	id, ok := s.markByAsk.at(markAsk{o.Owner, o.Key})
	if !ok {
		return nil, false
	}
	return found(s.marks.at(int64(id)))
}

// Marks yields all marks, the oldest first.
func (s *Snapshot) Marks() iter.Seq[*Mark] { return s.marks.all() }

// Remember returns the events that keep the mark of a request which is done with the
// revision that follows s. Older marks make room for it.
func Remember(s *Snapshot, now Time, o *Once, object string) (evs []Event) {
	gone := map[MarkID]bool{}
	forget := func(id MarkID) {
		if !gone[id] {
			gone[id] = true
			evs = append(evs, Forgotten{ID: id})
		}
	}
	if ended, ok := s.Mark(o); ok {
		forget(ended.ID)
	}
	if own, _ := s.marksByOwner.at(o.Owner); len(own) >= MaxOwnerMarks {
		forget(slices.Min(own))
	}
	if s.marks.count >= MaxMarks {
		for m := range s.Marks() {
			forget(m.ID)
			break
		}
	}
	return append(evs, Remembered{Mark: &Mark{
		ID: s.Counters.Mark + 1, Owner: o.Owner, Key: o.Key, Request: o.Request, Rev: s.Rev + 1,
		Object: object, Answer: o.answer, Until: now.Add(MarkLifetime),
	}})
}

func (d *Draft) putMark(id MarkID, m *Mark) {
	if old := d.s.marks.at(int64(id)); old != nil {
		dropID(d.e, &d.s.marksByOwner, old.Owner, id)
	}
	if m != nil {
		addID(d.e, &d.s.marksByOwner, m.Owner, id)
	}
	keep(d.e, &d.s.marks, &d.s.markByAsk, id, m, (*Mark).ask)
}
