package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	pollEvery    = time.Second            // how long a lost notification can hide a change
	syncEvery    = 50 * time.Millisecond  // how often Sync may query the database
	gatherWait   = time.Millisecond       // how long a batch waits for more commands
	storeTimeout = 20 * time.Second       // for one transaction
	loadEvery    = 5 * time.Second        // how often the tables may be reloaded
	retryEvery   = 200 * time.Millisecond // between attempts to find out whether a batch was committed
	resolveFor   = 10 * time.Second       // for all these attempts; the default of Config.ResolveFor
)

// Run updates the world until ctx ends: it commits commands and follows the commits of
// other replicas. It fails with ErrTooOld as soon as a replica of a newer version has used
// something that this one does not know.
func (l *Ledger) Run(ctx context.Context) error {
	defer close(l.ended)
	var announcer sync.WaitGroup
	defer announcer.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	announcer.Go(func() { l.feed.run(ctx) })
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var look <-chan time.Time // set while somebody waits in Sync
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-l.commands:
			l.write(ctx, l.gather(c))
		case <-l.store.Changed():
			l.follow(ctx)
		case <-poll.C:
			l.follow(ctx)
		case <-look:
			look = nil
			l.follow(ctx)
		case done := <-l.syncs:
			l.syncing = append(l.syncing, done)
			if look == nil {
				look = time.After(syncEvery - time.Since(l.lastFollow))
			}
		}
		if l.tooOld != nil {
			return l.tooOld
		}
	}
}

// gather takes the waiting commands. After a batch of several commands, it waits briefly
// for as many to arrive: callers that commit in a loop then share one transaction instead
// of alternating between two.
func (l *Ledger) gather(first *command) []*command {
	batch := []*command{first}
	var patience <-chan time.Time
	for len(batch) < l.batchLimit {
		select {
		case c := <-l.commands:
			batch = append(batch, c)
			continue
		default:
		}
		if l.lastBatch <= 1 || len(batch) >= l.lastBatch {
			break
		}
		if patience == nil {
			timer := time.NewTimer(gatherWait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case c := <-l.commands:
			batch = append(batch, c)
		case <-patience:
			l.lastBatch = len(batch)
			return batch
		}
	}
	l.lastBatch = len(batch)
	return batch
}

// follow applies new entries of the log.
func (l *Ledger) follow(ctx context.Context) {
	begun := time.Now()
	l.pause.observe(begun) // this read ends a pause that is detected only now
	err := l.catchUp(ctx)
	l.lastFollow = time.Now()
	l.logClocks()
	if err == nil {
		l.caughtUp(begun)
	}
	if !errors.Is(err, context.Canceled) {
		l.recordOutcome("follow", err)
	}
	l.noteTooOld(err)
	if err == nil && l.loss != nil {
		l.write(ctx, nil) // begins a new epoch
	}
	for _, done := range l.syncing {
		done <- err
	}
	l.syncing = nil
}

func (l *Ledger) catchUp(ctx context.Context) error {
	if l.disagree.Load() {
		if err := l.load(ctx, errDisagree); err != nil {
			return err
		}
		l.disagree.Store(false)
	}
	for {
		entries, err := l.store.Tail(ctx, pointOf(l.World().Snapshot))
		if mustLoad(err) {
			return l.load(ctx, err)
		}
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		f := newFollower(l.World().Snapshot)
		if err := f.apply(entries); err != nil {
			return l.load(ctx, err)
		}
		l.publish(f)
		if len(entries) < store.TailLimit {
			return nil
		}
	}
}

// mustLoad reports whether the tables must be reloaded because the log is not enough.
func mustLoad(err error) bool {
	return errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrRewound) || errors.Is(err, mesh.ErrUnknownKind) || errors.Is(err, errGap)
}

func (l *Ledger) load(ctx context.Context, why error) error {
	rewound := errors.Is(why, store.ErrRewound)
	last := l.lastLoad
	if rewound {
		last = l.lastRewind // the current state is wrong, so the only delay is the one after a previous rewind
	}
	if time.Since(last) < loadEvery {
		return fmt.Errorf("%w: reloading the tables in a moment: %w", store.ErrUnavailable, why)
	}
	l.lastLoad = time.Now()
	s, err := l.store.Load(ctx)
	if err != nil {
		return err
	}
	old, trail := l.World().Snapshot, l.trail
	was := old.Rev
	rewound = rewound || s.Counters.Epoch.Skips(was) // the log may no longer show it
	l.trail = []store.Point{pointOf(s)}
	l.metrics.loads.Inc()
	l.log.Warn("reloaded all tables", "rev", s.Rev, "was", was, "reason", why)
	l.cluster.checkpoint.Store(nil) // it may belong to another history
	l.confirmed.Store(nil)          // so may the confirmed revision
	w := l.worldOf(ctx, s)
	LogPolicy(l.log, w)
	l.world.Store(w)
	l.waiters.wake()
	l.feed.publish(w, nil, false)
	if rewound {
		l.lastRewind = time.Now()
		l.noteRewind(ctx, old, s.Rev, trail)
	}
	return nil
}

var errDisagree = errors.New("another replica has a different snapshot")

var errGap = errors.New("the log does not continue from this replica's revision")

// checkpointEvery is the distance between revisions at which replicas compare their state.
const checkpointEvery = 1024

// follower applies entries to a draft.
type follower struct {
	draft      *mesh.Draft
	passed     []store.Point // the last revision of each batch
	touched    []mesh.NodeID
	checkpoint *mesh.Snapshot // the last checkpoint passed, if any
}

func newFollower(s *mesh.Snapshot) *follower {
	return &follower{draft: s.Edit(), touched: []mesh.NodeID{}}
}

func (f *follower) rev() mesh.Revision { return f.draft.Snapshot().Rev }

// apply applies entries. It rejects those that do not follow the state of this replica: a
// log that skips a revision, or one that was replaced by another with the same revisions.
func (f *follower) apply(entries []store.Entry) error {
	for _, e := range entries {
		if e.Rev != mesh.Next(f.rev(), e.Events) {
			return fmt.Errorf("%w: %d after %d", errGap, e.Rev, f.rev())
		}
		if e.Prev != f.draft.Snapshot().Batch {
			return fmt.Errorf("%w: revision %d has changed", store.ErrRewound, f.rev())
		}
		f.applyOne(e.Rev, e.At, e.Batch, e.Events)
	}
	return nil
}

func (f *follower) applyOne(rev mesh.Revision, at mesh.Time, batch store.BatchID, evs []mesh.Event) {
	f.touched = append(f.touched, f.draft.Apply(rev, evs...)...)
	f.draft.Stamp(at, batch)
	if n := len(f.passed); n > 0 && f.passed[n-1].Batch == batch {
		f.passed = f.passed[:n-1]
	}
	f.passed = append(f.passed, store.Point{Rev: rev, Batch: batch})
	if rev%checkpointEvery == 0 {
		f.checkpoint = f.draft.Freeze()
		f.draft = f.checkpoint.Edit()
	}
}

// publish makes the follower's draft the world. Everything in it is durable.
func (l *Ledger) publish(f *follower) {
	before := l.World()
	w := before.Next(f.draft.Freeze(), f.touched)
	if !w.SamePolicy(before.Snapshot) {
		LogPolicy(l.log, w)
	}
	if f.checkpoint != nil {
		l.cluster.checkpoint.Store(f.checkpoint)
	}
	l.trail = append(l.trail, f.passed...)
	l.trail = l.trail[max(0, len(l.trail)-trailLength):]
	l.world.Store(w)
	l.waiters.wake()
	l.feed.publish(w, f.touched, true)
}
