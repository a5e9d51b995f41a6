package control

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
	// closeGrace is how long a node may be without a stream before others are
	// told: clients reopen a stream that ended within moments.
	closeGrace = 2 * time.Second
	// chunkNodes bounds one command, so that others get their turn between two.
	chunkNodes    = 256
	presenceRetry = time.Second // after a commit that failed
	presenceIdle  = time.Hour   // when only a change gives something to do
)

// PresenceConfig is what a Presence needs; all of it is required.
type PresenceConfig struct {
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Presence makes the world say which nodes have their stream on this replica.
// It compares what is held with what the world shows, again whenever either
// changes, so nothing is lost while the database is away, and a replica that
// others took for dead announces its streams anew.
type Presence struct {
	ledger *ledger.Ledger
	log    *slog.Logger
	self   string
	wake   chan struct{}

	mu    sync.Mutex
	holds map[mesh.NodeID]hold     // guarded by mu
	dirty map[mesh.NodeID]struct{} // guarded by mu; to be compared with the world
	open  int                      // guarded by mu; holds with a stream
}

// hold is what this replica knows of a node's streams here.
type hold struct {
	conn   int64     // of the newest stream
	closed time.Time // when it ended; zero while it is open
	// announced says that the world has shown this stream. If it shows another
	// replica after that, the node has moved.
	announced bool
}

// NewPresence returns a presence that holds nothing. Run moves it.
func NewPresence(c PresenceConfig) *Presence {
	p := &Presence{
		ledger: c.Ledger, log: c.Log, self: string(c.Ledger.Self().ID), wake: make(chan struct{}, 1),
		holds: map[mesh.NodeID]hold{}, dirty: map[mesh.NodeID]struct{}{},
	}
	c.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_presence_waiting", Help: "Nodes that came to or left this replica and are not yet shown so.",
	}, func() float64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return float64(len(p.dirty))
	}))
	return p
}

// Opened says that a node has a new stream here. It never blocks. Of two
// streams of a node the one with the greater conn is the newer.
func (p *Presence) Opened(id mesh.NodeID, conn int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, known := p.holds[id]
	if known && h.conn >= conn {
		return
	}
	if !known || !h.closed.IsZero() {
		p.open++
	}
	p.holds[id] = hold{conn: conn}
	p.look(id)
}

// Closed says that a stream ended. It never blocks. If it is not the newest of
// its node, nothing follows.
func (p *Presence) Closed(id mesh.NodeID, conn int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, known := p.holds[id]
	if !known || h.conn != conn || !h.closed.IsZero() {
		return
	}
	p.open--
	h.closed = time.Now()
	p.holds[id] = h
	p.look(id)
}

// look asks Run to compare a node; mu is held.
func (p *Presence) look(id mesh.NodeID) {
	p.dirty[id] = struct{}{}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Held is how many nodes have a stream here.
func (p *Presence) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Run commits until ctx ends. It leaves the nodes online then: they go to
// another replica or come back to this one, and if not, a sweep finds them.
func (p *Presence) Run(ctx context.Context) error {
	cursor := p.ledger.Cursor()
	for {
		wait, err := p.settle(ctx)
		wake, more := p.wake, cursor.More()
		if err != nil {
			p.log.Debug("presence waits for the database", "error", err)
			wait, wake, more = presenceRetry, nil, nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-wake:
		case <-more:
			p.notice(cursor.Skip(), cursor.World())
		}
	}
}

// notice marks the nodes whose change in the world concerns this replica; nil
// means that any may have changed.
func (p *Presence) notice(touched []mesh.NodeID, w *policy.World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range touched {
		if _, held := p.holds[id]; held {
			p.dirty[id] = struct{}{}
		}
	}
	if touched != nil {
		return
	}
	for id := range p.holds {
		p.dirty[id] = struct{}{}
	}
	for n := range w.Nodes() {
		if n.Presence.Replica == p.self {
			p.dirty[n.ID] = struct{}{}
		}
	}
}

// settle compares what is dirty with the world and commits the differences. It
// returns how long nothing is to do unless something changes.
func (p *Presence) settle(ctx context.Context) (wait time.Duration, err error) {
	came, left, wait := p.compare(p.ledger.World(), time.Now())
	if err := p.commit(ctx, came); err != nil {
		return 0, err
	}
	// That a node left is not said later than it was meant: until the database
	// answers, the node may have come to another replica, which waits likewise.
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	return wait, p.commit(ctx, left)
}

func (p *Presence) commit(ctx context.Context, wishes []wish) error {
	for chunk := range slices.Chunk(wishes, chunkNodes) {
		_, err := p.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: p.self}, decidePresence(p.self, chunk))
		if err != nil {
			return err
		}
		p.committed(chunk)
	}
	return nil
}

