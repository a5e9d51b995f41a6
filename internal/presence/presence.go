// Package presence commits which nodes are connected to this replica. Callers report
// streams that open and close, and it commits the differences to the shared state. It knows
// neither the clients' protocol nor the use cases.
package presence

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// closeGrace is how long a node may be without a stream before it is shown as offline.
	// Clients usually reopen a stream within moments.
	closeGrace = 2 * time.Second
	// massGrace is the same after a replica lost a quarter of its streams or more within massWindow, because a proxy was restarted
	// or a network failed. Clients that do not succeed at once wait for up to 30 s before they try again. To show each of them as
	// offline and then as online would make the server send two updates about each of them to all others, just when it is busiest.
	// massStreams is the least number of streams for this.
	massGrace   = time.Minute
	massWindow  = 10 * time.Second
	massStreams = 64
	// massMost is the most that massGrace is extended to, while at least massStreams of these nodes return within massWindow: on
	// a busy machine, thousands of them take longer than a minute.
	massMost = 5 * time.Minute
	retry    = time.Second // after a commit that failed
	idle     = time.Hour   // how long to wait if there is nothing to do until something changes
	// pauseEach is how long the tracker pauses for each node that it compared. So comparing takes a small part of a CPU even if
	// thousands of nodes wait, and their changes share commits.
	pauseEach = 20 * time.Microsecond
)

// Config configures a Tracker. All fields are required.
type Config struct {
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Tracker commits which nodes have their stream on this replica. It compares the open
// streams with the world whenever either changes. Nothing is therefore lost while the
// database is unreachable, and a replica that others considered dead announces its streams
// again.
type Tracker struct {
	ledger *ledger.Ledger
	log    *slog.Logger
	self   string
	wake   chan struct{}

	mu      sync.Mutex
	streams map[mesh.NodeID]nodeStream // guarded by mu
	dirty   map[mesh.NodeID]struct{}   // guarded by mu; to be compared with the world
	open    int                        // guarded by mu; streams that are open
	ended   burst                      // guarded by mu; streams that ended
	back    burst                      // guarded by mu; nodes that opened a stream again before they were shown as offline
	mass    time.Time                  // guarded by mu; when a quarter of the streams or more had last ended within a window
	calm    time.Time                  // guarded by mu; until when these nodes are not shown as offline
	epoch   int64                      // guarded by mu; the epoch of the history in which streams were announced
}

// nodeStream is the newest stream of a node on this replica.
type nodeStream struct {
	conn   int64
	closed time.Time // when it ended; zero while it is open
	// announced means that the shared state has contained this stream. If it later contains
	// a stream on another replica, the node has moved.
	announced bool
	// counted is when the end of a stream of the node was last counted.
	counted time.Time
}

// New returns a tracker without streams. Run commits.
func New(c Config) *Tracker {
	p := &Tracker{
		ledger: c.Ledger, log: c.Log, self: string(c.Ledger.Cluster().Self().ID), wake: make(chan struct{}, 1),
		streams: map[mesh.NodeID]nodeStream{}, dirty: map[mesh.NodeID]struct{}{}, epoch: c.Ledger.World().Counters.Epoch.Number,
	}
	c.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_presence_waiting", Help: "Nodes that connected to or left this replica and whose new presence is not saved yet.",
	}, func() float64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return float64(len(p.dirty))
	}))
	return p
}

// Opened records a new stream of a node. It never blocks. If a node has two streams, the
// one with the greater conn is newer.
func (p *Tracker) Opened(id mesh.NodeID, conn int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, known := p.streams[id]
	if known && h.conn >= conn {
		return
	}
	if !known || !h.closed.IsZero() {
		p.open++
	}
	if known && !h.closed.IsZero() {
		p.countBack(time.Now())
	}
	p.streams[id] = nodeStream{conn: conn, counted: h.counted}
	p.markDirty(id)
}

// Closed records that a stream ended. It never blocks. It has no effect if the stream is
// not the newest of its node.
func (p *Tracker) Closed(id mesh.NodeID, conn int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, known := p.streams[id]
	if !known || h.conn != conn || !h.closed.IsZero() {
		return
	}
	p.open--
	h.closed = time.Now()
	if h.closed.Sub(h.counted) > massWindow { // a single node that keeps reconnecting does not count as many
		h.counted = h.closed
		p.countEnded(h.closed)
	}
	p.streams[id] = h
	p.markDirty(id)
}

