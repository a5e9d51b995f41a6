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

// How far the database's clock, this machine's clock and the time of the newest
// change may disagree. A newest change in the past is normal: nothing happened
// since, or a backup was restored.
const (
	// ClockSlack is when people are told.
	ClockSlack = time.Minute
	// ClockLimit is when nothing is written any more: the time of a change is
	// final, and one that is dated a year ahead expires keys a year early.
	ClockLimit = 5 * time.Minute
)

// ClockError says which clocks disagree. Above ClockLimit nothing is written
// until they agree; reads and maps go on.
type ClockError struct {
	// Lead is how far the newest change is dated after the database's clock.
	Lead time.Duration
	// Ahead is how far the database's clock is ahead of this machine's;
	// negative means behind.
	Ahead time.Duration
	// Shared says that the database has no clock but this machine's.
	Shared bool
}

// Refuses reports whether the disagreement is so large that nothing is written.
func (e *ClockError) Refuses() bool { return max(e.Lead, e.Ahead.Abs()) > ClockLimit }

// Error says which clock is off and what to do.
func (e *ClockError) Error() string {
	text, end := "", "nothing is written until then"
	if !e.Refuses() {
		end = fmt.Sprintf("beyond %v nothing is written", ClockLimit)
	}
	switch direction := "ahead of"; {
	case e.Ahead != 0:
		if e.Ahead > 0 {
			direction = "behind"
		}
		text = fmt.Sprintf("the clock of this machine is %v %s the clock of the database: correct the wrong one; %s", e.Ahead.Abs().Round(time.Second), direction, end)
	case e.Shared:
		text = fmt.Sprintf("the newest change is dated %v after the clock of this machine: if the clock is behind, set it; if it is right, "+
			"a change was made while it was ahead: run fairlead db repair-clock; %s", e.Lead.Round(time.Second), end)
	default:
		text = fmt.Sprintf("the newest change is dated %v after the clock of the database: if that clock is behind, set it; if it is right, "+
			"a change was made while it was ahead: run fairlead db repair-clock; %s", e.Lead.Round(time.Second), end)
	}
	return text
}

// Is lets callers treat it as a database that cannot be written to.
func (e *ClockError) Is(target error) bool { return target == ErrUnavailable }

// disagreement compares a clock, which says now, with the time of the newest
// change. It is nil when they agree within ClockSlack.
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

// lead is how much later than now the newest change is dated, if it is.
func lead(latest, now mesh.Time) time.Duration {
	return max(0, min(latest, now.Add(math.MaxInt64)).Sub(now))
}

// Clocks is nil while the clocks agree with each other and with the newest
// change.
func (l *Ledger) Clocks() *ClockError {
	c := l.store.Clock()
	return disagreement(l.World().At, c.At(time.Now()), c)
}

// tellClocks logs when the clocks begin to disagree, when writes are refused
// because of it, and when they agree again.
func (l *Ledger) tellClocks() {
	e, said := l.Clocks(), "agree"
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

// DatabaseTime is what the database's clock says, whatever the newest change is
// dated.
func (l *Ledger) DatabaseTime() mesh.Time { return l.store.Clock().At(time.Now()) }

// Now is the time by which this replica judges what has expired: the database's
// clock, or the newest change if that is later. The clock of this machine only
// counts where the database has no other, so that one replica whose clock is
// wrong does not refuse keys that the others accept.
func (l *Ledger) Now() mesh.Time {
	return max(l.World().At, l.DatabaseTime())
}

// refuseClocks is the error of a command that would be written while the clocks
// disagree.
func refuseClocks(tx store.Tx) error {
	c := tx.Clock()
	if e := disagreement(tx.Now(), c.Now, c); e != nil && e.Refuses() {
		return e
	}
	return nil
}

// CommitBack is Commit at the time of the database's clock although newer
// changes are dated later. It is how a mesh leaves a future into which a wrong
// clock has put it. The clocks of the database and of this machine must agree.
func (l *Ledger) CommitBack(ctx context.Context, a mesh.Actor, d Decide) (mesh.Revision, error) {
	return l.submit(&command{ctx: ctx, actor: a, decide: d, back: true, told: true, done: make(chan result, 1)})
}

// rewind sets the time back if a command of the batch asks for it.
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
