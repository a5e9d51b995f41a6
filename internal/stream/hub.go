package stream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Presence is notified when streams open and close. Its methods must not block. If a node
// has two streams, the one with the greater conn is newer.
type Presence interface {
	Opened(node mesh.NodeID, conn int64)
	Closed(node mesh.NodeID, conn int64)
}

// Config configures a Hub. All fields except KeepAlive are required.
type Config struct {
	Ledger     *ledger.Ledger
	Presence   Presence
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// ServerURL is the URL by which clients know the server.
	ServerURL string
	// KeepAlive is how long a stream may be idle; 55 s by default. Clients give up after
	// 120 s.
	KeepAlive time.Duration
}

const (
	keepAliveEvery = 55 * time.Second
	// writeLimit is how long a write may be blocked before its stream ends.
	writeLimit   = 10 * time.Second
	inspectEvery = time.Second
	// maxUpdates is how many streams send updates at a time. A stream that waits for its client for longer than updateLimit does
	// not count toward it any more: an update takes microseconds.
	maxUpdates  = 32
	updateLimit = 5 * time.Millisecond
	// fullsPerCPU limits how many full maps are sent at a time, and fullLimit how long one of them counts toward that limit. A
	// full map takes milliseconds of CPU time. If many more of them were encoded and sent at once than there are CPUs, each
	// update would have to wait for all of them.
	fullsPerCPU = 2
	fullLimit   = 250 * time.Millisecond
	// Two devices with the same state keep taking their node from each other. A takeover
	// within rivalry of the last one counts; after maxRivals of them, the next device
	// waits for about rivalry.
	rivalry    = 3 * time.Second
	maxRivals  = 5
	checkEvery = time.Minute
)

// encoder decides and encodes what viewers are sent. It is a netmap.Cache, except in
// tests that inject faults.
type encoder interface {
	Scene(w *policy.World) *netmap.Scene
	Full(s *netmap.Scene, v netmap.Viewer, now time.Time) ([][]byte, error)
	Update(from, to *netmap.Scene, v netmap.Viewer, touched []mesh.NodeID) (netmap.Update, error)
	KeepAlive(v netmap.Viewer) []byte
	Ping(v netmap.Viewer, url string) ([][]byte, error)
}

// Hub holds the streams of this replica.
type Hub struct {
	ledger    *ledger.Ledger
	presence  Presence
	log       *slog.Logger
	keepAlive time.Duration
	clock     clock
	cache     encoder
	turns     turns      // of streams that send an update
	fulls     *semaphore // for streams that send a full map
	metrics   *metrics

	samples    chan sample // for Run to verify
	sampleFull atomic.Bool // the next full map becomes a sample

	burst burst        // of full maps
	count atomic.Int64 // the length of open
	woken atomic.Int64 // how many streams a change wakes at present

	mu       sync.Mutex
	once     map[mesh.NodeID]struct{}                   // guarded by mu; the nodes that are sent their map once
	lastConn int64                                      // guarded by mu
	open     map[mesh.NodeID]*session                   // guarded by mu; the newest stream of each node
	running  map[*session]struct{}                      // guarded by mu; includes streams that were taken over
	groups   map[netmap.Viewpoint]map[*session]struct{} // guarded by mu; running by viewpoint
	cursor   *ledger.Cursor                             // guarded by mu; at the world of at
	at       *place                                     // guarded by mu; where all streams are that need not send anything
	recorded *session                                   // guarded by mu; the stream that was last asked to record what it sends
	told     time.Time                                  // guarded by mu; when rivals were last logged
}

// New returns a hub without streams.
func New(c Config) *Hub {
	h := &Hub{
		ledger: c.Ledger, presence: c.Presence, log: c.Log, keepAlive: c.KeepAlive, cache: netmap.NewCache(c.ServerURL),
		fulls:   &semaphore{make(chan struct{}, max(4, fullsPerCPU*runtime.GOMAXPROCS(0))), fullLimit},
		samples: make(chan sample, maxSamples), open: map[mesh.NodeID]*session{}, running: map[*session]struct{}{},
		groups: map[netmap.Viewpoint]map[*session]struct{}{}, once: map[mesh.NodeID]struct{}{}, clock: newClock(),
	}
	h.turns.clock = h.clock
	h.cursor = h.ledger.Cursor()
	h.at = &place{h.cache.Scene(h.cursor.World()), &step{}}
	if h.keepAlive == 0 {
		h.keepAlive = keepAliveEvery
	}
	h.lastConn = time.Now().UnixMicro() // greater than in any earlier run
	h.metrics = newMetrics(c.Registerer, h)
	return h
}

// Count returns the number of nodes that have a stream here.
func (h *Hub) Count() int { return int(h.count.Load()) }

// Pace returns how often streams should be woken while changes keep coming. The
// more of them a change wakes, the longer it takes to serve them all.
func (h *Hub) Pace() time.Duration {
	const fastest, slowest, each = 5 * time.Millisecond, 250 * time.Millisecond, 60 * time.Microsecond
	return min(max(fastest, time.Duration(h.woken.Load())*each), slowest)
}

