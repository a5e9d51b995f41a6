// Package ledger owns the current world and is the only way to change it. It alone calls
// the store, and only one goroutine, Run, replaces the world.
//
// It does not know what commands mean or who needs to know about changes: a command is a
// Decide, and readers follow the world with a Cursor. It imports mesh, policy and store.
// The caller runs Run, SendHeartbeats, DetectPauses and the store's Watch.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// Errors of Commit in addition to the refusals of a Decide.
var (
	// ErrStopped is the error for a command that was submitted after Run had ended.
	ErrStopped = errors.New("the server is shutting down")
	// ErrUnavailable means that nothing was written.
	ErrUnavailable = store.ErrUnavailable
	// ErrUnknownOutcome means that it is unknown whether anything was written, or
	// whether what was written is durable.
	ErrUnknownOutcome = store.ErrUnknownOutcome
	// ErrTooOld means that the database is used by a newer version.
	ErrTooOld = store.ErrTooOld
)

// AlreadyDone is the error for a command with an idempotency key that was used
// before. Nothing was written. The caller has to check that the request is the same.
type AlreadyDone struct{ Receipt *mesh.Receipt }

func (d *AlreadyDone) Error() string {
	return fmt.Sprintf("already done at revision %d", d.Receipt.Rev)
}

// TooManyReceipts is the error for a command with an idempotency key, or a sign-in, whose
// receipt could be stored only by deleting that of another one that may still be repeated.
type TooManyReceipts struct{ Wait time.Duration }

func (e *TooManyReceipts) Error() string {
	return fmt.Sprintf("too many requests that must not be executed twice: each is remembered for at least %v; retry in %v", mesh.ReceiptMinimum, e.Wait.Round(time.Second))
}

// MaxNodes is how many nodes one command should change at most. Larger changes are split
// into several commits, so that other commands can run in between.
const MaxNodes = 256

// Decide returns the events that change the world w, none if nothing is to change, or a
// refusal. w is exactly the world in which its events become durable. It must be pure and
// fast: the store's write lock is held while it runs, and it may run again if the batch has
// to be retried. It must not keep w. A decision with a result is committed with the
// function Commit.
type Decide func(w *policy.World, now mesh.Time) ([]mesh.Event, error)

// Describe returns the object that an event is about, as people see it in s at that time. A
// nil shape means that s does not contain it. An empty kind means that such events are not
// in the audit log.
type Describe func(s *mesh.Snapshot, now mesh.Time, e mesh.Event) (kind, id string, shape []byte)

// Config configures a ledger. Store, Log and Registerer are required.
type Config struct {
	Store      store.Store
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Describe produces the entries of the audit log; if it is nil, there is no audit log.
	Describe Describe
	// History keeps the audit log for Retention; zero means forever. It also contains the
	// policy that is used if the newest cannot be parsed.
	History   history.Store
	Retention time.Duration
	// Reserved is set in every world of this ledger.
	Reserved mesh.Reserved
	// Self is what this replica reports about itself. A missing ID is generated.
	Self store.Report
	// Fill, if set, adds the data of other packages to each report. It is called before
	// every heartbeat and must not block.
	Fill func(*store.Report)
	// Pace is the minimum time between two announcements while commits keep coming; 5 ms by
	// default.
	Pace func() time.Duration
	// BatchLimit is the maximum number of commands in one transaction; 64 by default.
	BatchLimit int
	// ResolveFor is how long the ledger looks in the log for a commit whose result is
	// unknown, before it reports that the outcome is unknown; it defaults to 10s.
	ResolveFor time.Duration
}

const (
	defaultBatchLimit = 64
	queueLength       = 1024
)