// countEnded counts a stream that ended. The caller holds mu.
func (p *Tracker) countEnded(now time.Time) {
	if ended := p.ended.add(now); ended >= massStreams && 4*ended >= p.open+ended {
		p.mass, p.calm = now, later(p.calm, now.Add(massGrace))
	}
}

// countBack counts a node that returned before it was shown as offline. The caller holds mu.
func (p *Tracker) countBack(now time.Time) {
	if now.Before(p.calm) && p.back.add(now) >= massStreams {
		p.calm = later(p.calm, earlier(now.Add(massWindow), p.mass.Add(massMost)))
	}
}

// burst counts events within massWindow, in halves of it: those of the previous half, and those of the current one.
type burst struct {
	half   time.Time // when the current half began
	counts [2]int
}

// add counts an event and returns the number of events in the window.
func (b *burst) add(now time.Time) int {
	switch age := now.Sub(b.half); {
	case age > massWindow:
		b.half, b.counts = now, [2]int{}
	case age > massWindow/2:
		b.half, b.counts = now, [2]int{b.counts[1], 0}
	}
	b.counts[1]++
	return b.counts[0] + b.counts[1]
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// markDirty makes Run compare a node. The caller holds mu.
func (p *Tracker) markDirty(id mesh.NodeID) {
	p.dirty[id] = struct{}{}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// StreamCount returns how many nodes have a stream here.
func (p *Tracker) StreamCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Run commits until ctx ends. It then leaves the nodes online: they reconnect to this
// replica or another one, and a sweep finds those that don't.
func (p *Tracker) Run(ctx context.Context) error {
	cursor := p.ledger.Cursor()
	for {
		wait, compared, err := p.commitChanges(ctx)
		if err != nil {
			p.log.Debug("presence not saved, retrying", "error", err)
			wait = retry
		}
		wake, more := p.wake, cursor.More()
		if pause := time.Duration(compared) * pauseEach; err != nil || compared > massStreams && wait <= pause {
			wait = max(wait, pause)
			wake, more = nil, nil
		} else if compared > massStreams {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
				wait -= pause
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-wake:
		case <-more:
		}
		p.markChanged(cursor.Skip(), cursor.World())
	}
}

// markChanged marks changed nodes that are relevant to this replica as dirty; nil means
// that any node may have changed.
func (p *Tracker) markChanged(touched []mesh.NodeID, w *policy.World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range touched {
		_, held := p.streams[id]
		// A stream can appear after it ended and was forgotten, if the outcome of its commit was unknown for long.
		if n, ok := w.Nodes.Get(id); held || ok && n.Presence.Online && n.Presence.Replica == p.self {
			p.dirty[id] = struct{}{}
		}
	}
	rewound := w.Counters.Epoch.Number != p.epoch
	if touched != nil && !rewound {
		return
	}
	p.epoch = w.Counters.Epoch.Number
	for id, h := range p.streams {
		if rewound {
			// The database may have lost that this stream was announced. It then shows the node where it was before.
			h.announced = false
			p.streams[id] = h
		}
		p.dirty[id] = struct{}{}
	}
	for n := range w.Nodes.All() {
		if n.Presence.Replica == p.self {
			p.dirty[n.ID] = struct{}{}
		}
	}
}

// commitChanges compares the dirty nodes with the world and commits the differences. It
// returns how long to wait if nothing changes, and how many nodes it compared.
func (p *Tracker) commitChanges(ctx context.Context) (wait time.Duration, compared int, err error) {
	came, left, wait, compared := p.compare(p.ledger.World(), time.Now())
	if err := p.commit(ctx, came); err != nil {
		return 0, compared, err
	}
	// If the database takes longer than this, the node may have connected to another
	// replica, which waits for the database as well. Then compare again.
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	return wait, compared, p.commit(ctx, left)
}

func (p *Tracker) commit(ctx context.Context, updates []update) error {
	for chunk := range slices.Chunk(updates, ledger.MaxNodes) {
		_, err := p.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: p.self}, decide(p.self, chunk))
		if err != nil {
			return err
		}
		p.committed(chunk)
	}
	return nil
}

