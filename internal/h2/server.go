package h2

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a Server. All fields are required.
type Config struct {
	Handler http.Handler
	Log     *slog.Logger
	// MaxRequests is how many concurrent requests a connection may have.
	MaxRequests int
	// HeaderBytes limits the header of a request.
	HeaderBytes uint32
	// UploadBytes is how much of a request's body a client may send before it is read.
	UploadBytes int32
	// PrefaceTimeout is how long a client may take to send its first frame.
	PrefaceTimeout time.Duration
	// RequestTimeout limits how long it takes to read a request and to write its response, unless the handler sets its own
	// deadlines.
	RequestTimeout time.Duration
	// WriteTimeout is how long a client may take to accept a frame.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection without requests is kept open.
	IdleTimeout time.Duration
	// Silence returns how long a connection may be silent before it is pinged, given the number of connections.
	Silence func(connections int) time.Duration
	// PingTimeout is how long a client may take to respond to a ping.
	PingTimeout time.Duration
}

// Server serves connections.
type Server struct {
	config  Config
	started time.Time
	tick    time.Duration // how often timeouts are checked
	// What connections use only while they are busy: *framer, *encoder and *[]byte.
	framers, encoders, buffers sync.Pool

	silence atomic.Int64 // how long a connection may be silent at present

	mu       sync.Mutex
	conns    map[*conn]struct{} // guarded by mu
	watching *watch             // guarded by mu; nil if there are no connections
}

// watch is the goroutine that checks the timeouts of all connections.
type watch struct {
	stop    chan struct{}
	running sync.WaitGroup
}

const (
	slowestTick = time.Second
	fastestTick = 5 * time.Millisecond
	// lingering is how long the server waits for a client to close the connection after it has been told why.
	lingering = time.Second
)

// New returns a server without connections.
func New(c Config) *Server {
	shortest := min(c.RequestTimeout, c.WriteTimeout, c.IdleTimeout, c.Silence(0), c.PingTimeout)
	s := &Server{
		config: c, started: time.Now(), tick: min(max(shortest/4, fastestTick), slowestTick), conns: map[*conn]struct{}{},
		framers: sync.Pool{New: newFramer}, encoders: sync.Pool{New: newEncoder}, buffers: sync.Pool{New: newBuffer},
	}
	s.setSilence(0)
	return s
}

// setSilence sets how long a connection may be silent, given the number of connections.
func (s *Server) setSilence(connections int) {
	s.silence.Store(int64(s.config.Silence(connections) - s.tick))
}

// now returns the time as all timeouts are measured, which is never zero.
func (s *Server) now() int64 { return s.at(time.Now()) }

func (s *Server) at(t time.Time) int64 { return max(1, int64(t.Sub(s.started))) }

// Serve serves a connection until it ends, and returns when all its handlers have returned. It closes the connection. The contexts
// of requests are derived from ctx.
func (s *Server) Serve(ctx context.Context, nc net.Conn) {
	c := newConn(ctx, s, nc)
	s.enter(c)
	defer s.leave(c)
	defer c.running.Wait()
	var err error
	defer func() { c.end(err) }()
	err = c.serve()
}

func (s *Server) enter(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	if s.watching == nil {
		w := &watch{stop: make(chan struct{})}
		w.running.Go(func() { s.watch(w.stop) })
		s.watching = w
	}
}

// leave forgets a connection. Whoever leaves last waits for the goroutine that checks timeouts.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	var last *watch
	if len(s.conns) == 0 {
		last, s.watching = s.watching, nil
	}
	s.mu.Unlock()
	if last != nil {
		close(last.stop)
		last.running.Wait()
	}
}

func (s *Server) watch(stop <-chan struct{}) {
	ticker := time.NewTicker(s.tick)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.check()
		}
	}
}

// check enforces all timeouts. It never waits for a client. Timeouts end up to a tick early rather than late, so that they add up
// to what they promise.
func (s *Server) check() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setSilence(len(s.conns))
	for c := range s.conns {
		c.check(now)
	}
}
