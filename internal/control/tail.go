package control

import (
	"context"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
)

const (
	tailLimit   = 256
	tailTimeout = 10 * time.Second
)

// Tail reads the history on behalf of many followers and caches the last read, which serves
// all followers that are close behind. E is the type into which changes are converted for
// them.
type Tail[E any] struct {
	history *History
	form    func(history.AuditRow) E
	at      func(E) history.Position

	mu       sync.Mutex
	from, to history.Position // guarded by mu; changes holds all changes between the two positions
	changes  []E              // guarded by mu; never modified
}

// NewTail returns a tail. form converts a change, and at returns the position of a
// converted change.
func NewTail[E any](h *History, form func(history.AuditRow) E, at func(E) history.Position) *Tail[E] {
	return &Tail[E]{history: h, form: form, at: at}
}

// After returns changes after a position, and the position up to which they are complete.
// That is the same position if there is nothing new.
func (t *Tail[E]) After(ctx context.Context, after history.Position) ([]E, history.Position, error) {
	t.mu.Lock()
	if after.Compare(t.from) < 0 { // far behind: its reads are not worth caching
		t.mu.Unlock()
		return t.read(ctx, after)
	}
	defer t.mu.Unlock()
	if after.Compare(t.to) >= 0 {
		changes, to, err := t.read(ctx, after)
		if err != nil {
			return nil, after, err
		}
		t.from, t.to, t.changes = after, to, changes
		return changes, to, nil
	}
	first := 0
	for first < len(t.changes) && t.at(t.changes[first]).Compare(after) <= 0 {
		first++
	}
	return t.changes[first:], t.to, nil
}

func (t *Tail[E]) read(ctx context.Context, after history.Position) ([]E, history.Position, error) {
	rev := t.history.ledger.World().Rev
	to := history.EndOf(rev)
	if after.Compare(to) >= 0 {
		return nil, after, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	rows, err := t.history.Changes(ctx, after, rev, tailLimit)
	if err != nil {
		return nil, after, err
	}
	if len(rows) == tailLimit {
		to = rows[len(rows)-1].Position
	}
	changes := make([]E, len(rows))
	for i, row := range rows {
		changes[i] = t.form(row)
	}
	return changes, to, nil
}