// compare returns the updates that the world lacks: nodes that connected and nodes that
// disconnected. Nodes that the world shows correctly are no longer dirty. After an outage,
// nodes that disconnected wait until other replicas have had time to announce their
// streams.
func (p *Tracker) compare(w *policy.World, now time.Time) (came, left []update, wait time.Duration, compared int) {
	steady := p.ledger.Cluster().Heartbeats().Steady(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = idle
	for _, id := range slices.Sorted(maps.Keys(p.dirty)) {
		h, held := p.streams[id]
		if !held {
			h = nodeStream{conn: math.MaxInt64, closed: now.Add(-closeGrace)}
		}
		n, ok := w.Nodes.Get(id)
		v := update{id: id, stream: h, gone: now.Sub(h.closed)}
		shown := !ok || v.event(n, p.self, 0) == nil
		due := h.closed.Add(closeGrace) // also for nodes that moved or were deleted: a commit whose result was lost may still appear
		if held && !shown {
			due = p.due(n, h)
		}
		if left := due.Sub(now); !h.closed.IsZero() && left > 0 {
			wait = min(wait, left)
			continue
		}
		switch {
		case shown:
			p.done(v, ok && n.Presence.Replica == p.self)
		case h.closed.IsZero():
			came = append(came, v)
		case steady:
			left = append(left, v)
		default:
			wait = min(wait, retry)
		}
	}
	return came, left, wait, len(p.dirty)
}

// due returns when a node whose stream ended is shown as offline. Others take over from routers, so these are never given more
// than the shortest time. The caller holds mu.
func (p *Tracker) due(n *mesh.Node, h nodeStream) time.Time {
	soonest := h.closed.Add(closeGrace)
	if len(n.Routes) > 0 {
		return soonest
	}
	return later(soonest, p.calm)
}

// committed records that the world shows these updates.
func (p *Tracker) committed(updates []update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range updates {
		p.done(v, true)
	}
}

// done drops an update, unless the node's stream has changed since it was made. The caller
// holds mu.
func (p *Tracker) done(v update, announced bool) {
	h, held := p.streams[v.id]
	if held && h.conn == v.stream.conn && announced {
		h.announced = true
		p.streams[v.id] = h
	}
	if held && (h.conn != v.stream.conn || h.closed != v.stream.closed) {
		return
	}
	delete(p.dirty, v.id)
	if held && !h.closed.IsZero() {
		delete(p.streams, v.id)
	}
}

// update is the state of a node that the world should show, at one point in time.
type update struct {
	id     mesh.NodeID
	stream nodeStream
	gone   time.Duration // since the stream ended
}

// decide returns the events for the updates that the world lacks.
func decide(self string, updates []update) ledger.Decide {
	return func(w *policy.World, now mesh.Time) (evs []mesh.Event, _ error) {
		for _, v := range updates {
			if n, ok := w.Nodes.Get(v.id); ok {
				if e := v.event(n, self, now); e != nil {
					evs = append(evs, e)
				}
			}
		}
		return evs, nil
	}
}

// event returns the event that makes the world show the update, or nil if it already does.
// Stream numbers are compared only with those of this replica. Between two replicas, the
// one that announced its stream last is right. A stream that was announced once therefore
// never replaces that of another replica.
func (v update) event(n *mesh.Node, self string, now mesh.Time) mesh.Event {
	shown := n.Presence
	here := shown.Online && shown.Replica == self
	elsewhere := shown.Online && !here
	switch open := v.stream.closed.IsZero(); {
	case open && (elsewhere && v.stream.announced || here && shown.Conn == v.stream.conn):
		return nil
	case open && shown.Online: // peers are not affected by a new stream
		return mesh.Online{ID: n.ID, Replica: self, Conn: v.stream.conn, At: shown.LastSeen}
	case open:
		return mesh.Online{ID: n.ID, Replica: self, Conn: v.stream.conn, At: now}
	case here && shown.Conn <= v.stream.conn:
		return mesh.Offline{ID: n.ID, At: max(shown.LastSeen, now.Add(-v.gone))}
	}
	return nil
}