// session is one open stream.
type session struct {
	node    mesh.NodeID
	conn    int64
	started time.Time
	// rivals counts the streams in a row that took over from one that had just
	// begun.
	rivals int
	end    chan struct{} // closed when a newer stream took over
	// poke wakes the stream after it got a turn, another of the following has changed, its context has ended, or end was closed. So
	// an idle stream waits for one channel and has no timer.
	poke      chan struct{}
	turn      atomic.Int32 // one of the constants of type turn
	turnSince int          // guarded by turns.mu; in ticks
	// behind is where the stream is, if it has to move on from there. It is nil if the stream is where the hub is. Only
	// a goroutine that holds the lock of the hub may change it.
	behind atomic.Pointer[place]
	ask    atomic.Pointer[string] // the URL to which the node is to send a request
	due    atomic.Int64           // when the next keep-alive is due, by the clock of the hub
	record atomic.Pointer[record] // the record that the stream is to keep; nil for none

	view    netmap.Viewpoint // guarded by the lock of the hub; of the node
	ready   bool             // guarded by the lock of the hub; whether the stream has sent its first map
	sending atomic.Int64     // the revision from which the stream is moving on; 0 if it is idle
	// blocked is when the current write began, by the clock of the hub, or 0 if there is none.
	blocked atomic.Int64

	mu    sync.Mutex
	abort func() // guarded by mu; interrupts a blocked write; nil once the stream is over
}

// isContested reports whether streams took the node from each other too often in a
// short time.
func (h *Hub) isContested(node mesh.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.open[node]
	if s == nil || s.rivals < maxRivals || time.Since(s.started) > rivalry {
		return false
	}
	if time.Since(h.told) > time.Minute {
		h.told = time.Now()
		h.log.Warn("two devices use the same node key and disconnect each other; log one of them out and in again", "node", node)
	}
	return true
}

// begin opens a stream of a node. It ends an older stream of the node, also if its client grants no flow control. If the client does
// not read its connection, this takes up to the write timeout of the connection.
func (h *Hub) begin(node mesh.NodeID, abort func()) *session {
	s := &session{node: node, started: time.Now(), end: make(chan struct{}), poke: make(chan struct{}, 1), abort: abort}
	if old := h.register(s); old != nil && old.blocked.Load() != 0 {
		old.interrupt()
	}
	return s
}

// register makes a stream the newest of its node. It returns the one before, which it told to end, or nil.
func (h *Hub) register(s *session) (old *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastConn++ // with the lock held, so that the newer stream has the greater number
	s.conn = h.lastConn
	if old = h.open[s.node]; old != nil {
		close(old.end)
		old.wake()
		if s.started.Sub(old.started) < rivalry {
			s.rivals = old.rivals + 1
		}
	}
	h.open[s.node] = s
	h.count.Store(int64(len(h.open)))
	h.running[s] = struct{}{}
	h.join(s)
	h.presence.Opened(s.node, s.conn)
	return old
}

// interrupt makes the current write of a stream fail, unless the stream is over. It reports whether it did.
func (s *session) interrupt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abort == nil {
		return false
	}
	s.abort()
	return true
}

// beginOnce lets a node be sent its map once, unless it is being sent one already.
func (h *Hub) beginOnce(node mesh.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, busy := h.once[node]; busy {
		return false
	}
	h.once[node] = struct{}{}
	return true
}

func (h *Hub) endOnce(node mesh.NodeID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.once, node)
}

// Ask makes a node send a request to a URL of this server on its connection, which
// shows that the node is alive. It returns false if the node has no stream here, or
// has not been sent the last URL yet.
func (h *Hub) Ask(node mesh.NodeID, url string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.open[node]
	if s == nil {
		return false
	}
	if !s.ask.CompareAndSwap(nil, &url) {
		return false
	}
	s.wake()
	return true
}

// wake wakes the stream. It does not wait.
func (s *session) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// postponeKeepAlive sets the time of the next keep-alive of a stream.
func (h *Hub) postponeKeepAlive(s *session) {
	s.due.Store(h.clock.now() + int64(jitter(h.keepAlive)))
}

func (h *Hub) finish(s *session) {
	s.mu.Lock()
	s.abort = nil
	s.mu.Unlock()
	h.mu.Lock()
	if h.open[s.node] == s {
		delete(h.open, s.node)
		h.count.Store(int64(len(h.open)))
	}
	delete(h.running, s)
	h.leave(s)
	h.mu.Unlock()
	h.turns.leave(s)
	h.presence.Closed(s.node, s.conn)
}

// Run wakes streams when the network changes or their keep-alive is due, ends those that
// nobody reads, and verifies samples of what they send, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	var followers sync.WaitGroup
	defer followers.Wait()
	followers.Go(func() { h.follow(ctx) })
	inspect, check := time.NewTicker(min(inspectEvery, h.keepAlive/4)), time.NewTicker(checkEvery)
	defer inspect.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-inspect.C:
			h.inspect()
		case <-check.C:
			h.requestSamples()
		case s := <-h.samples:
			h.verify(s)
		}
	}
}

// inspect looks at all streams. One ticker for all of them is cheaper than a timer for each.
func (h *Hub) inspect() {
	now := h.clock.now()
	h.mu.Lock()
	var stuck []*session
	for s := range h.running {
		if due := s.due.Load(); due != 0 && now >= due {
			s.wake()
		}
		if since := s.blocked.Load(); since != 0 && now-since > int64(writeLimit) {
			stuck = append(stuck, s)
		}
	}
	h.mu.Unlock()
	for _, s := range stuck {
		if s.interrupt() {
			h.log.Info("closing a stream that the client is not reading", "node", s.node)
		}
	}
	if h.burst.isOver(now) {
		debug.FreeOSMemory() // last, because it waits for a garbage collection
	}
}

// jitter varies d by up to a tenth in either direction.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d)/5+1))
}
