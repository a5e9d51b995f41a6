package ledger

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// announceEvery is the default of Config.Pace: how often readers are woken while commits
// keep coming. Waking ten thousand of them for every commit would cost more than the
// commits, and readers that advance together share their work.
const announceEvery = 5 * time.Millisecond

// link records which nodes were touched between two announced worlds, and points to the
// next link. Links hold no worlds, so a slow reader keeps only the world it last used and a
// few ids in memory, not every world since.
type link struct {
	touched []mesh.NodeID // once announced, sorted and without duplicates
	known   bool          // whether touched is complete
	after   *link         // set before next is closed
	next    chan struct{} // closed when after is set
}

// state is an announced world with the link that follows it.
type state struct {
	world *policy.World
	link  *link
}

// feed announces worlds to cursors, which read only head.
type feed struct {
	head  atomic.Pointer[state] // only announce changes it
	timer *time.Timer           // fires when pending is due
	pace  func() time.Duration

	mu      sync.Mutex
	pending *state    // guarded by mu; not announced yet
	last    time.Time // guarded by mu; when worlds were last announced
}

func (f *feed) start(w *policy.World, pace func() time.Duration) {
	if f.pace = pace; pace == nil {
		f.pace = func() time.Duration { return announceEvery }
	}
	f.head.Store(&state{w, &link{next: make(chan struct{})}})
	f.timer = time.NewTimer(time.Hour)
	f.timer.Stop()
}

// publish announces w at once if the last announcement is long enough ago, and otherwise
// together with later worlds.
func (f *feed) publish(w *policy.World, touched []mesh.NodeID, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == nil {
		f.pending = &state{link: &link{known: true, next: make(chan struct{})}}
	}
	f.pending.world = w
	f.pending.link.touched = append(f.pending.link.touched, touched...)
	f.pending.link.known = f.pending.link.known && known
	if wait := f.pace() - time.Since(f.last); wait > 0 {
		f.timer.Reset(wait)
		return
	}
	f.announce()
}

// run announces worlds that wait, until ctx ends. It does not depend on the goroutine that commits, which may wait for the database.
func (f *feed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.timer.C:
			f.mu.Lock()
			f.announce()
			f.mu.Unlock()
		}
	}
}

// announce announces the pending world, if there is one. f.mu must be held.
func (f *feed) announce() {
	if f.pending == nil {
		return
	}
	t := f.pending.link.touched
	slices.Sort(t)
	f.pending.link.touched = slices.Compact(t)
	before := f.head.Load()
	before.link.after = f.pending.link
	f.head.Store(f.pending)
	close(before.link.next)
	f.pending, f.last = nil, time.Now()
}

// Cursor is a reader's position: the world it last used. It must be used by one goroutine.
type Cursor struct {
	feed *feed
	at   *state
}

// Cursor returns a cursor at the world announced last.
func (l *Ledger) Cursor() *Cursor { return &Cursor{&l.feed, l.feed.head.Load()} }

// World returns the world of the cursor.
func (c *Cursor) World() *policy.World { return c.at.world }

// More returns a channel that is closed when there is a newer world.
func (c *Cursor) More() <-chan struct{} { return c.at.link.next }

// Skip moves to the newest announced world and returns every node touched on the way, sorted and without duplicates. Nil means
// unknown: the reader has to compare everything, which is cheaper anyway if more than a quarter of the nodes were touched.
func (c *Cursor) Skip() []mesh.NodeID {
	head := c.feed.head.Load()
	limit := head.world.Nodes.Len()/4 + 64
	ids, known, steps := []mesh.NodeID{}, true, 0
	for k := c.at.link; k != head.link; steps++ {
		k = k.after
		switch known = known && k.known && len(ids)+len(k.touched) <= limit; {
		case known && steps == 0:
			ids = k.touched[:len(k.touched):len(k.touched)] // shared by all readers that keep up
		case known:
			ids = append(ids, k.touched...)
		}
	}
	c.at = head
	switch {
	case !known:
		return nil
	case ids == nil:
		return []mesh.NodeID{}
	case steps > 1:
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return ids
}
