package h2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/fairlead-mesh/fairlead/internal/h2"
)

// answer is how a server must react to what a client sends.
type answer struct {
	kind http2.FrameType
	code http2.ErrCode
}

var (
	breaks = func(code http2.ErrCode) answer { return answer{http2.FrameGoAway, code} }
	resets = func(code http2.ErrCode) answer { return answer{http2.FrameRSTStream, code} }
	serves = answer{http2.FrameHeaders, 0}
)

// cases are what clients may not do, and some things that they may. The standard server reacts in the same way, unless other says
// how it does.
var cases = []struct {
	name  string
	send  func(c *raw)
	want  answer
	other answer
}{
	{name: "request", send: func(c *raw) { c.headers(1, true) }, want: serves},
	{name: "unknown frame", send: func(c *raw) { _ = c.WriteRawFrame(0x77, 0, 3, []byte("x")); c.headers(1, true) }, want: serves},
	{name: "unknown setting", send: func(c *raw) { _ = c.WriteSettings(http2.Setting{ID: 0x99, Val: 1}); c.headers(1, true) }, want: serves},
	{name: "padding", send: func(c *raw) {
		c.headers(1, false, "content-length", "3")
		_ = c.WriteDataPadded(1, true, []byte("abc"), make([]byte, 200))
	}, want: serves},
	{name: "trailers", send: func(c *raw) {
		c.headers(1, false)
		_ = c.WriteData(1, false, []byte("abc"))
		c.trailers(1)
	}, want: serves},
	{name: "header in many frames", send: func(c *raw) {
		block := c.block("x-long", strings.Repeat("x", 300))
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:10], EndStream: true})
		for i := 10; i < len(block); i++ {
			_ = c.WriteContinuation(1, i == len(block)-1, block[i:i+1])
		}
	}, want: serves},
	{name: "priority", send: func(c *raw) { _ = c.WritePriority(1, http2.PriorityParam{StreamDep: 0, Weight: 1}); c.headers(1, true) }, want: serves},

	{name: "even stream", send: func(c *raw) { c.headers(2, true) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "older stream", send: func(c *raw) { c.headers(5, true); c.await(is(http2.FrameHeaders)); c.headers(3, true) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "data on an idle stream", send: func(c *raw) { _ = c.WriteData(1, true, []byte("x")) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "reset of an idle stream", send: func(c *raw) { _ = c.WriteRSTStream(1, http2.ErrCodeCancel) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "window of an idle stream", send: func(c *raw) { _ = c.WriteWindowUpdate(1, 1) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "push", send: func(c *raw) {
		_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: c.block(), EndHeaders: true})
	}, want: breaks(http2.ErrCodeProtocol)},
	{name: "ping on a stream", send: func(c *raw) { _ = c.WriteRawFrame(http2.FramePing, 0, 1, make([]byte, 8)) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "short ping", send: func(c *raw) { _ = c.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 7)) }, want: breaks(http2.ErrCodeFrameSize)},
	{name: "settings on a stream", send: func(c *raw) { _ = c.WriteRawFrame(http2.FrameSettings, 0, 1, nil) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "acknowledgement of nothing", send: func(c *raw) { _ = c.WriteSettingsAck(); _ = c.WriteSettingsAck() }, want: breaks(http2.ErrCodeProtocol)},
	{name: "window of zero of an idle stream", send: func(c *raw) { _ = c.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4)) }, want: breaks(http2.ErrCodeProtocol), other: resets(http2.ErrCodeProtocol)},
	{name: "window of zero of the connection", send: func(c *raw) { _ = c.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "too much padding of a header", send: func(c *raw) {
		_ = c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, []byte{200})
	}, want: breaks(http2.ErrCodeProtocol), other: resets(http2.ErrCodeProtocol)},
	{name: "too much padding of data", send: func(c *raw) {
		c.headers(1, false, ":path", "/hang")
		_ = c.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{200})
	}, want: breaks(http2.ErrCodeProtocol)},
	{name: "window too large", send: func(c *raw) { _ = c.WriteWindowUpdate(0, 1<<31-1) }, want: breaks(http2.ErrCodeFlowControl)},
	{name: "initial window too large", send: func(c *raw) { _ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }, want: breaks(http2.ErrCodeFlowControl)},
	{name: "invalid frame size", send: func(c *raw) { _ = c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "repeated setting", send: func(c *raw) {
		s := http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000}
		_ = c.WriteSettings(s, s)
	}, want: breaks(http2.ErrCodeProtocol)},
	{name: "frame too large", send: func(c *raw) { _ = c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 17<<10)) }, want: breaks(http2.ErrCodeFrameSize)},
	{name: "interrupted header", send: func(c *raw) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block()[:3]})
		_ = c.WritePing(false, [8]byte{})
	}, want: breaks(http2.ErrCodeProtocol)},
	{name: "continuation of nothing", send: func(c *raw) { _ = c.WriteContinuation(1, true, c.block()) }, want: breaks(http2.ErrCodeProtocol)},
	{name: "broken compression", send: func(c *raw) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
	}, want: breaks(http2.ErrCodeCompression)},
	{name: "endless header", send: func(c *raw) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block()})
		for range 200 {
			_ = c.WriteContinuation(1, false, c.block("x", strings.Repeat("x", 1000)))
		}
	}, want: breaks(http2.ErrCodeProtocol)},
	{name: "more than the connection's window", send: func(c *raw) {
		for id := uint32(1); id <= 11; id += 2 {
			c.headers(id, false, ":path", "/hang")
			_ = c.WriteData(id, false, make([]byte, 16<<10))
		}
	}, want: breaks(http2.ErrCodeFlowControl), other: resets(http2.ErrCodeFlowControl)},

	{name: "more than declared", send: func(c *raw) {
		c.headers(1, false, "content-length", "1", ":path", "/hang")
		_ = c.WriteData(1, true, []byte("abc"))
	}, want: resets(http2.ErrCodeProtocol)},
	{name: "stream window too large", send: func(c *raw) { c.headers(1, false, ":path", "/hang"); _ = c.WriteWindowUpdate(1, 1<<31-1) }, want: resets(http2.ErrCodeFlowControl)},
	{name: "dependency on itself", send: func(c *raw) { _ = c.WritePriority(1, http2.PriorityParam{StreamDep: 1}) }, want: resets(http2.ErrCodeProtocol)},
	{name: "header that depends on itself", send: func(c *raw) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(), EndHeaders: true, EndStream: true, Priority: http2.PriorityParam{StreamDep: 1, Weight: 1}})
	}, want: resets(http2.ErrCodeProtocol)},
	{name: "request after a dependency on itself", send: func(c *raw) {
		_ = c.WritePriority(1, http2.PriorityParam{StreamDep: 1})
		c.await(is(http2.FrameRSTStream))
		c.headers(1, true)
	}, want: serves},
	{name: "protocol without connect", send: func(c *raw) { c.headers(1, true, ":protocol", "websocket") }, want: resets(http2.ErrCodeProtocol)},
	{name: "repeated pseudo field", send: func(c *raw) {
		block := append(c.block(":scheme", "", ":path", "", ":authority", ""), c.block()...)
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true, EndStream: true})
	}, want: resets(http2.ErrCodeProtocol)},
	{name: "window of zero", send: func(c *raw) {
		c.headers(1, false, ":path", "/hang")
		_ = c.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4))
	}, want: resets(http2.ErrCodeProtocol)},
	{name: "no method", send: func(c *raw) { c.headers(1, true, ":method", "") }, want: resets(http2.ErrCodeProtocol)},
	{name: "no path", send: func(c *raw) { c.headers(1, true, ":path", "") }, want: resets(http2.ErrCodeProtocol)},
	{name: "no scheme", send: func(c *raw) { c.headers(1, true, ":scheme", "") }, want: resets(http2.ErrCodeProtocol)},
	{name: "unknown scheme", send: func(c *raw) { c.headers(1, true, ":scheme", "ftp") }, want: resets(http2.ErrCodeProtocol)},
	{name: "unknown pseudo field", send: func(c *raw) { c.headers(1, true, ":x", "y") }, want: resets(http2.ErrCodeProtocol)},
	{name: "field in capitals", send: func(c *raw) { c.headers(1, true, "X-Large", "y") }, want: resets(http2.ErrCodeProtocol)},
	{name: "line break in a field", send: func(c *raw) { c.headers(1, true, "x", "a\r\nb") }, want: resets(http2.ErrCodeProtocol)},
	{name: "connection field", send: func(c *raw) { c.headers(1, true, "connection", "close") }, want: resets(http2.ErrCodeProtocol), other: serves},
	{name: "encoding of the transfer", send: func(c *raw) { c.headers(1, true, "transfer-encoding", "chunked") }, want: resets(http2.ErrCodeProtocol), other: serves},
	{name: "data after the end", send: func(c *raw) { c.headers(1, true, ":path", "/hang"); _ = c.WriteData(1, true, []byte("x")) }, want: resets(http2.ErrCodeStreamClosed)},
	{name: "data after the response", send: func(c *raw) {
		c.headers(1, true)
		c.await(func(h heard) bool { return h.end })
		_ = c.WriteData(1, true, []byte("x"))
	}, want: resets(http2.ErrCodeStreamClosed)},
	{name: "pseudo field in trailers", send: func(c *raw) { c.headers(1, false, ":path", "/hang"); c.headers(1, true) }, want: resets(http2.ErrCodeProtocol)},
	{name: "trailers without an end", send: func(c *raw) {
		c.headers(1, false, ":path", "/hang")
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(":method", "", ":scheme", "", ":path", "", ":authority", "", "x", "y"), EndHeaders: true})
	}, want: resets(http2.ErrCodeProtocol)},
	{name: "too many requests", send: func(c *raw) {
		for id := uint32(1); id <= 2*maxRequests+1; id += 2 {
			c.headers(id, true, ":path", "/hang")
		}
	}, want: resets(http2.ErrCodeRefusedStream)},
}