// compare returns the wishes that the world does not fulfil: nodes that came and
// nodes that left. What is as it should be is dirty no more. After an outage
// those that left wait until the others had time to say who came to them.
func (p *Presence) compare(w *policy.World, now time.Time) (came, left []wish, wait time.Duration) {
	steady := p.ledger.Pulse().Steady(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = presenceIdle
	for _, id := range slices.Sorted(maps.Keys(p.dirty)) {
		h, held := p.holds[id]
		if !held {
			h = hold{conn: math.MaxInt64, closed: now.Add(-closeGrace)}
		}
		if grace := h.closed.Add(closeGrace).Sub(now); !h.closed.IsZero() && grace > 0 {
			wait = min(wait, grace)
			continue
		}
		v := wish{id: id, hold: h, gone: now.Sub(h.closed)}
		n, ok := w.Node(id)
		switch {
		case !ok || v.event(n, p.self, 0) == nil:
			p.fulfilled(v, ok && n.Presence.Replica == p.self)
		case h.closed.IsZero():
			came = append(came, v)
		case steady:
			left = append(left, v)
		default:
			wait = min(wait, presenceRetry)
		}
	}
	return came, left, wait
}

// committed takes note that the world has been told.
func (p *Presence) committed(wishes []wish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range wishes {
		p.fulfilled(v, true)
	}
}

// fulfilled ends a wish, unless the node's streams have changed since it was
// made; mu is held.
func (p *Presence) fulfilled(v wish, announced bool) {
	h, held := p.holds[v.id]
	if held && h.conn == v.hold.conn && announced {
		h.announced = true
		p.holds[v.id] = h
	}
	if held && (h.conn != v.hold.conn || h.closed != v.hold.closed) {
		return
	}
	delete(p.dirty, v.id)
	if held && !h.closed.IsZero() {
		delete(p.holds, v.id)
	}
}

// wish is what the world should show of a node, as of one moment.
type wish struct {
	id   mesh.NodeID
	hold hold
	gone time.Duration // since the stream ended
}

// decidePresence fulfils the wishes that the world does not fulfil already.
func decidePresence(self string, wishes []wish) ledger.Decide {
	return func(w *policy.World, now mesh.Time) (evs []mesh.Event, _ error) {
		for _, v := range wishes {
			if n, ok := w.Node(v.id); ok {
				if e := v.event(n, self, now); e != nil {
					evs = append(evs, e)
				}
			}
		}
		return evs, nil
	}
}

// event fulfils the wish; it is nil when there is nothing to do. Numbers of
// streams are compared only with those of this replica: of two replicas the one
// that came last is right, so a stream that was shown once is not shown again
// over that of another replica.
func (v wish) event(n *mesh.Node, self string, now mesh.Time) mesh.Event {
	shown := n.Presence
	here := shown.Online && shown.Replica == self
	elsewhere := shown.Online && !here
	switch open := v.hold.closed.IsZero(); {
	case open && (elsewhere && v.hold.announced || here && shown.Conn == v.hold.conn):
		return nil
	case open && shown.Online: // peers need not hear that it has another stream
		return mesh.Online{ID: n.ID, Replica: self, Conn: v.hold.conn, At: shown.LastSeen}
	case open:
		return mesh.Online{ID: n.ID, Replica: self, Conn: v.hold.conn, At: now}
	case here && shown.Conn <= v.hold.conn:
		return mesh.Offline{ID: n.ID, At: max(shown.LastSeen, now.Add(-v.gone))}
	}
	return nil
}
