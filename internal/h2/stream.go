package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/net/http2"
)

// stream is a request and its response. The mutex of its connection guards all fields after id.
type stream struct {
	conn   *conn
	id     uint32
	cancel context.CancelFunc // of the request's context

	window   int64 // how much of the response may be sent
	sentEnd  bool
	err      error // why nothing more is read or sent
	accept   int64 // how much of the body the client may send
	consume  int64 // how much of that was read since the client was last told
	declared int64 // how much of the body is missing according to its declared length; -1 if none was declared
	body     []byte
	bodyErr  error // why there is no more body, io.EOF if it is complete
	complete bool  // whether the client has sent the whole request
	// Deadlines, as of Server.now, or zero.
	readBy, writeBy int64
}

// fail ends a stream. It returns how much of the body will not be read, which the client may send again. The caller holds the mutex
// of the connection, and calls signal.
func (st *stream) fail(why error) (unread int64) {
	if st.err == nil {
		st.err = why
	}
	if st.bodyErr == nil {
		st.bodyErr = st.err
	}
	if !errors.Is(st.bodyErr, io.EOF) {
		unread, st.body = int64(len(st.body)), nil
	}
	st.cancel()
	return unread
}

// headers handles the header of a request, or the end of one that has trailers.
func (c *conn) headers(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if known, err := c.trailers(f); known || err != nil {
		return err
	}
	if id <= c.newest {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.newest = id
	if f.HasPriority() && f.Priority.StreamDep == id {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	r, err := request(f)
	if err != nil {
		return err
	}
	st := &stream{conn: c, id: id, accept: int64(c.server.config.UploadBytes), declared: r.ContentLength}
	if f.StreamEnded() {
		st.bodyErr, st.complete, r.Body = io.EOF, true, http.NoBody
		if r.ContentLength > 0 {
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
		}
		r.ContentLength = 0
	} else {
		r.Body = &body{st}
	}
	r.RemoteAddr = c.net.RemoteAddr().String()
	ctx, cancel := context.WithCancel(c.ctx)
	st.cancel = cancel
	if !c.add(st) {
		cancel()
		if c.closeAt.Load() != 0 {
			return nil // the client knows that it must repeat the request elsewhere
		}
		if c.refused++; c.refused > refusalsPerRequest*c.server.config.MaxRequests {
			return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
		}
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	c.refused = 0
	handler := c.server.config.Handler
	if f.Truncated {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the header of the request is too large", http.StatusRequestHeaderFieldsTooLarge)
		})
	}
	r = r.WithContext(ctx)
	c.spawn(func() { st.run(handler, r) })
	return nil
}

// trailers handles the header fields after a body, which only end it, and reports whether there is such a body.
func (c *conn) trailers(f *http2.MetaHeadersFrame) (known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.find(f.StreamID)
	switch {
	case st == nil:
		return false, nil
	case st.err != nil:
		return true, nil // it was sent before the client knew
	case st.complete:
		return true, http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed}
	case !f.StreamEnded() || len(f.PseudoFields()) > 0:
		return true, http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	}
	st.ended()
	return true, nil
}

// add adds a stream, unless there are too many or the client was told to go away. A stream whose response was sent does not count:
// the client cannot know that its handler is still about to return.
func (c *conn) add(st *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := 0
	for _, other := range c.streams {
		if !other.sentEnd {
			running++
		}
	}
	if running >= c.server.config.MaxRequests || c.closeAt.Load() != 0 {
		return false
	}
	c.handled = st.id
	st.window = c.initial
	by := c.server.at(time.Now().Add(c.server.config.RequestTimeout))
	st.readBy, st.writeBy = by, by
	c.streams = append(c.streams, st)
	c.idleSince.Store(0)
	c.schedule()
	return true
}

// remove forgets a stream whose handler has returned.
func (c *conn) remove(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.streams {
		if other == st {
			last := len(c.streams) - 1
			c.streams[i], c.streams[last] = c.streams[last], nil
			c.streams = c.streams[:last]
			break
		}
	}
	if len(c.streams) == 0 {
		c.streams = nil
		c.idleSince.Store(c.server.now())
	}
	c.schedule()
}

// run calls the handler.
func (st *stream) run(handler http.Handler, r *http.Request) {
	c := st.conn
	defer c.remove(st)
	defer st.cancel()
	w := &response{stream: st, head: r.Method == http.MethodHead}
	if w.serve(handler, r) {
		w.finish()
		st.discard(http2.ErrCodeNo)
	} else {
		st.discard(http2.ErrCodeInternal)
	}
}

// serve reports whether the handler returned.
func (w *response) serve(handler http.Handler, r *http.Request) (returned bool) {
	defer func() {
		fault := recover()
		if err, ok := fault.(error); fault != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
			w.stream.conn.server.config.Log.Error("handler panicked", "panic", fault, "path", r.URL.Path, "stack", string(debug.Stack()))
		}
	}()
	handler.ServeHTTP(w, r)
	return true
}

// discard gives up the rest of the body and of the response. If the client is still sending or waiting, it is told why.
func (st *stream) discard(code http2.ErrCode) {
	c := st.conn
	c.mu.Lock()
	open := st.err == nil && (!st.complete || !st.sentEnd)
	st.bodyErr = errClosed // also for those who read it after the handler has returned
	credit := c.credit(st.fail(errClosed))
	c.mu.Unlock()
	if open {
		c.control(func(b []byte) []byte { return appendReset(b, st.id, code) })
	}
	c.allow(0, credit)
}

