package h2_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/fairlead-mesh/fairlead/internal/h2"
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
	synctest.Test(t, func(t *testing.T) {
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
