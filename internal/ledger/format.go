package ledger

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// FormatError is the refusal of a change that some replica could not read. It needs no change to
// the command: when all replicas have been upgraded, it works.
type FormatError struct {
	// Replica and Version are those of a replica that is too old. They are empty if this replica
	// has just started and does not know the others yet.
	Replica, Version string
}

func (e *FormatError) Error() string {
	if e.Replica == "" {
		return "this needs the newest version on all replicas, and this replica has just started and does not know the others yet: try again in a few seconds"
	}
	return fmt.Sprintf("this needs the newest version on all replicas: upgrade replica %s first, which runs %s or ran it within the last minute", e.Replica, e.Version)
}

// Unwrap makes callers that do not know FormatError try again later.
func (e *FormatError) Unwrap() error { return ErrUnavailable }

// refuseFormat returns a FormatError if evs need a format that is not in use yet, and that not
// every replica knows. What is in use already is known to all: a replica that does not know it
// cannot use the database.
//
// A replica counts for a minute after its last heartbeat, unless it was stopped on purpose.
// This only spares old replicas: one that is missed here stops as soon as it reads the head row,
// before it could write anything.
func (l *Ledger) refuseFormat(s *mesh.Snapshot, evs []mesh.Event) error {
	needed := mesh.FormatOf(evs)
	if needed <= s.Counters.Format {
		return nil
	}
	reports, _ := l.cluster.Reports()
	if reports == nil && l.cluster.sends.Load() {
		return &FormatError{}
	}
	for _, r := range reports {
		if r.Format < needed && !r.Stopped && r.ID != l.cluster.self.ID {
			return &FormatError{Replica: cmp.Or(r.Name, string(r.ID)), Version: r.Version}
		}
	}
	return nil
}

// noteTooOld makes Run end if err says that this replica is too old for the database.
func (l *Ledger) noteTooOld(err error) {
	if errors.Is(err, store.ErrTooOld) {
		l.tooOld = err
	}
}
