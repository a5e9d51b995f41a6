package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// write commits a batch and returns the results to its callers.
func (l *Ledger) write(ctx context.Context, batch []*command) {
	start := time.Now()
	l.health.write(start)
	results, committed, err := l.commit(ctx, batch)
	l.health.write(time.Time{})
	l.noteTooOld(err)
	if err != nil || committed {
		l.recordOutcome("write", err)
	}
	if err == nil {
		l.caughtUp(start)
		l.metrics.commitSeconds.Observe(time.Since(start).Seconds())
		l.metrics.batchCommands.Observe(float64(len(batch)))
	}
	for i, c := range batch {
		if err != nil {
			// This includes refusals: they may depend on an earlier command that was not
			// written.
			c.done <- result{err: err}
		} else {
			c.done <- results[i]
		}
	}
}

// commit commits a batch. It retries if this replica first has to catch up with the log. An
// error applies to every command. If there is none, commit reports whether anything had to
// be committed.
func (l *Ledger) commit(ctx context.Context, batch []*command) (_ []result, committed bool, _ error) {
	for range 3 {
		id := newBatchID()
		a, err := l.attempt(ctx, id, batch)
		switch {
		case err == nil:
			l.publish(a.f)
			l.timeline = a.timeline
			if l.loss != nil && l.loss.recorded(l.World().Snapshot) {
				l.loss = nil
			}
			if a.commits() {
				l.confirm()
			}
			return a.results, a.commits(), nil
		case errors.Is(err, store.ErrUnknownOutcome) && a.confirmed:
			l.log.Warn("cannot confirm commit", "error", err)
			return nil, false, fmt.Errorf("%w: cannot confirm that the current state is durable; try again: %v", store.ErrUnavailable, err) //nolint:errorlint // nothing was written
		case errors.Is(err, store.ErrUnknownOutcome):
			return a.results, true, l.resolve(ctx, id, err)
		case mustLoad(err), errors.Is(err, errFarBehind):
			if err := l.reread(ctx, err); err != nil {
				return nil, false, err
			}
		default:
			return nil, false, err
		}
	}
	return nil, false, fmt.Errorf("%w: cannot catch up with the log", store.ErrUnavailable)
}

func (l *Ledger) reread(ctx context.Context, why error) error {
	if mustLoad(why) {
		return l.load(ctx, why)
	}
	return l.catchUp(ctx)
}

var errFarBehind = errors.New("too far behind the log to decide")

// attempt is the result of executing a batch in one transaction.
type attempt struct {
	results             []result
	f                   *follower
	appended, confirmed bool // whether commands were appended, or only earlier commits confirmed
	timeline            int64
}

func (a *attempt) commits() bool { return a.appended || a.confirmed }

// attempt runs the batch in one transaction. A shutdown of the server does not interrupt
// it: an interrupted commit has an unknown outcome.
func (l *Ledger) attempt(ctx context.Context, id store.BatchID, batch []*command) (a attempt, _ error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	base := l.World().Snapshot
	err := l.store.Lock(ctx, base.Rev, id, func(tx store.Tx) error {
		a = attempt{results: make([]result, len(batch)), f: newFollower(base)}
		f := a.f
		missed, err := tx.Missed() // fails if there are fewer revisions than before
		if err != nil {
			return err
		}
		if err := f.apply(missed); err != nil {
			return err
		}
		if f.rev() != tx.Head() {
			return errFarBehind
		}
		if f.draft.Snapshot().Batch != tx.Last() {
			return fmt.Errorf("%w: revision %d has changed", store.ErrRewound, f.rev())
		}
		if err := rewind(tx, batch); err != nil {
			return err
		}
		w, read, head := l.World(), base.PolicyRev, f.rev()
		if a.timeline, err = l.beginEpoch(tx, id, f); err != nil {
			return err
		}
		for i, c := range batch {
			s := f.draft.Snapshot() // it changes in place, so w may not show that its policy changed
			if s.PolicyRev != read {
				w, read = l.World(), s.PolicyRev
			}
			w = w.WithSnapshot(s)
			if a.results[i], err = l.run(tx, id, f, w, c); err != nil {
				return err
			}
		}
		a.appended = f.rev() > head
		if !a.appended && l.mustConfirm(f.rev(), batch) {
			a.confirmed = true
			tx.Confirm()
		}
		return nil
	})
	return a, err
}