// Ledger holds the world of this replica.
type Ledger struct {
	store      store.Store
	log        *slog.Logger
	describe   Describe
	history    history.Store
	retention  time.Duration
	reserved   mesh.Reserved
	fill       func(*store.Report)
	batchLimit int
	resolveFor time.Duration

	metrics   *metrics
	world     atomic.Pointer[policy.World]
	confirmed atomic.Pointer[dated] // the newest commit of this replica, if any; see safe
	commands  chan *command
	syncs     chan chan error
	ended     chan struct{}
	health    condition
	cluster   Cluster
	fresh     freshness
	feed      feed
	waiters   waiters
	disagree  atomic.Bool // another replica has a different snapshot
	rewind    atomic.Pointer[Rewind]
	pause     pause

	// Used by Run alone.
	lastBatch  int
	lastFollow time.Time
	syncing    []chan error // waiting for the next read of the log
	lastLoad   time.Time
	clocks     string        // the state of the clocks that was logged last; see logClocks
	lastRewind time.Time     // when the tables were last reloaded because of a rewind
	trail      []store.Point // positions of the previous worlds, newest last
	loss       *loss         // lost changes that are not recorded in the database yet
	timeline   int64         // of the last transaction
	tooOld     error         // why this replica must stop, if it must
}

type command struct {
	ctx          context.Context //nolint:containedctx // the caller's, to skip commands nobody waits for
	actor        mesh.Actor
	decide       func(*policy.World, mesh.Time) (decision, error)
	back         bool // set the time back to the database's clock
	done         chan result
	acknowledged bool // the caller relies on the result, even if there are no events
}

type result struct {
	rev mesh.Revision
	err error
}

// Open loads the world. It starts nothing.
func Open(ctx context.Context, c Config) (*Ledger, error) {
	if c.BatchLimit == 0 {
		c.BatchLimit = defaultBatchLimit
	}
	if c.ResolveFor == 0 {
		c.ResolveFor = resolveFor
	}
	if c.Self.ID == "" {
		c.Self.ID = store.ReplicaID(rand.Text()[:12])
	}
	l := &Ledger{
		store: c.Store, log: c.Log, describe: c.Describe, history: c.History, retention: c.Retention, reserved: c.Reserved, fill: c.Fill, batchLimit: c.BatchLimit, resolveFor: c.ResolveFor,
		commands: make(chan *command, queueLength), syncs: make(chan chan error), ended: make(chan struct{}),
	}
	l.cluster.self, l.cluster.started, l.cluster.announce = c.Self, time.Now(), make(chan struct{}, 1)
	l.cluster.follows = func() bool { return !l.failing("follow") }
	begun := time.Now()
	s, err := c.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	l.fresh.caughtUp(begun)
	w := l.worldOf(ctx, s)
	l.world.Store(w)
	l.trail = []store.Point{pointOf(s)}
	l.feed.start(w, c.Pace)
	l.cluster.heartbeats.Store(&Heartbeats{Last: time.Now()})
	l.metrics = newMetrics(c.Registerer, l)
	l.lastFollow, l.lastLoad = time.Now(), time.Now()
	return l, nil
}

// World returns the newest world of this replica.
func (l *Ledger) World() *policy.World { return l.world.Load() }

// Commit blocks until the events that d decides on are durable and visible in World. It
// returns their revision or, for a decision without events, the revision at which it was
// made. A refusal of d is returned unchanged.
//
// If the actor has an idempotency key, the result is stored with it, even if nothing
// changes. If the key was used before, d does not run and the error is AlreadyDone.
//
// Results without a new revision (a refusal, AlreadyDone, nothing to change) are also based
// on durable state only; see Confirm. The server's own commands, whose results are not
// reported to anyone, use whatever state is visible.
//
// While the clocks disagree by more than ClockLimit, commands that would write fail with a
// ClockError. If ctx ends first, the command may or may not be committed.
func (l *Ledger) Commit(ctx context.Context, a mesh.Actor, d Decide) (mesh.Revision, error) {
	return l.commitDecision(ctx, a, withoutResult(d))
}