// data handles a part of a body.
func (c *conn) data(f *http2.DataFrame) error {
	if c.isIdle(f.StreamID) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	size := int64(f.Length) // with padding
	if size > c.accept {
		c.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	c.accept -= size
	st := c.find(f.StreamID)
	if st != nil && st.bodyErr == nil {
		if code := st.take(f, size); code != http2.ErrCodeNo {
			credit := c.credit(size)
			c.mu.Unlock()
			c.allow(0, credit)
			return http2.StreamError{StreamID: f.StreamID, Code: code}
		}
		padding := size - int64(len(f.Data()))
		credit, own := c.credit(padding), st.credit(padding)
		c.signal()
		c.mu.Unlock()
		c.allow(0, credit)
		c.allow(f.StreamID, own)
		return nil
	}
	credit := c.credit(size)
	// It was sent before the client knew that the stream or the connection ends, or after the body's deadline.
	ignore := st != nil && (st.err != nil || !st.complete) || st == nil && c.closeAt.Load() != 0
	if st != nil && f.StreamEnded() {
		st.complete = true
	}
	c.mu.Unlock()
	c.allow(0, credit)
	if ignore {
		return nil
	}
	return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
}

// take appends data to the body. The caller holds the mutex of the connection.
func (st *stream) take(f *http2.DataFrame, size int64) http2.ErrCode {
	if size > st.accept {
		return http2.ErrCodeFlowControl
	}
	st.accept -= size
	if st.declared >= 0 {
		if st.declared -= int64(len(f.Data())); st.declared < 0 {
			return http2.ErrCodeProtocol
		}
	}
	st.body = append(st.body, f.Data()...)
	if f.StreamEnded() {
		st.ended()
	}
	return http2.ErrCodeNo
}

// ended records that the client has sent the whole body. The caller holds the mutex of the connection.
func (st *stream) ended() {
	st.complete = true
	switch {
	case st.bodyErr != nil:
	case st.declared > 0:
		st.bodyErr = fmt.Errorf("the body is %d bytes shorter than declared", st.declared)
	default:
		st.bodyErr = io.EOF
	}
	st.conn.signal()
}

// credit counts bytes that the client may send again, and returns how many to tell it about, or zero. The caller holds mu.
func (c *conn) credit(n int64) int64 {
	c.consume += n
	if c.consume < creditBytes {
		return 0
	}
	n, c.consume = c.consume, 0
	c.accept += n
	return n
}

// credit does the same for the body of a stream.
func (st *stream) credit(n int64) int64 {
	st.consume += n
	if st.consume < creditBytes || st.bodyErr != nil {
		return 0
	}
	n, st.consume = st.consume, 0
	st.accept += n
	return n
}

// allow lets the client send more, for a stream or, if it is zero, for the connection.
func (c *conn) allow(stream uint32, n int64) {
	if n > 0 {
		c.control(func(b []byte) []byte { return appendWindowUpdate(b, stream, n) })
	}
}

// body is the body of a request.
type body struct{ st *stream }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	st, c := b.st, b.st.conn
	c.mu.Lock()
	for len(st.body) == 0 && st.bodyErr == nil && len(p) > 0 {
		c.wait()
	}
	n := copy(p, st.body)
	if st.body = st.body[n:]; len(st.body) == 0 {
		st.body = nil
	}
	var err error
	if len(st.body) == 0 {
		err = st.bodyErr
	}
	credit, own := c.credit(int64(n)), st.credit(int64(n))
	c.mu.Unlock()
	c.allow(0, credit)
	c.allow(st.id, own)
	return n, err
}

// Close implements io.Closer. What was not read is discarded when the handler returns.
func (b *body) Close() error { return nil }

// schedule updates the earliest deadline of all streams. The caller holds mu.
func (c *conn) schedule() {
	earliest := int64(0)
	for _, st := range c.streams {
		for _, by := range []int64{st.readBy, st.writeBy} {
			if by != 0 && st.err == nil && (earliest == 0 || by < earliest) {
				earliest = by
			}
		}
	}
	c.deadline.Store(earliest)
}

// expire enforces deadlines that have passed: a body that is not complete cannot be read any further, and a response that is not
// complete is cut off.
func (c *conn) expire(now int64) {
	var late []uint32
	unread := int64(0)
	c.mu.Lock()
	for _, st := range c.streams {
		if st.readBy != 0 && st.readBy <= now {
			st.readBy = 0
			if st.bodyErr == nil {
				st.bodyErr = os.ErrDeadlineExceeded
			}
		}
		if st.writeBy != 0 && st.writeBy <= now {
			st.writeBy = 0
			if st.err == nil && !st.sentEnd {
				unread += st.fail(os.ErrDeadlineExceeded)
				late = append(late, st.id)
			}
		}
	}
	c.schedule()
	c.signal()
	credit := c.credit(unread)
	c.mu.Unlock()
	c.allow(0, credit)
	for _, id := range late {
		c.reset(id, http2.ErrCodeInternal)
	}
}

// setDeadline changes a deadline of the stream. The zero time means none.
func (st *stream) setDeadline(which *int64, t time.Time) {
	c := st.conn
	by := int64(0)
	if !t.IsZero() {
		by = c.server.at(t)
	}
	c.mu.Lock()
	*which = by
	c.schedule()
	c.mu.Unlock()
	if now := c.server.now(); by != 0 && by <= now {
		c.spawn(func() { c.expire(now) })
	}
}