// mustConfirm reports whether a batch with nothing to write must commit anyway: because its
// result depends on state that may not be durable, or because only a commit shows that
// writes have recovered.
func (l *Ledger) mustConfirm(rev mesh.Revision, batch []*command) bool {
	return !l.safe(rev) && slices.ContainsFunc(batch, func(c *command) bool { return c.acknowledged }) || l.failing("write")
}

// run decides one command in the world that the commands before it produced. A refusal
// affects only that command; an error ends the batch.
func (l *Ledger) run(tx store.Tx, id store.BatchID, f *follower, w *policy.World, c *command) (result, error) {
	if err := c.ctx.Err(); err != nil {
		return result{err: err}, nil // nobody waits for it any more
	}
	s := w.Snapshot
	if err := alreadyDone(s, c.actor, tx.Now()); err != nil {
		return result{rev: s.Rev, err: err}, nil
	}
	if c.actor.Once != nil {
		if wait := mesh.ReceiptWait(s, tx.Now(), c.actor.Once); wait > 0 {
			return result{rev: s.Rev, err: &TooManyReceipts{wait}}, nil
		}
	}
	d, err := l.decide(c, w, tx.Now())
	evs, once := d.events, c.actor.Once != nil && !d.more
	if err != nil || len(evs) == 0 && !once {
		return result{rev: s.Rev, err: err}, nil
	}
	if err := refuseClocks(tx); err != nil {
		return result{rev: s.Rev, err: err}, nil
	}
	evs = mesh.Settle(s, evs)
	if err := l.refuseFormat(s, evs); err != nil {
		return result{rev: s.Rev, err: err}, nil
	}
	audit, presence, led := l.before(s, tx.Now(), evs), transitions(s, tx.Now(), evs), leaders(s, evs)
	if once {
		evs = append(evs, mesh.Remember(s, tx.Now(), c.actor.Once, firstObject(audit), d.answer)...)
	}
	f.applyOne(mesh.Next(s.Rev, evs), tx.Now(), id, evs)
	audit = l.after(f.draft.Snapshot(), tx.Now(), c.actor, evs, audit)
	rev, err := tx.Append(store.Command{Actor: c.actor, Events: evs, Audit: audit, Presence: presence, Leaders: led})
	return result{rev: rev}, err
}

