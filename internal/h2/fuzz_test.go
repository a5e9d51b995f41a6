package h2_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/fairlead-mesh/fairlead/internal/h2"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// What the client does after it has sent everything.
const (
	leaves    = iota // it closes the connection
	keepsOpen        // it says nothing more, but reads
	doesNotRead
	behaviours
)

// packed is a frame for FuzzFrames: its kind, flags, stream and size, and so much of a payload.
func packed(kind http2.FrameType, flags http2.Flags, stream byte, payload string) []byte {
	return append([]byte{byte(kind), byte(flags), stream, byte(len(payload))}, payload...)
}

// unpack turns any input into frames, most of which have a size and a stream that make sense.
func unpack(in []byte) []byte {
	var out bytes.Buffer
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	const literal, unit = 200, 300 // larger sizes are a number of units of zeros
	for len(in) >= 4 && out.Len() < 1<<20 {
		kind, flags, stream, size := http2.FrameType(in[0]), http2.Flags(in[1]), uint32(in[2]), int(in[3])
		in = in[4:]
		var payload []byte
		if size > literal {
			payload = make([]byte, (size-literal)*unit)
		} else {
			size = min(size, len(in))
			payload, in = in[:size], in[size:]
		}
		_ = f.WriteRawFrame(kind, flags, stream, payload)
	}
	out.Write(in)
	return out.Bytes()
}

// FuzzFrames: whatever a client sends, its connection ends when it should, together with everything that was started for it, and other
// clients of the server are served. A bubble ends only when all its goroutines have ended.
func FuzzFrames(f *testing.F) {
	var text bytes.Buffer
	encoder := hpack.NewEncoder(&text)
	fields := func(pairs ...string) string {
		text.Reset()
		for i := 0; i < len(pairs); i += 2 {
			_ = encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
		}
		return text.String()
	}
	get := fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "server")
	post := fields(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "server", "content-length", "3")
	wait := fields(":method", "POST", ":scheme", "http", ":path", "/hang", ":authority", "server")
	large := fields(":method", "POST", ":scheme", "http", ":path", "/large", ":authority", "server")
	last := fields("x", "y")
	const whole, end = http2.FlagHeadersEndHeaders, http2.FlagHeadersEndStream
	for i, frames := range [][][]byte{
		{packed(http2.FrameHeaders, whole|end, 1, get), packed(http2.FramePing, 0, 0, "12345678"), packed(http2.FrameHeaders, whole|end, 3, get)},
		{packed(http2.FrameHeaders, whole, 1, post), packed(http2.FrameData, http2.FlagDataEndStream, 1, "abc")},
		{packed(http2.FrameHeaders, whole, 1, wait), packed(http2.FrameData, 0, 1, "abc"), packed(http2.FrameHeaders, whole|end, 1, last)},
		{packed(http2.FrameHeaders, whole, 1, wait), {byte(http2.FrameData), 0, 1, 250}, packed(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x08")},
		{packed(http2.FrameHeaders, whole|end, 1, large), packed(http2.FrameWindowUpdate, 0, 1, "\x00\x01\x00\x00"), packed(http2.FrameWindowUpdate, 0, 0, "\x00\x01\x00\x00")},
		{packed(http2.FrameHeaders, whole|end, 1, large), packed(http2.FrameSettings, 0, 0, "\x00\x04\x00\x00\x00\x00"), packed(http2.FrameSettings, http2.FlagSettingsAck, 0, "")},
		{packed(http2.FrameHeaders, end, 1, get[:2]), packed(http2.FrameContinuation, whole, 1, get[2:])},
		{packed(http2.FrameHeaders, http2.FlagHeadersPadded, 1, "\xc8"), packed(http2.FrameWindowUpdate, 0, 1, "\x00\x00\x00\x00")},
		{packed(http2.FrameHeaders, whole, 1, wait), packed(http2.FrameWindowUpdate, 0, 1, "\x00\x00\x00\x00"), packed(http2.FrameData, http2.FlagDataPadded, 1, "\x02abc\x00\x00")},
		{packed(http2.FramePriority, 0, 1, "\x00\x00\x00\x01\x00"), packed(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"), packed(http2.FramePushPromise, whole, 1, get)},
	} {
		for behaviour := range byte(behaviours) {
			if i < 6 || behaviour == doesNotRead {
				f.Add(behaviour, bytes.Join(frames, nil))
			}
		}
	}
	f.Fuzz(func(t *testing.T, behaviour byte, in []byte) {
		if len(in) > 16<<10 {
			return
		}
		waittest.Bubble(t, func(t *testing.T) { attack(t, behaviour%behaviours, unpack(in)) })
	})
}

func attack(t *testing.T, behaviour byte, sent []byte) {
	c := config(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, 100<<10))
			return
		}
		hang(w, r)
	})
	var faults bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&faults, &slog.HandlerOptions{Level: slog.LevelError}))
	s := h2.New(c)
	begin := func() (net.Conn, <-chan struct{}) {
		client, server := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Serve(context.Background(), server)
		}()
		_ = client.SetDeadline(time.Now().Add(time.Minute))
		return client, ended
	}
	client, ended := begin()
	defer client.Close()
	if behaviour == doesNotRead { // any more than the settings and their acknowledgement
		go func() { _, _ = io.CopyN(io.Discard, client, 9+4*6+9) }()
	} else {
		go func() { _, _ = io.Copy(io.Discard, client) }()
	}
	_, _ = io.WriteString(client, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	_, _ = client.Write(sent) // the server may have closed the connection
	if behaviour == leaves {
		client.Close()
	}
	began := time.Now()
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("the connection does not end\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("the connection ended %v after the last frame", took)
	}

	other, ended := begin()
	raw := newRaw(t, other)
	raw.hello(other)
	raw.headers(1, true)
	if h := raw.await(func(h heard) bool { return h.stream == 1 }); h.status != "200" {
		t.Errorf("another client: %+v", h)
	}
	other.Close()
	<-ended
	<-raw.closed
	if faults.Len() > 0 {
		t.Error(faults.String())
	}
}
