package h2_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/fairlead-mesh/fairlead/internal/h2"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// What one client sends must not change how the server parses what another one sends.
func TestBrokenHeaderOfOneClientDoesNotBreakAnother(t *testing.T) {
	s := h2.New(config(hang))
	client, server := tcp(t)
	serve(t, s, client, server)
	good := newRaw(t, client)
	good.hello(client)
	for range 100 {
		client, server := tcp(t)
		l := serve(t, s, client, server)
		bad := newRaw(t, client)
		bad.hello(client)
		// A header that goes on in another frame, and whose padding is longer than the frame.
		_ = bad.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded, 1, []byte{200})
		if got := bad.await(func(h heard) bool { return h.kind == http2.FrameGoAway || h.kind == http2.FrameRSTStream }); got.code != http2.ErrCodeProtocol {
			t.Fatal(got)
		}
		client.Close()
		<-l.ended
		_ = good.WritePing(false, [8]byte{})
		if h := good.await(func(h heard) bool { return h.kind == http2.FramePing && h.ack }); h.kind != http2.FramePing {
			t.Fatal("another client was disconnected")
		}
	}
}

// A client that breaks the protocol and does not read what it is told must not keep its connection.
func TestClientThatDoesNotReadWhyItIsClosedIsClosed(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		client, server := net.Pipe()
		l := serve(t, h2.New(config(hang)), client, server)
		f := http2.NewFramer(client, client)
		read := func(kind http2.FrameType) {
			t.Helper()
			if got, err := f.ReadFrame(); err != nil || got.Header().Type != kind {
				t.Fatal(got, err)
			}
		}
		read(http2.FrameSettings)
		_, _ = io.WriteString(client, http2.ClientPreface)
		_ = f.WriteSettings()
		read(http2.FrameSettings)
		_ = f.WriteData(1, true, nil) // on an idle stream
		select {
		case <-l.ended:
		case <-time.After(time.Minute):
			t.Error("the connection is still open after a minute")
		}
	})
}

// However a request ends, the client may send as much as before, or requests on the same connection stall for ever.
func TestBodiesThatAreNotReadDoNotUseUpTheWindow(t *testing.T) {
	const size = 10_000
	for name, end := range map[string]func(c *raw, id uint32){
		"reset by the client": func(c *raw, id uint32) { _ = c.WriteRSTStream(id, http2.ErrCodeCancel) },
		"too much":            func(c *raw, id uint32) { _ = c.WriteData(id, true, make([]byte, 10)) },
		"window of zero":      func(c *raw, id uint32) { _ = c.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 4)) },
		"panic":               func(*raw, uint32) {},
		"complete and panic":  func(c *raw, id uint32) { _ = c.WriteData(id, true, nil) },
		"deadline":            func(*raw, uint32) {},
		"not read":            func(*raw, uint32) {},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := tcp(t)
			arrived := make(chan struct{})
			serve(t, h2.New(config(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					_, _ = io.Copy(w, r.Body)
					return
				}
				_, _ = io.ReadFull(r.Body, make([]byte, 1)) // the rest has arrived too
				select {
				case <-arrived:
				case <-t.Context().Done():
				}
				switch name {
				case "panic", "complete and panic":
					panic(http.ErrAbortHandler)
				case "not read":
					return
				case "deadline":
					_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
				}
				<-r.Context().Done()
			})), client, server)
			c := newRaw(t, client)
			c.hello(client)
			id := uint32(1)
			for range 10 {
				c.headers(id, false, ":path", "/unread", "content-length", "10000")
				_ = c.WriteData(id, false, make([]byte, size))
				end(c, id)
				_ = c.WritePing(false, [8]byte{}) // everything before it has been handled
				c.await(func(h heard) bool { return h.kind == http2.FramePing && h.ack })
				select {
				case arrived <- struct{}{}:
				case <-c.closed:
					t.Fatal("the connection was closed")
				}
				id += 2
				c.headers(id, true)
				c.await(func(h heard) bool { return h.stream == id && h.end })
				id += 2
			}
			_ = c.WritePing(false, [8]byte{1})
			c.await(func(h heard) bool { return h.kind == http2.FramePing && h.ack })
			c.headers(id, false)
			_ = c.WriteData(id, false, make([]byte, 16_000))
			_ = c.WriteData(id, true, make([]byte, 16_000))
			if h := c.await(func(h heard) bool { return h.stream == id && h.end || h.kind == http2.FrameGoAway }); h.kind == http2.FrameGoAway {
				t.Error("the window is used up")
			}
		})
	}
}