// commitDecision submits a command unless its idempotency key was used before.
func (l *Ledger) commitDecision(ctx context.Context, a mesh.Actor, d func(*policy.World, mesh.Time) (decision, error)) (mesh.Revision, error) {
	var done *AlreadyDone
	err := alreadyDone(l.World().Snapshot, a, l.Now())
	if errors.As(err, &done) && l.safe(done.Receipt.Rev) {
		return 0, err
	}
	return l.submit(&command{ctx: ctx, actor: a, decide: d, acknowledged: a.Kind != mesh.ActorServer, done: make(chan result, 1)})
}

// Confirm blocks until everything up to rev is durable, so that a failover to a
// synchronous standby does not lose it. Usually this is known already.
//
// A visible commit is not necessarily durable. PostgreSQL shows a commit that its
// standby does not have if the wait for the standby was cancelled, if the waiting
// process was terminated, and after a crash. Commits reach the standby in order,
// so a later successful commit of this replica proves that all before it are
// durable.
func (l *Ledger) Confirm(ctx context.Context, rev mesh.Revision) error {
	if l.safe(rev) {
		return nil
	}
	nothing := func(*policy.World, mesh.Time) (decision, error) { return decision{}, nil }
	_, err := l.submit(&command{ctx: ctx, actor: mesh.Actor{Kind: mesh.ActorServer}, decide: nothing, acknowledged: true, done: make(chan result, 1)})
	return err
}

// ConfirmChange is like Confirm, for one change that is visible at revision rev and has
// the time at. It needs no commit if this replica has committed something later, even if
// others have committed since. A database outage therefore affects only what was changed
// just before it began.
func (l *Ledger) ConfirmChange(ctx context.Context, rev mesh.Revision, at mesh.Time) error {
	// If the time was set back since, the date proves nothing.
	if c := l.confirmed.Load(); c != nil && at < c.at && c.at <= l.World().At {
		return nil
	}
	return l.Confirm(ctx, rev)
}

// dated is a revision and the time of its change.
type dated struct {
	rev mesh.Revision
	at  mesh.Time
}

// safe reports whether a commit of this replica at or after rev has succeeded.
func (l *Ledger) safe(rev mesh.Revision) bool {
	c := l.confirmed.Load()
	return c != nil && rev <= c.rev
}

func (l *Ledger) submit(c *command) (mesh.Revision, error) {
	ctx := c.ctx
	select {
	case l.commands <- c:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.ended:
		return 0, ErrStopped
	}
	select {
	case r := <-c.done:
		return r.rev, r.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", store.ErrUnknownOutcome, ctx.Err())
	case <-l.ended:
		select {
		case r := <-c.done:
			return r.rev, r.err
		default:
			return 0, ErrStopped
		}
	}
}

func alreadyDone(s *mesh.Snapshot, a mesh.Actor, now mesh.Time) error {
	if m, ok := s.Receipts.For(a.Once); ok && !m.Until.Reached(now) {
		return &AlreadyDone{m}
	}
	return nil
}

// Sync catches up with everything committed before the call, on any replica. A caller may
// report "unknown key" only after it returned nil. One read of the log serves all callers,
// and there is at most one every 50 ms, so that unknown clients cannot use it to overload
// the database.
func (l *Ledger) Sync(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case l.syncs <- done:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return ErrStopped
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return ErrStopped
	}
}

// WaitFor blocks until this replica has seen rev.
func (l *Ledger) WaitFor(ctx context.Context, rev mesh.Revision) error {
	for {
		ch := l.waiters.next()
		if l.World().Rev >= rev {
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return fmt.Errorf("waiting for revision %d, now at %d: %w", rev, l.World().Rev, ctx.Err())
		case <-l.ended:
			return ErrStopped
		}
	}
}

// waiters wakes goroutines that wait for the next world. Usually there are none, and a
// commit then has no extra cost.
type waiters struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; nil if nobody waits
}

func (w *waiters) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *waiters) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}
