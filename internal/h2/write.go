package h2

import "golang.org/x/net/http2"

// pendingBytes limits the control frames that wait while a client does not read. A client that needs more does not read, but keeps
// sending what needs a response.
const pendingBytes = 64 << 10

func newBuffer() any {
	b := make([]byte, 0, 512)
	return &b
}

// keptBytes is the size of a buffer up to which it is reused: a frame with its head, and some control frames.
const keptBytes = frameBytes + 4<<10

func (s *Server) release(buf *[]byte, b []byte) {
	if cap(b) <= keptBytes {
		*buf = b[:0]
		s.buffers.Put(buf)
	}
}

// control sends a control frame, or leaves it to the goroutine that is writing. It waits only if the client does not read.
func (c *conn) control(frame func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.pending = frame(c.pending)
	switch {
	case len(c.pending) > pendingBytes:
		c.failLocked(errFlooded)
		c.mu.Unlock()
		_ = c.net.Close() // ends the reader
		c.mu.Lock()
	case !c.writing:
		c.writing = true
		c.flush()
	}
}

// flush writes the pending control frames and lets others write. The caller holds mu, and the right to write.
func (c *conn) flush() {
	for len(c.pending) > 0 && c.err == nil {
		out := c.pending
		c.pending = nil
		c.put(out)
	}
	c.writing = false
	c.signal()
}

// yield lets others write after a handler did. Control frames that wait are left to a goroutine of their own, or a client that sends
// ever more of what needs a response could keep the handler for ever. The caller holds mu, and the right to write.
func (c *conn) yield() {
	if len(c.pending) == 0 || c.err != nil || c.over {
		c.flush()
		return
	}
	c.running.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flush()
	})
}

// appendDuePing appends a ping that would soon have to be sent by itself, which would take a system call of its own.
func (c *conn) appendDuePing(b []byte) []byte {
	now, read := c.server.now(), c.lastRead.Load()
	if c.pinged.Load() > read || now-read < c.server.silence.Load()*2/3 {
		return b
	}
	c.pinged.Store(now)
	return appendPing(b, 0, pingData())
}

// put writes to the connection, without mu. The caller holds mu, and the right to write.
func (c *conn) put(b []byte) {
	c.mu.Unlock()
	c.writeSince.Store(c.server.now())
	_, err := c.net.Write(b)
	c.writeSince.Store(0)
	if err != nil {
		_ = c.net.Close() // ends the reader; it may be closed already
	}
	c.mu.Lock()
	if err != nil {
		c.failLocked(err)
	}
}

// send sends a part of a response: the block of header fields, unless it is nil, and data. It waits until the client accepts it.
func (c *conn) send(st *stream, block, data []byte, end bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for first := true; first || len(data) > 0; first = false {
		for st.err == nil && (c.writing || block == nil && len(data) > 0 && min(c.window, st.window) <= 0) {
			c.wait()
		}
		if st.err != nil {
			return st.err
		}
		n := max(0, min(len(data), frameBytes, int(min(c.window, st.window))))
		c.window -= int64(n)
		st.window -= int64(n)
		last := end && n == len(data)
		st.sentEnd = st.sentEnd || last
		buf := c.server.buffers.Get().(*[]byte)
		b := c.appendDuePing(append((*buf)[:0], c.pending...))
		c.pending = nil
		if block != nil {
			b = appendHeaders(b, st.id, block, last && n == 0)
		}
		if n > 0 || last && block == nil {
			flags := http2.Flags(0)
			if last {
				flags = http2.FlagDataEndStream
			}
			b = append(appendHead(b, n, http2.FrameData, flags, st.id), data[:n]...)
		}
		block, data = nil, data[n:]
		c.writing = true
		c.put(b)
		c.server.release(buf, b)
		c.yield()
	}
	return st.err
}