// hang answers requests after their body, or never.
func hang(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hang" {
		<-r.Context().Done()
		return
	}
	_, _ = io.Copy(w, r.Body)
}

func TestClientsThatBreakTheProtocolAreTold(t *testing.T) {
	standard := func(conn net.Conn) {
		s := &http2.Server{MaxConcurrentStreams: maxRequests, MaxReadFrameSize: 16 << 10, MaxUploadBufferPerConnection: uploadBytes, MaxUploadBufferPerStream: uploadBytes}
		s.ServeConn(conn, &http2.ServeConnOpts{
			Handler: http.HandlerFunc(hang), BaseConfig: &http.Server{MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}, Context: context.Background(),
		})
	}
	ours := func(conn net.Conn) { h2.New(config(hang)).Serve(context.Background(), conn) }
	for _, test := range cases {
		for name, serve := range map[string]func(net.Conn){"ours": ours, "standard": standard} {
			want := test.want
			if name == "standard" && test.other != (answer{}) {
				want = test.other
			}
			t.Run(test.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				client, server := tcp(t)
				defer client.Close()
				go serve(server) // ends with the connection
				c := newRaw(t, client)
				c.hello(client)
				test.send(c)
				got := c.await(func(h heard) bool {
					return h.kind == http2.FrameGoAway || h.kind == http2.FrameRSTStream || h.kind == http2.FrameHeaders && want.kind == http2.FrameHeaders
				})
				if got.kind != want.kind || got.code != want.code {
					t.Errorf("%v %v, want %v %v", got.kind, got.code, want.kind, want.code)
				}
				if want.kind != http2.FrameGoAway { // the connection goes on
					c.headers(99, true)
					if want.code != http2.ErrCodeRefusedStream {
						c.await(func(h heard) bool { return h.kind == http2.FrameHeaders && h.stream == 99 })
					}
				}
			})
		}
	}
}

