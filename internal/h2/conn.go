package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// frameBytes is the maximum size of a frame in both directions, which is the smallest that HTTP/2 allows.
	frameBytes = 16 << 10
	headBytes  = 9
	// firstWindow is the size of a window unless a peer says otherwise.
	firstWindow = 1<<16 - 1
	maxWindow   = 1<<31 - 1
	// creditBytes is how much is read of a body before the client may send as much again.
	creditBytes = 4 << 10
	maxSettings = 100
	tableBytes  = 4 << 10 // the table of the HPACK decoder
	// refusalsPerRequest limits how many requests a client may start in vain while it has MaxRequests of them.
	refusalsPerRequest = 4
)

var (
	errClosed     = errors.New("connection closed")
	errReset      = errors.New("request cancelled by the client")
	errNotPreface = errors.New("not an HTTP/2 connection")
	errFlooded    = errors.New("too many frames that need a response, none of which is read")
)

// conn is a connection. One goroutine reads it. All others may write.
type conn struct {
	server *Server
	net    net.Conn
	ctx    context.Context //nolint:containedctx // the parent of the contexts of requests
	cancel context.CancelFunc
	// running counts the handlers, and goroutines that write for the server. It grows under mu, and only while not over.
	running sync.WaitGroup

	// Only the reader uses these.
	decoder *hpack.Decoder
	head    [headBytes]byte
	newest  uint32 // the greatest ID of a stream
	unacked int    // settings that the client has not acknowledged
	refused int    // requests refused since one was accepted

	// Times as of Server.now, or zero.
	lastRead, pinged atomic.Int64 // when a frame was last read, and when a ping was sent that is unanswered
	writeSince       atomic.Int64 // when the current write began
	idleSince        atomic.Int64 // since when there is no request
	deadline         atomic.Int64 // the earliest deadline of a request
	closeAt          atomic.Int64 // when a connection that was told to go away is closed; set under mu

	mu      sync.Mutex
	changed sync.Cond // guards nothing: signals changes of what mu guards, which is everything below
	waiting int       // how many goroutines wait for changed
	writing bool      // whether a goroutine writes to net, which it does without mu
	pending []byte    // control frames for whoever writes next
	streams []*stream
	handled uint32 // the greatest ID of a stream that has or had a handler
	window  int64  // how much may be sent
	initial int64  // the initial window of a stream
	accept  int64  // how much the client may send
	consume int64  // how much of that was read since the client was last told
	err     error  // why nothing more is sent
	over    bool   // whether the reader has returned
}

func newConn(ctx context.Context, s *Server, nc net.Conn) *conn {
	c := &conn{
		server: s, net: nc, decoder: hpack.NewDecoder(tableBytes, nil), window: firstWindow, initial: firstWindow, accept: firstWindow,
	}
	c.changed.L = &c.mu
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.lastRead.Store(s.now())
	c.idleSince.Store(s.now())
	return c
}

// serve reads the connection until it ends.
func (c *conn) serve() error {
	if err := c.net.SetReadDeadline(time.Now().Add(c.server.config.PrefaceTimeout)); err != nil {
		return err
	}
	c.greet()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.net, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return errNotPreface
	}
	for first := true; ; first = false {
		if err := c.readFrame(first); err != nil {
			return err
		}
		if first {
			if err := c.net.SetReadDeadline(time.Time{}); err != nil {
				return err
			}
		}
	}
}

// greet sends the server's settings.
func (c *conn) greet() {
	c.unacked++
	c.control(func(b []byte) []byte {
		return appendSettings(b,
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: frameBytes},
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.server.config.MaxRequests)},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.server.config.HeaderBytes},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(c.server.config.UploadBytes)})
	})
}

// framer parses one frame. It is not bound to a connection, so that an idle connection has no buffer.
type framer struct {
	*http2.Framer
	head []byte // read before what follows
	rest io.Reader
}

func (f *framer) Read(b []byte) (int, error) {
	if len(f.head) > 0 {
		n := copy(b, f.head)
		f.head = f.head[n:]
		return n, nil
	}
	return f.rest.Read(b)
}

func newFramer() any {
	f := &framer{}
	f.Framer = http2.NewFramer(nil, f)
	f.SetMaxReadFrameSize(frameBytes)
	f.SetReuseFrames()
	return f
}

// readFrame reads a frame and handles it. Errors of a stream end only the stream.
func (c *conn) readFrame(first bool) error {
	if _, err := io.ReadFull(c.net, c.head[:]); err != nil {
		return err
	}
	f := c.server.framers.Get().(*framer)
	f.head, f.rest, f.ReadMetaHeaders, f.MaxHeaderListSize = c.head[:], c.net, c.decoder, c.server.config.HeaderBytes
	frame, err := f.ReadFrame()
	if errors.Is(err, http2.ErrFrameTooLarge) {
		err = http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	if err == nil || errors.As(err, new(http2.StreamError)) {
		c.lastRead.Store(c.server.now())
		if first {
			if s, ok := frame.(*http2.SettingsFrame); !ok || s.IsAck() {
				return http2.ConnectionError(http2.ErrCodeProtocol)
			}
		}
		if err == nil {
			err = c.handle(frame)
			// What the parser read is not used any more. After an error of its own it may be in the middle of something, such as a
			// header that goes on in another frame, which the next connection would have to send.
			f.head, f.rest, f.ReadMetaHeaders = nil, nil, nil
			c.server.framers.Put(f)
		}
	}
	var broken http2.StreamError
	if errors.As(err, &broken) {
		if frame == nil && !c.mayReset(broken) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.reset(broken.StreamID, broken.Code)
		return nil
	}
	return err
}

// mayReset reports whether an error of the parser can end only a stream.
func (c *conn) mayReset(broken http2.StreamError) bool {
	if http2.FrameType(c.head[3]) != http2.FrameHeaders {
		return !c.isIdle(broken.StreamID)
	}
	c.newest = max(c.newest, broken.StreamID)
	// Without a cause, the header was not decoded, and those that follow cannot be.
	return broken.Cause != nil && broken.StreamID%2 == 1
}

func (c *conn) handle(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.control(func(b []byte) []byte { return appendPing(b, http2.FlagPingAck, f.Data) })
		}
	case *http2.RSTStreamFrame:
		if c.isIdle(f.StreamID) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.drop(f.StreamID, errReset)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY, and frames of extensions
}

