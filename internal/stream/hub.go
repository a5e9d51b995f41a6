package stream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// Presence is told which streams there are. It must not block. Of two streams
// of one node the one with the greater conn is the newer.
type Presence interface {
	Opened(node mesh.NodeID, conn int64)
	Closed(node mesh.NodeID, conn int64)
}

// Config of a hub. All but KeepAlive are required.
type Config struct {
	Ledger     *ledger.Ledger
	Presence   Presence
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// KeepAlive is how long a stream may be silent; 50 s unless told. Clients
	// give up after 120 s.
	KeepAlive time.Duration
}

const (
	keepAliveEvery = 50 * time.Second
	// writeLimit is how long a write may be blocked before its stream ends.
	writeLimit   = 10 * time.Second
	inspectEvery = 2 * time.Second
	// fullAtOnce is how many full maps are sent at a time, and turnLimit how
	// long one of them counts.
	fullAtOnce = 32
	turnLimit  = time.Second
	checkEvery = time.Minute
	// checkViewers is how many viewers each check looks at.
	checkViewers = 3
)

// Hub holds the streams of this replica.
type Hub struct {
	ledger    *ledger.Ledger
	presence  Presence
	log       *slog.Logger
	keepAlive time.Duration
	library   *library
	turns     chan struct{} // one for each full map that is being sent
	metrics   *metrics
	// alive and plainAlive are the keep-alive, compressed and not.
	alive, plainAlive []byte

	mu       sync.Mutex
	lastConn int64                    // guarded by mu
	open     map[mesh.NodeID]*session // guarded by mu; the newest stream of each node
}

// New returns a hub without streams.
func New(c Config) *Hub {
	h := &Hub{
		ledger: c.Ledger, presence: c.Presence, log: c.Log, keepAlive: c.KeepAlive, library: newLibrary(), turns: make(chan struct{}, fullAtOnce),
		alive: keepAlive(true), plainAlive: keepAlive(false), open: map[mesh.NodeID]*session{},
	}
	if h.keepAlive == 0 {
		h.keepAlive = keepAliveEvery
	}
	h.lastConn = time.Now().UnixMicro() // greater than in any earlier run
	h.metrics = newMetrics(c.Registerer, h)
	return h
}

// Count is the number of nodes that have a stream here.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// Pace is how often streams should be woken while changes keep coming: the more
// there are, the longer a round takes.
func (h *Hub) Pace() time.Duration {
	const fastest, slowest, each = 5 * time.Millisecond, 100 * time.Millisecond, 30 * time.Microsecond
	return min(max(fastest, time.Duration(h.Count())*each), slowest)
}

// session is one open stream.
type session struct {
	node mesh.NodeID
	conn int64
	end  chan struct{} // closed when a newer stream took over
	rev  atomic.Int64  // of the world that was sent last
	// blocked is since when a write has been waiting, 0 if none is.
	blocked atomic.Int64

	mu    sync.Mutex
	abort func() // guarded by mu; breaks a write that waits; nil once the stream is over
}

func (h *Hub) begin(node mesh.NodeID, abort func()) *session {
	s := &session{node: node, end: make(chan struct{}), abort: abort}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastConn++ // with the lock held, so that the stream that stays has the greater number
	s.conn = h.lastConn
	if old := h.open[node]; old != nil {
		close(old.end)
	}
	h.open[node] = s
	h.presence.Opened(node, s.conn)
	return s
}

func (h *Hub) finish(s *session) {
	s.mu.Lock()
	s.abort = nil
	s.mu.Unlock()
	h.mu.Lock()
	if h.open[s.node] == s {
		delete(h.open, s.node)
	}
	h.mu.Unlock()
	h.presence.Closed(s.node, s.conn)
}

// Run ends streams that nobody reads, and checks now and then that what streams
// send is right, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	inspect, check := time.NewTicker(inspectEvery), time.NewTicker(checkEvery)
	defer inspect.Stop()
	defer check.Stop()
	cursor := h.ledger.Cursor()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-inspect.C:
			h.breakBlocked(time.Now())
		case <-check.C:
			h.check(cursor)
		}
	}
}

func (h *Hub) breakBlocked(now time.Time) {
	h.mu.Lock()
	var stuck []*session
	for _, s := range h.open {
		if since := s.blocked.Load(); since != 0 && now.UnixNano()-since > int64(writeLimit) {
			stuck = append(stuck, s)
		}
	}
	h.mu.Unlock()
	for _, s := range stuck {
		s.mu.Lock()
		if s.abort != nil {
			h.log.Info("ending a stream that is not read", "node", s.node)
			s.abort()
		}
		s.mu.Unlock()
	}
}

// check proves the law of netmap on what happened since it was last called, for
// a few viewers.
func (h *Hub) check(c *ledger.Cursor) {
	from := netmap.SceneOf(c.World(), nil)
	touched := c.Skip()
	to := netmap.SceneOf(c.World(), from)
	if from.World == to.World {
		return
	}
	h.mu.Lock()
	var viewers []mesh.NodeID
	for id := range h.open { // in no order
		if len(viewers) == checkViewers {
			break
		}
		viewers = append(viewers, id)
	}
	h.mu.Unlock()
	for _, id := range viewers {
		_, before := from.Node(id)
		if _, after := to.Node(id); !before || !after {
			continue
		}
		h.metrics.checks.Inc()
		if diff := netmap.Check(from, to, id, touched); diff != "" {
			h.metrics.violations.Inc()
			h.log.Error("a map is not what it should be; keep this line for a report", "node", id, "from", from.Rev, "to", to.Rev, "difference", diff)
		}
	}
}

// jitter spreads d by a tenth either way.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d)/5+1))
}