// decide recovers from a panic of one command, so that it does not affect the others.
func (l *Ledger) decide(c *command, w *policy.World, now mesh.Time) (d decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("command panicked", "panic", p, "actor", c.actor.String(), "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return c.decide(w, now)
}

// before records the state of the objects of evs before the change, once per object:
// several events may belong to one change.
func (l *Ledger) before(s *mesh.Snapshot, now mesh.Time, evs []mesh.Event) []history.AuditRow {
	rows := make([]history.AuditRow, len(evs))
	if l.describe == nil {
		return rows
	}
	type object struct{ kind, id string }
	noted := map[object]bool{}
	for i, e := range evs {
		row := &rows[i]
		row.Kind, row.Object, row.Before = l.describe(s, now, e)
		if o := (object{row.Kind, row.Object}); noted[o] {
			*row = history.AuditRow{}
		} else {
			noted[o] = true
		}
	}
	return rows
}

// firstObject returns the id of the object that a command is about, which is the first
// one in rows: consequences come later.
func firstObject(rows []history.AuditRow) string {
	for _, row := range rows {
		if row.Kind != "" {
			return row.Object
		}
	}
	return ""
}

// after adds the state after the change, and removes rows that are of no interest: those of
// objects that are not shown, and changes by the server itself that have no visible effect.
// Changes by people always have a row.
func (l *Ledger) after(s *mesh.Snapshot, now mesh.Time, by mesh.Actor, evs []mesh.Event, rows []history.AuditRow) []history.AuditRow {
	kept := rows[:0]
	for i, row := range rows {
		if row.Kind == "" {
			continue
		}
		_, _, row.After = l.describe(s, now, evs[i])
		switch {
		case row.Before == nil:
			row.Verb = "created"
		case row.After == nil:
			row.Verb = "deleted"
		case by.Kind == mesh.ActorServer && bytes.Equal(row.Before, row.After):
			continue
		default:
			row.Verb = "changed"
		}
		kept = append(kept, row)
	}
	return kept
}

// transitions finds the nodes that evs bring online or take offline.
func transitions(s *mesh.Snapshot, now mesh.Time, evs []mesh.Event) (rows []history.Transition) {
	shown := map[mesh.NodeID]bool{} // whether evs have brought a node online so far
	// When the time is set back, the last row of a node may be in the future, so
	// another row records the current state.
	back := slices.ContainsFunc(evs, func(e mesh.Event) bool { return e.Kind() == mesh.KindClockSet })
	turn := func(id mesh.NodeID, at mesh.Time, online bool) {
		was, ok := shown[id]
		if n, there := s.Nodes.Get(id); !ok && there {
			was, ok = n.Presence.Online, true
		}
		if ok && (was != online || back) {
			shown[id] = online
			rows = append(rows, history.Transition{Node: id, At: at, Online: online})
		}
	}
	for _, e := range evs {
		switch e := e.(type) {
		case mesh.NodePut:
			if _, there := s.Nodes.Get(e.Node.ID); !there {
				shown[e.Node.ID] = false
			}
		case mesh.Online:
			turn(e.ID, e.At, true)
		case mesh.Offline:
			turn(e.ID, e.At, false)
		case mesh.NodeGone:
			turn(e.ID, now, false)
		}
	}
	return rows
}

// leaders returns the prefixes for which evs change the primary router, in order. If there
// are several events about a node, the last counts.
func leaders(s *mesh.Snapshot, evs []mesh.Event) (rows []history.Leader) {
	after := map[mesh.NodeID]*mesh.Node{}
	for _, e := range evs {
		switch e := e.(type) {
		case mesh.NodePut:
			after[e.Node.ID] = e.Node
		case mesh.NodeGone:
			after[e.ID] = &mesh.Node{}
		}
	}
	led := map[netip.Prefix]history.Leader{}
	for id, n := range after {
		before, ok := s.Nodes.Get(id)
		if !ok {
			before = &mesh.Node{}
		}
		for _, p := range before.Primary {
			if _, taken := led[p]; !taken && !slices.Contains(n.Primary, p) {
				led[p] = history.Leader{Prefix: p}
			}
		}
		for _, p := range n.Primary {
			if !slices.Contains(before.Primary, p) {
				led[p] = history.Leader{Prefix: p, Node: id, Name: n.Name}
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(led), netip.Prefix.Compare) {
		rows = append(rows, led[p])
	}
	return rows
}

// resolve finds out whether a batch is in the log and durable. Under the lock no commit is
// in progress, so the log is authoritative, and a later commit of our own proves that the
// batch is durable. Until that is known, no other command runs. After a while, the callers
// get an error that says that the outcome is unknown.
func (l *Ledger) resolve(ctx context.Context, id store.BatchID, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, l.resolveFor)
	defer cancel()
	l.log.Warn("connection lost during a commit, checking the log", "error", cause)
	l.recordOutcome("write", cause)
	for {
		found, err := l.look(ctx, id)
		switch {
		case err == nil && found:
			return nil
		case err == nil:
			return fmt.Errorf("%w: the connection was lost and the change was not saved; try again", store.ErrUnavailable)
		case mustLoad(err):
			// The log cannot be read from this revision, so the outcome stays unknown.
			return errors.Join(cause, l.reread(ctx, err))
		}
		select {
		case <-ctx.Done():
			return cause
		case <-time.After(retryEvery):
		}
	}
}

func (l *Ledger) look(ctx context.Context, id store.BatchID) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	f := newFollower(l.World().Snapshot)
	var head mesh.Revision
	err = l.store.Lock(ctx, l.World().Rev, newBatchID(), func(tx store.Tx) error {
		head = tx.Head()
		missed, err := tx.Missed()
		if err != nil {
			return err
		}
		for _, e := range missed {
			found = found || e.Batch == id
		}
		if found {
			tx.Confirm()
		}
		return f.apply(missed)
	})
	if err != nil {
		return false, err
	}
	if found {
		defer l.confirm() // after publish, so that it applies to the new world
	}
	if f.rev() != l.World().Rev {
		behind := f.rev() < head
		l.publish(f)
		if !found && behind {
			return l.look(ctx, id)
		}
	}
	return found, nil
}

// confirm records that the current world is durable.
func (l *Ledger) confirm() {
	s := l.World().Snapshot
	l.confirmed.Store(&dated{s.Rev, s.At})
}

func newBatchID() (id store.BatchID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
