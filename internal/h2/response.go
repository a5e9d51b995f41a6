package h2

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// bufferedBytes is how much of a response is collected before it is sent without being flushed: as much as fits into a frame,
// because each frame takes a system call, which costs more than to copy the data.
const bufferedBytes = frameBytes

// response is the response to a request. Only the handler uses it, except for SetReadDeadline and SetWriteDeadline.
type response struct {
	stream *stream
	head   bool // the request wants no body
	header http.Header
	status int         // 0 until WriteHeader
	fixed  http.Header // the header as of WriteHeader; nil once it was sent
	buf    *[]byte     // what was written and not sent; nil if there is nothing
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < 200 { // there are no informational responses
		return
	}
	w.status, w.fixed = status, w.Header().Clone()
}

func (w *response) hasBody() bool {
	return !w.head && w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !w.hasBody() {
		if w.head {
			return len(p), nil
		}
		return 0, http.ErrBodyNotAllowed
	}
	n := len(p)
	for len(p) > 0 {
		if w.buffered() == 0 && len(p) >= bufferedBytes {
			whole := len(p) - len(p)%bufferedBytes
			if err := w.stream.conn.send(w.stream, w.block(p), p[:whole], false); err != nil {
				return 0, err
			}
			p = p[whole:]
			continue
		}
		if w.buf == nil {
			w.buf = w.stream.conn.server.buffers.Get().(*[]byte)
		}
		part := min(len(p), bufferedBytes-len(*w.buf))
		*w.buf = append(*w.buf, p[:part]...)
		p = p[part:]
		if len(*w.buf) == bufferedBytes {
			if err := w.send(false); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *response) buffered() int {
	if w.buf == nil {
		return 0
	}
	return len(*w.buf)
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() } // the next write fails too

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if w.fixed == nil && w.buffered() == 0 {
		return w.alive()
	}
	return w.send(false)
}

// alive returns why nothing more can be sent, if so.
func (w *response) alive() error {
	w.stream.conn.mu.Lock()
	defer w.stream.conn.mu.Unlock()
	return w.stream.err
}

// finish sends the rest of the response. If the client is gone, nobody needs it.
func (w *response) finish() {
	w.WriteHeader(http.StatusOK)
	if w.fixed != nil && w.hasBody() && w.fixed.Get("Content-Length") == "" {
		w.fixed.Set("Content-Length", strconv.Itoa(w.buffered()))
	}
	_ = w.send(true)
}

func (w *response) send(end bool) error {
	var data []byte
	if w.buf != nil {
		data = *w.buf
	}
	err := w.stream.conn.send(w.stream, w.block(data), data, end)
	if w.buf != nil {
		w.stream.conn.server.release(w.buf, data)
		w.buf = nil
	}
	return err
}

// encoder encodes header fields without a table, so that it is not bound to a connection.
type encoder struct {
	*hpack.Encoder
	out bytes.Buffer
}

func newEncoder() any {
	e := &encoder{}
	e.Encoder = hpack.NewEncoder(&e.out)
	e.SetMaxDynamicTableSize(0)
	_ = e.WriteField(hpack.HeaderField{}) // never fails; announces the size of the table, as block does
	return e
}

// emptyTable announces a table without fields. A client that accepts only a small table requires it in the next header, and any
// other allows it.
const emptyTable = 0x20

// block returns the encoded header, or nil if it was sent.
func (w *response) block(data []byte) []byte {
	if w.fixed == nil {
		return nil
	}
	h := w.fixed
	w.fixed = nil
	if _, set := h["Content-Type"]; !set && len(data) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(data))
	}
	if _, set := h["Date"]; !set {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	pool := &w.stream.conn.server.encoders
	e := pool.Get().(*encoder)
	defer pool.Put(e)
	e.out.Reset()
	_ = e.out.WriteByte(emptyTable) // writing to a buffer never fails
	field := func(name, value string) {
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value}) // writing to a buffer never fails
	}
	field(":status", fmt.Sprintf("%03d", w.status))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Connection", "Proxy-Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade":
			continue // they have no meaning in HTTP/2
		}
		for _, value := range h[name] {
			if httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) {
				field(strings.ToLower(name), value)
			}
		}
	}
	return bytes.Clone(e.out.Bytes())
}

// SetReadDeadline is what http.ResponseController calls.
func (w *response) SetReadDeadline(t time.Time) error {
	w.stream.setDeadline(&w.stream.readBy, t)
	return nil
}

// SetWriteDeadline is what http.ResponseController calls. A response that is not complete by then is cut off.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.stream.setDeadline(&w.stream.writeBy, t)
	return nil
}