func TestFirstFrameMustBeSettings(t *testing.T) {
	client, server := tcp(t)
	serve(t, h2.New(config(hang)), client, server)
	c := newRaw(t, client)
	_, _ = io.WriteString(client, http2.ClientPreface)
	c.headers(1, true)
	if got := c.await(is(http2.FrameGoAway)); got.code != http2.ErrCodeProtocol {
		t.Error(got)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: server\r\n\r\n", strings.Repeat("\x00", 100)} {
		client, server = tcp(t)
		l := serve(t, h2.New(config(hang)), client, server)
		_, _ = io.WriteString(client, text)
		<-l.ended
	}
}

func TestBodiesAndResponsesOfAnySizeArrive(t *testing.T) {
	cc, _ := open(t, config(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		w.Header().Set("Connection", "close")
		_, _ = io.Copy(w, r.Body)
	}))
	for _, size := range []int{0, 1, 511, 4096, 4097, 16384, 16385, 65535, 65536, 5 << 20} {
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for _, reader := range []io.Reader{bytes.NewReader(body), io.MultiReader(bytes.NewReader(body))} {
			res, text := ask(t, cc, "POST", "/?a=b", reader)
			if text != string(body) || res.StatusCode != 200 {
				t.Errorf("%d bytes: %d bytes, status %d", size, len(text), res.StatusCode)
			}
			if _, known := reader.(*bytes.Reader); known && res.Header.Get("X-Length") != fmt.Sprint(size) || res.Header.Get("Connection") != "" {
				t.Errorf("%d bytes: %v", size, res.Header)
			}
		}
	}
}

