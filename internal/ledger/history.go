package ledger

import (
	"context"
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// What the history is made of, for callers who may not know the store.
type (
	Position   = store.Position
	AuditQuery = store.AuditQuery
	AuditRow   = store.AuditRow
	Transition = store.Transition
	Presence   = store.Presence
	Leader     = store.Leader
)

// ErrForgotten says that rows after a position may be gone.
var ErrForgotten = store.ErrForgotten

// EndOf is after all rows of a revision and before those of the next.
func EndOf(rev mesh.Revision) Position { return store.EndOf(rev) }

// ParsePosition reads the form that Position.String writes.
func ParsePosition(text string) (Position, error) { return store.ParsePosition(text) }

// Audit returns the rows that q asks for; see store.History.
func (l *Ledger) Audit(ctx context.Context, q AuditQuery) ([]AuditRow, error) {
	return l.history.Audit(ctx, q)
}

// Transitions returns who came and went between two positions, oldest first.
func (l *Ledger) Transitions(ctx context.Context, after, before Position, limit int) ([]Transition, error) {
	return l.history.Transitions(ctx, after, before, limit)
}

// DeadLetters returns what a webhook's receiver did not take, newest first; see
// store.History.
func (l *Ledger) DeadLetters(ctx context.Context, w mesh.WebhookID, before mesh.DeadLetterID, limit int) ([]mesh.DeadLetter, error) {
	return l.history.DeadLetters(ctx, w, before, limit)
}

// Leaders returns who has led to a prefix, newest first.
func (l *Ledger) Leaders(ctx context.Context, prefix netip.Prefix, limit int) ([]Leader, error) {
	return l.history.Leaders(ctx, prefix, limit)
}

// Presence returns the presence of nodes from one moment up to another, in the
// order of their ids.
func (l *Ledger) Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]Presence, error) {
	return l.history.Presence(ctx, nodes, from, to)
}
