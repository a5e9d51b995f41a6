package ledger

import (
	"context"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Answerer is a result that is partly stored in a receipt, so that a repeated request gets
// the same response; see mesh.Once. The stored part must not contain a secret.
type Answerer interface{ Answer() string }

// Unfinished is the result of a command that may be one of several for a request. The
// request is complete with the command for which More is false.
type Unfinished interface{ More() bool }

// decision is what a command decided.
type decision struct {
	events []mesh.Event
	answer string
	more   bool // further commands belong to the same request
}

// Commit is like Ledger.Commit for a decision with a result. It returns the result
// of the decision that was committed, and the zero value with an error.
func Commit[T any](ctx context.Context, l *Ledger, a mesh.Actor,
	decide func(w *policy.World, now mesh.Time) (T, []mesh.Event, error),
) (T, error) {
	var result, none T
	_, err := l.commitDecision(ctx, a, func(w *policy.World, now mesh.Time) (d decision, err error) {
		result, d.events, err = decide(w, now)
		if r, ok := any(result).(Answerer); ok && err == nil {
			d.answer = r.Answer()
		}
		if r, ok := any(result).(Unfinished); ok && err == nil {
			d.more = r.More()
		}
		return d, err
	})
	if err != nil {
		return none, err // a command that nobody waits for may still run and set result
	}
	return result, nil
}

// withoutResult turns a Decide into a decision.
func withoutResult(d Decide) func(*policy.World, mesh.Time) (decision, error) {
	return func(w *policy.World, now mesh.Time) (decision, error) {
		evs, err := d(w, now)
		return decision{events: evs}, err
	}
}