func TestResponsesAreWhatHandlersWrite(t *testing.T) {
	cc, _ := open(t, config(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Error(err)
			}
		case "/late":
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("Late", "yes")
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, "<html>")
		case "/long":
			w.Header().Set("Long", strings.Repeat("x", 40_000))
			w.Header()["Two"] = []string{"a", "b"}
		default:
			if r.Host != "server" || r.Header.Get("Host") != "" || r.Proto != "HTTP/2.0" || r.RemoteAddr == "" {
				t.Errorf("%+v", r)
			}
			_, _ = io.WriteString(w, r.Method)
		}
	}))
	res, text := ask(t, cc, "GET", "/", nil)
	if text != "GET" || res.ContentLength != 3 || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" || res.Header.Get("Date") == "" {
		t.Errorf("%q %v", text, res.Header)
	}
	if res, text = ask(t, cc, "HEAD", "/", nil); text != "" || res.StatusCode != 200 {
		t.Errorf("%q %v", text, res)
	}
	if res, text = ask(t, cc, "GET", "/none", nil); text != "" || res.StatusCode != 204 {
		t.Errorf("%q %v", text, res)
	}
	if res, text = ask(t, cc, "GET", "/late", nil); text != "<html>" || res.StatusCode != 418 || res.Header.Get("Late") != "" || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%q %v", text, res)
	}
	if res, _ = ask(t, cc, "GET", "/long", nil); len(res.Header.Get("Long")) != 40_000 || len(res.Header.Values("Two")) != 2 {
		t.Errorf("%v", res.Header)
	}
}

func TestLargeHeaderIsAnswered(t *testing.T) {
	client, server := tcp(t)
	serve(t, h2.New(config(hang)), client, server)
	c := newRaw(t, client)
	c.hello(client)
	long := strings.Repeat("x", headerBytes/4)
	c.headers(1, true, "a", long, "b", long, "c", long, "d", long)
	if got := c.await(is(http2.FrameHeaders)); got.status != "431" {
		t.Error(got)
	}
	c.headers(3, true)
	if got := c.await(is(http2.FrameHeaders)); got.status != "200" {
		t.Error(got)
	}
}
