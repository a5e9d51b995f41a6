package ledger

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Limits on how far the database's clock, this machine's clock and the time of the newest
// change may disagree. It is normal for the newest change to be in the past: nothing has
// happened since, or a backup was restored.
const (
	// ClockSlack is the difference above which a warning is shown.
	ClockSlack = time.Minute
	// ClockLimit is the difference above which nothing is written: the time of a change
	// cannot be corrected later, and a change dated a year ahead would expire keys a year
	// early.
	ClockLimit = 5 * time.Minute
)

// ClockError describes which clocks disagree. Above ClockLimit nothing is written until
// they agree; reads and maps still work.
type ClockError struct {
	// Lead is how far the newest change is dated after the database's clock.
	Lead time.Duration
	// Ahead is how far the database's clock is ahead of this machine's;
	// negative means behind.
	Ahead time.Duration
	// Shared reports whether the database uses this machine's clock.
	Shared bool
}

// Refuses reports whether the disagreement is so large that nothing is written.
func (e *ClockError) Refuses() bool { return max(e.Lead, e.Ahead.Abs()) > ClockLimit }

// Error says which clock is wrong and what to do.
func (e *ClockError) Error() string {
	text, end := "", "changes are rejected until then"
	if !e.Refuses() {
		end = fmt.Sprintf("above %v, changes are rejected", ClockLimit)
	}
	switch direction := "ahead of"; {
	case e.Ahead != 0:
		if e.Ahead > 0 {
			direction = "behind"
		}
		text = fmt.Sprintf("this machine's clock is %v %s the database's clock: correct the wrong one; %s", e.Ahead.Abs().Round(time.Second), direction, end)
	case e.Shared:
		text = fmt.Sprintf("the newest change is dated %v ahead of this machine's clock: if the clock is behind, correct it; if it is right, "+
			"a change was made while it was ahead: run fairlead db repair-clock; %s", e.Lead.Round(time.Second), end)
	default:
		text = fmt.Sprintf("the newest change is dated %v ahead of the database's clock: if that clock is behind, correct it; if it is right, "+
			"a change was made while it was ahead: run fairlead db repair-clock; %s", e.Lead.Round(time.Second), end)
	}
	return text
}

// Is makes errors.Is match ErrUnavailable, so that callers treat a ClockError like an
// unavailable database.
func (e *ClockError) Is(target error) bool { return target == ErrUnavailable }

// disagreement compares the database's clock c, which shows now, with this machine's
// clock and with the time of the newest change. It returns nil if they agree within
// ClockSlack.
func disagreement(latest, now mesh.Time, c store.Clock) *ClockError {
	e := &ClockError{Shared: c.Read.IsZero()}
	if c.Ahead.Abs() > ClockSlack {
		e.Ahead = c.Ahead
	}
	if ahead := lead(latest, now); ahead > ClockSlack {
		e.Lead = ahead
	}
	if e.Lead == 0 && e.Ahead == 0 {
		return nil
	}
	return e
}

// lead returns how far the date of the newest change is ahead of now, or 0.
func lead(latest, now mesh.Time) time.Duration {
	return max(0, min(latest, now.Add(math.MaxInt64)).Sub(now))
}

// Clocks returns nil while the clocks agree with each other and with the newest
// change.
func (s Status) Clocks() *ClockError {
	c := s.l.store.Clock()
	return disagreement(s.l.World().At, c.At(time.Now()), c)
}

// logClocks logs when the clocks begin to disagree, when writes are refused
// because of it, and when they agree again.
func (l *Ledger) logClocks() {
	e, said := l.Status().Clocks(), "agree"
	switch {
	case e != nil && e.Refuses():
		said = "refuse"
	case e != nil:
		said = "disagree"
	}
	if said == l.clocks {
		return
	}
	switch {
	case said == "refuse":
		l.log.Error("clocks disagree, refusing to write", "error", e)
	case said == "disagree":
		l.log.Warn("clocks disagree", "error", e)
	case l.clocks != "":
		l.log.Info("clocks agree again")
	}
	l.clocks = said
}

// DatabaseTime returns the time of the database's clock, regardless of the date of
// the newest change.
func (s Status) DatabaseTime() mesh.Time { return s.l.store.Clock().At(time.Now()) }

// Now returns the time that decides what has expired: the database's clock, or the date
// of the newest change if that is later. This machine's clock is used only if the
// database has none, so that a replica with a wrong clock does not refuse keys that the
// others accept.
func (l *Ledger) Now() mesh.Time {
	return max(l.World().At, l.Status().DatabaseTime())
}

// refuseClocks returns an error if the clocks disagree so much that nothing may be
// written.
func refuseClocks(tx store.Tx) error {
	c := tx.Clock()
	if e := disagreement(tx.Now(), c.Now, c); e != nil && e.Refuses() {
		return e
	}
	return nil
}

// CommitBack is like Commit, but uses the database's clock even if earlier changes
// are dated later. It repairs a mesh in which a wrong clock dated changes in the
// future. The clocks of the database and of this machine must agree.
func (l *Ledger) CommitBack(ctx context.Context, a mesh.Actor, d Decide) (mesh.Revision, error) {
	return l.submit(&command{ctx: ctx, actor: a, decide: withoutResult(d), back: true, acknowledged: true, done: make(chan result, 1)})
}

// rewind sets the time back if a command in the batch asks for it.
func rewind(tx store.Tx, batch []*command) error {
	if !slices.ContainsFunc(batch, func(c *command) bool { return c.back }) {
		return nil
	}
	if ahead := tx.Clock().Ahead; ahead.Abs() > ClockSlack {
		return &ClockError{Ahead: ahead}
	}
	tx.Rewind()
	return nil
}
