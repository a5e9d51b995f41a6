package h2_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/fairlead-mesh/fairlead/internal/h2"
)

const (
	maxRequests = 8
	uploadBytes = 64 << 10
	headerBytes = 16 << 10
)

func config(handler http.HandlerFunc) h2.Config {
	return h2.Config{
		Handler: handler, Log: slog.New(slog.DiscardHandler), MaxRequests: maxRequests, HeaderBytes: headerBytes, UploadBytes: uploadBytes,
		PrefaceTimeout: 10 * time.Second, RequestTimeout: 15 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute,
		Silence: func(int) time.Duration { return 30 * time.Second }, PingTimeout: 5 * time.Second,
	}
}

// link is one connection and both ends of it.
type link struct {
	t      testing.TB
	client net.Conn
	ended  chan struct{} // closed when Serve has returned
}

// serve serves one end of a connection until the test ends.
func serve(t testing.TB, s *h2.Server, client, server net.Conn) *link {
	t.Helper()
	l := &link{t: t, client: client, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		s.Serve(context.Background(), server)
	}()
	t.Cleanup(func() {
		client.Close()
		<-l.ended
	})
	return l
}

// tcp returns both ends of a TCP connection.
func tcp(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// open serves a TCP connection and returns a client of the standard implementation on it.
func open(t testing.TB, c h2.Config) (*http2.ClientConn, *link) {
	t.Helper()
	client, server := tcp(t)
	l := serve(t, h2.New(c), client, server)
	return l.standard(), l
}

func (l *link) standard() *http2.ClientConn {
	l.t.Helper()
	cc, err := (&http2.Transport{AllowHTTP: true, DisableCompression: true}).NewClientConn(l.client)
	if err != nil {
		l.t.Fatal(err)
	}
	return cc
}

// reply is a response whose body has been read.
type reply struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
}

// ask sends a request and returns the response with its body.
func ask(t testing.TB, cc *http2.ClientConn, method, path string, body io.Reader) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := cc.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, res.ContentLength}, string(text)
}

// raw is a client that sends whatever frames it likes. Frames from the server are collected as they arrive.
type raw struct {
	*http2.Framer
	t      testing.TB
	blocks bytes.Buffer
	hpack  *hpack.Encoder

	frames chan heard
	closed chan struct{} // closed when the server has closed the connection
}

// heard is a frame from the server.
type heard struct {
	kind   http2.FrameType
	stream uint32
	code   http2.ErrCode // of GOAWAY and RST_STREAM
	ack    bool
	end    bool
	size   int
	status string
}

func newRaw(t testing.TB, conn net.Conn) *raw {
	t.Helper()
	c := &raw{t: t, Framer: http2.NewFramer(conn, conn), frames: make(chan heard, 10_000), closed: make(chan struct{})}
	c.hpack = hpack.NewEncoder(&c.blocks)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	go c.listen()
	return c
}

// hello sends the preface and settings.
func (c *raw) hello(conn io.Writer, settings ...http2.Setting) {
	c.t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		c.t.Fatal(err)
	}
	if err := c.WriteSettings(settings...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *raw) listen() {
	defer close(c.closed)
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		h := heard{kind: f.Header().Type, stream: f.Header().StreamID}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			h.code = f.ErrCode
		case *http2.RSTStreamFrame:
			h.code = f.ErrCode
		case *http2.SettingsFrame:
			h.ack = f.IsAck()
		case *http2.PingFrame:
			h.ack = f.IsAck()
		case *http2.DataFrame:
			h.end, h.size = f.StreamEnded(), len(f.Data())
		case *http2.MetaHeadersFrame:
			h.end, h.status = f.StreamEnded(), f.PseudoValue("status")
		}
		c.frames <- h
	}
}

// await returns the next frame of a kind. It fails the test if the connection is closed first.
func (c *raw) await(match func(heard) bool) heard {
	c.t.Helper()
	for {
		select {
		case h := <-c.frames:
			if match(h) {
				return h
			}
		case <-c.closed:
			for {
				select {
				case h := <-c.frames:
					if match(h) {
						return h
					}
					continue
				default:
				}
				c.t.Error("the connection was closed without the expected frame")
				return heard{}
			}
		}
	}
}

func is(kind http2.FrameType) func(heard) bool { return func(h heard) bool { return h.kind == kind } }

// block encodes header fields: those of a POST, with changes. An empty value removes a field.
func (c *raw) block(changes ...string) []byte {
	c.blocks.Reset()
	fields := [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "server"}}
	for i := 0; i < len(changes); i += 2 {
		known := false
		for j := range fields {
			if fields[j][0] == changes[i] {
				fields[j][1], known = changes[i+1], true
			}
		}
		if !known {
			fields = append(fields, [2]string{changes[i], changes[i+1]})
		}
	}
	for _, f := range fields {
		if f[1] != "" {
			_ = c.hpack.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
	}
	return bytes.Clone(c.blocks.Bytes())
}

// headers starts a request.
func (c *raw) headers(id uint32, end bool, changes ...string) {
	// A server that has closed the connection is noticed when its frames are read.
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(changes...), EndHeaders: true, EndStream: end})
}

// trailers ends a body with header fields.
func (c *raw) trailers(id uint32) {
	block := c.block(":method", "", ":scheme", "", ":path", "", ":authority", "", "x", "y")
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: true})
}

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte // guarded by mu
}

func (c *counted) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes = append(c.writes, bytes.Clone(b))
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.writes)
}