// isIdle reports whether a stream has not been used yet.
func (c *conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.newest }

func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.unacked--; c.unacked < 0 {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		return nil
	}
	if f.NumSettings() > maxSettings || f.HasDuplicates() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if err := f.ForeachSetting(c.setting); err != nil {
		return err
	}
	c.control(func(b []byte) []byte { return appendHead(b, 0, http2.FrameSettings, http2.FlagSettingsAck, 0) })
	return nil
}

func (c *conn) setting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	if s.ID != http2.SettingInitialWindowSize {
		return nil // no frame is larger than any client accepts, and no header is compressed with a table
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more := int64(s.Val) - c.initial
	c.initial += more
	for _, st := range c.streams {
		if st.window += more; st.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	}
	c.signal()
	return nil
}

func (c *conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID != 0 && c.isIdle(f.StreamID) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID == 0 {
		if c.window += int64(f.Increment); c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	} else if st := c.find(f.StreamID); st != nil {
		if st.window += int64(f.Increment); st.window > maxWindow {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
	}
	c.signal()
	return nil
}

// find returns a stream whose handler has not returned. The caller holds mu.
func (c *conn) find(id uint32) *stream {
	for _, st := range c.streams {
		if st.id == id {
			return st
		}
	}
	return nil
}

// signal wakes goroutines that wait for a change. The caller holds mu.
func (c *conn) signal() {
	if c.waiting > 0 {
		c.changed.Broadcast()
	}
}

// wait waits for a change. The caller holds mu.
func (c *conn) wait() {
	c.waiting++
	c.changed.Wait()
	c.waiting--
}

// drop ends a stream without telling the client.
func (c *conn) drop(id uint32, why error) {
	credit := int64(0)
	c.mu.Lock()
	if st := c.find(id); st != nil {
		credit = c.credit(st.fail(why))
		c.signal()
	}
	c.mu.Unlock()
	c.allow(0, credit)
}

// reset ends a stream and tells the client.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	c.drop(id, fmt.Errorf("request reset: %v", code))
	c.control(func(b []byte) []byte { return appendReset(b, id, code) })
}

// end ends the connection after the reader has returned. If the client broke the protocol, it is told how.
func (c *conn) end(why error) {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.cancel()
	var broken http2.ConnectionError
	if errors.As(why, &broken) {
		_ = c.net.SetWriteDeadline(time.Now().Add(lingering)) // nobody checks timeouts any more; if it fails, writing fails too
		c.goAway(http2.ErrCode(broken))
		_ = c.net.SetReadDeadline(time.Now().Add(lingering)) // if it fails, reading fails too
		_, _ = io.Copy(io.Discard, c.net)                    // closing with unread data would discard what was sent
	}
	c.fail(errClosed)
	if why != nil && !errors.Is(why, io.EOF) && !errors.Is(why, net.ErrClosed) {
		c.server.config.Log.Debug("client connection ended", "error", why)
	}
}

func (c *conn) goAway(code http2.ErrCode) {
	c.control(func(b []byte) []byte { return appendGoAway(b, c.handled, code) })
}

// fail closes the connection, which also ends the reader.
func (c *conn) fail(why error) {
	c.mu.Lock()
	c.failLocked(why)
	c.mu.Unlock()
	_ = c.net.Close() // it may be closed already
}

// failLocked makes all goroutines stop that use the connection, once it is closed. The caller holds mu.
func (c *conn) failLocked(why error) {
	if c.err == nil {
		c.err = why
	}
	for _, st := range c.streams {
		st.fail(why)
	}
	c.signal()
}

// spawn runs a function that may wait for the client, unless the connection is over.
func (c *conn) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.running.Go(f)
	}
}

// check enforces the timeouts of the connection.
func (c *conn) check(now int64) {
	config, tick := &c.server.config, int64(c.server.tick)
	passed := func(since *atomic.Int64, limit time.Duration) bool {
		at := since.Load()
		return at != 0 && now-at > int64(limit)-tick
	}
	read, pinged := c.lastRead.Load(), c.pinged.Load()
	switch {
	case passed(&c.closeAt, 0), passed(&c.writeSince, config.WriteTimeout), pinged > read && passed(&c.pinged, config.PingTimeout):
		c.spawn(func() { c.fail(errClosed) })
	case pinged <= read && now-read > c.server.silence.Load():
		c.pinged.Store(now)
		c.spawn(func() {
			c.control(func(b []byte) []byte { return appendPing(b, 0, pingData()) })
		})
	}
	if c.closeAt.Load() == 0 && passed(&c.idleSince, config.IdleTimeout) {
		c.retire(now)
	}
	if by := c.deadline.Load(); by != 0 && now > by-tick {
		c.spawn(func() { c.expire(now + tick) })
	}
}

// retire tells the client to go away, unless it has sent a request meanwhile.
func (c *conn) retire(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) == 0 && !c.over {
		c.closeAt.Store(now + int64(lingering))
		c.running.Go(func() { c.goAway(http2.ErrCodeNo) })
	}
}
