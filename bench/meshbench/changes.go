package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// watch waits until every observer has been notified about one node.
type watch struct {
	index   int
	start   time.Time
	told    []atomic.Bool // by observer
	left    atomic.Int64
	last    atomic.Int64 // in Unix nanoseconds
	allTold chan struct{}
	lag     *histogram // per observer; nil if nobody wants it
}

func (c *cluster) newWatch(b *node) *watch {
	w := &watch{index: b.index, start: time.Now(), told: make([]atomic.Bool, len(c.nodes)), allTold: make(chan struct{})}
	w.left.Store(int64(c.observers(b)))
	return w
}

// watch makes the nodes report messages about b.
func (c *cluster) watch(b *node) *watch {
	w := c.newWatch(b)
	c.watched.Store(w)
	return w
}

func (w *watch) seen(n *node, at time.Time) {
	c := n.cluster
	if n.index >= c.size || n.index == w.index || !c.sees(n, c.nodes[w.index]) || at.Before(w.start) || w.told[n.index].Swap(true) {
		return
	}
	w.last.Store(at.UnixNano())
	if w.lag != nil {
		w.lag.add(at.Sub(w.start))
	}
	if w.left.Add(-1) == 0 {
		close(w.allTold)
	}
}

// wait returns how long it took to notify all observers; ok is false if that took longer than limit.
func (w *watch) wait(ctx context.Context, limit time.Duration) (took time.Duration, ok bool) {
	if !closes(ctx, w.allTold, limit) {
		return 0, false
	}
	return time.Unix(0, w.last.Load()).Sub(w.start), true
}

// closes waits for at most limit and reports whether the channel was closed.
func closes(ctx context.Context, c <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// changeLog follows endpoint changes from sending to the last delivery. A receiver that gets a later change
// of the same node counts as having received the earlier ones, because servers may merge updates.
type changeLog struct {
	cluster *cluster
	base    int64     // number of the last change before this log
	lag     histogram // per delivery
	last    histogram // per change, until the last observer got it

	pending   atomic.Int64 // changes not yet delivered everywhere
	delivered atomic.Int64

	mu       sync.Mutex
	all      []*change         // guarded by mu, like all fields below
	bySource map[int][]*change // by index of the node that changed
	received []map[int]int     // per receiver: source to count of its changes already seen
}

// change is one endpoint change.
type change struct {
	source int
	number int64
	start  time.Time
	left   int // observers that have not received it yet; guarded by the log
	done   chan struct{}
}

// follow starts a log; the nodes report to it until unfollow.
func (c *cluster) follow() *changeLog {
	l := &changeLog{cluster: c, base: c.changeNum.Load(), bySource: map[int][]*change{}, received: make([]map[int]int, c.size)}
	for i := range l.received {
		l.received[i] = map[int]int{}
	}
	c.changes.Store(l)
	return l
}

func (c *cluster) unfollow() { c.changes.Store(nil) }

// begin gives n a new endpoint and starts the clock; the caller sends it.
func (l *changeLog) begin(n *node) *change {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := &change{source: n.index, number: l.cluster.changeNum.Add(1), start: time.Now(), left: l.cluster.observers(n), done: make(chan struct{})}
	n.change.Store(ch.number)
	l.all = append(l.all, ch)
	l.bySource[n.index] = append(l.bySource[n.index], ch)
	l.pending.Add(1)
	return ch
}

func (l *changeLog) seen(n *node, number int64, at time.Time) {
	i := number - l.base - 1
	if i < 0 || n.index >= l.cluster.size {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= int64(len(l.all)) || l.all[i].source == n.index {
		return
	}
	source := l.all[i].source
	history, k := l.bySource[source], l.received[n.index][source]
	for ; k < len(history) && history[k].number <= number; k++ {
		ch := history[k]
		took := at.Sub(ch.start)
		l.lag.add(took)
		l.delivered.Add(1)
		if ch.left--; ch.left == 0 {
			l.last.add(took)
			l.pending.Add(-1)
			close(ch.done)
		}
	}
	l.received[n.index][source] = k
}