// A body that is late is not read, but the handler can still say so while the client sends the rest of it.
func TestRestOfALateBodyDoesNotEndTheResponse(t *testing.T) {
	for name, rest := range map[string]func(c *raw){
		"data":     func(c *raw) { _ = c.WriteData(1, true, []byte("rest")) },
		"trailers": func(c *raw) { c.trailers(1) },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := tcp(t)
			late, sent := make(chan struct{}), make(chan struct{})
			serve(t, h2.New(config(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
				_, err := io.ReadAll(r.Body)
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				close(late)
				<-sent
				if _, err = r.Body.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				http.Error(w, "late", http.StatusRequestTimeout)
			})), client, server)
			c := newRaw(t, client)
			c.hello(client)
			c.headers(1, false)
			<-late
			_ = c.WriteData(1, false, []byte("some"))
			rest(c)
			_ = c.WritePing(false, [8]byte{}) // everything before it has been handled
			c.await(func(h heard) bool { return h.kind == http2.FramePing && h.ack })
			close(sent)
			if h := c.await(func(h heard) bool { return h.stream == 1 }); h.status != "408" {
				t.Error(h)
			}
		})
	}
}

// A body is incomplete for whoever reads it after the handler has returned.
func TestBodyIsClosedWhenTheHandlerReturns(t *testing.T) {
	bodies := make(chan io.Reader, 1)
	cc, l := open(t, config(func(_ http.ResponseWriter, r *http.Request) { bodies <- r.Body }))
	ask(t, cc, "POST", "/", strings.NewReader("text"))
	l.client.Close()
	<-l.ended
	if n, err := (<-bodies).Read(make([]byte, 10)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Error(n, err)
	}
}

// A client may start a request as soon as it has the response to another, however many it has.
func TestClientWithinItsLimitIsNotRefused(t *testing.T) {
	client, server := tcp(t)
	serve(t, h2.New(config(hang)), client, server)
	c := newRaw(t, client)
	c.hello(client)
	id := uint32(1)
	for ; id < 2*maxRequests; id += 2 {
		c.headers(id, true)
	}
	for range 5000 {
		if h := c.await(func(h heard) bool { return h.end || h.kind == http2.FrameRSTStream }); h.kind == http2.FrameRSTStream {
			t.Fatal(h)
		}
		c.headers(id, true)
		id += 2
	}
}

// Padding alone must not use up the window of a body.
func TestPaddingIsCredited(t *testing.T) {
	client, server := tcp(t)
	serve(t, h2.New(config(hang)), client, server)
	c := newRaw(t, client)
	c.hello(client)
	c.headers(1, false)
	for range 1000 { // four windows
		_ = c.WriteDataPadded(1, false, nil, make([]byte, 250))
	}
	_ = c.WriteData(1, true, nil)
	if h := c.await(func(h heard) bool { return h.end || h.kind == http2.FrameRSTStream || h.kind == http2.FrameGoAway }); !h.end {
		t.Error(h)
	}
}

// A client that accepts only a smaller table for headers must be told that none is used.
func TestHeadersFitClientsWithoutATable(t *testing.T) {
	client, server := tcp(t)
	serve(t, h2.New(config(hang)), client, server)
	f := http2.NewFramer(client, client)
	_, _ = io.WriteString(client, http2.ClientPreface)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "server"}} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	for _, id := range []uint32{1, 3} {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if h, ok := frame.(*http2.HeadersFrame); ok {
				if got := h.HeaderBlockFragment()[0]; id == 1 && got != 0x20 {
					t.Errorf("the first header begins with %x", got)
				}
				break
			}
		}
	}
}

// echoing is the server's end of a connection. While it is armed, every write makes the client send another ping, which the server has
// read before the write returns.
type echoing struct {
	net.Conn // for its deadlines
	mu       sync.Mutex
	changed  sync.Cond
	sent     []byte // by the client, and not read
	reading  bool   // whether the server has read everything
	armed    bool
	closed   bool
}

func (c *echoing) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.sent) == 0 && !c.closed {
		c.reading = true
		c.changed.Broadcast()
		c.changed.Wait()
	}
	if c.closed {
		return 0, io.EOF
	}
	n := copy(b, c.sent)
	c.sent = c.sent[n:]
	return n, nil
}

func (c *echoing) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed {
		c.sent, c.reading = append(c.sent, "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"...), false
		c.changed.Broadcast()
	}
	for c.armed && !c.reading && !c.closed {
		c.changed.Wait()
	}
	return len(b), nil
}

func (c *echoing) set(what *bool, value bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what = value
	c.changed.Broadcast()
}

func (c *echoing) Close() error {
	c.set(&c.closed, true)
	return nil
}

// A client that sends pings all the time must not keep a handler busy with responses to them.
func TestPingsDoNotKeepAHandler(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	c := &raw{Framer: http2.NewFramer(&sent, nil)}
	c.hpack = hpack.NewEncoder(&c.blocks)
	_ = c.WriteSettings()
	c.headers(1, true)
	client, server := net.Pipe()
	conn := &echoing{Conn: server, sent: sent.Bytes()}
	conn.changed.L = &conn.mu
	flushed := make(chan struct{})
	l := serve(t, h2.New(config(func(w http.ResponseWriter, _ *http.Request) {
		conn.set(&conn.armed, true)
		w.(http.Flusher).Flush()
		close(flushed)
	})), client, conn)
	select {
	case <-flushed:
	case <-time.After(10 * time.Second):
		t.Error("the handler still writes")
	}
	conn.set(&conn.armed, false)
	conn.Close()
	<-l.ended
}
