package h2_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/fairlead-mesh/fairlead/internal/h2"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// silently serves one end of a pipe to a raw client, in a bubble with its own clock. It passes on the errors of the handler.
func silently(t *testing.T, handler func(http.ResponseWriter, *http.Request) error, f func(t *testing.T, c *raw, l *link, failed <-chan error)) {
	t.Helper()
	waittest.Bubble(t, func(t *testing.T) {
		client, server := net.Pipe()
		failed := make(chan error, 10)
		l := serve(t, h2.New(config(func(w http.ResponseWriter, r *http.Request) {
			if err := handler(w, r); err != nil {
				failed <- err
			}
		})), client, server)
		c := newRaw(t, client)
		c.hello(client)
		f(t, c, l, failed)
	})
}

func hanging(w http.ResponseWriter, r *http.Request) error {
	hang(w, r)
	return nil
}

// A client that is not there any more is noticed within the promised time, and one that only has nothing to say stays.
func TestSilentClientsArePinged(t *testing.T) {
	for _, answers := range []bool{true, false} {
		silently(t, hanging, func(t *testing.T, c *raw, l *link, _ <-chan error) {
			c.headers(1, true, ":path", "/hang")
			began := time.Now()
			for range 3 {
				c.await(func(h heard) bool { return h.kind == http2.FramePing && !h.ack })
				if silent := time.Since(began); silent > 30*time.Second || silent < 28*time.Second {
					t.Errorf("pinged after %v", silent)
				}
				if !answers {
					<-l.ended
					if gone := time.Since(began); gone > 35*time.Second || gone < 32*time.Second {
						t.Errorf("closed after %v", gone)
					}
					return
				}
				_ = c.WritePing(true, [8]byte{})
				began = time.Now()
			}
		})
	}
}

// A ping that is due soon is sent along with data.
func TestDataTakesAPingAlong(t *testing.T) {
	for written, pings := range map[time.Duration]time.Duration{18 * time.Second: 30 * time.Second, 22 * time.Second: 22 * time.Second} {
		t.Run(written.String(), func(t *testing.T) {
			silently(t, func(w http.ResponseWriter, r *http.Request) error {
				out := http.NewResponseController(w)
				_ = out.SetWriteDeadline(time.Time{}) // never fails
				<-time.After(written)
				if _, err := io.WriteString(w, "x"); err != nil {
					return err
				}
				err := out.Flush()
				hang(w, r)
				return err
			}, func(t *testing.T, c *raw, l *link, failed <-chan error) {
				began := time.Now()
				c.headers(1, true, ":path", "/hang")
				c.await(func(h heard) bool { return h.kind == http2.FramePing && !h.ack })
				if silent := time.Since(began).Round(time.Second); silent != pings {
					t.Errorf("pinged after %v", silent)
				}
				<-l.ended // it does not answer
				if gone := time.Since(began); gone > pings+6*time.Second || gone < pings+3*time.Second {
					t.Errorf("closed after %v", gone)
				}
				if len(failed) > 0 {
					t.Error(<-failed)
				}
			})
		})
	}
}

func TestConnectionsWithoutRequestsEnd(t *testing.T) {
	silently(t, hanging, func(t *testing.T, c *raw, l *link, _ <-chan error) {
		began := time.Now()
		for {
			h := c.await(func(h heard) bool { return h.kind == http2.FramePing || h.kind == http2.FrameGoAway })
			if h.kind == http2.FrameGoAway {
				break
			}
			_ = c.WritePing(true, [8]byte{})
		}
		c.headers(1, true) // too late
		<-l.ended
		if lasted := time.Since(began); lasted > 3*time.Minute+2*time.Second || lasted < 3*time.Minute-2*time.Second {
			t.Errorf("closed after %v", lasted)
		}
	})
}

func TestStrangersWhoDoNotBeginAreClosed(t *testing.T) {
	for _, text := range []string{"", "PRI * HTTP/2.0", http2.ClientPreface, http2.ClientPreface + "\x00\x00"} {
		waittest.Bubble(t, func(t *testing.T) {
			client, server := net.Pipe()
			l := serve(t, h2.New(config(hang)), client, server)
			newRaw(t, client)
			_, _ = io.WriteString(client, text)
			began := time.Now()
			<-l.ended
			if lasted := time.Since(began); lasted > 11*time.Second {
				t.Errorf("%q: closed after %v", text, lasted)
			}
		})
	}
}

// A body that does not arrive ends its request, and only that.
func TestBodyThatStallsEndsItsRequest(t *testing.T) {
	silently(t, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path == "/" {
			return nil
		}
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}, func(t *testing.T, c *raw, _ *link, failed <-chan error) {
		began := time.Now()
		c.headers(1, false, ":path", "/stalls")
		_ = c.WriteData(1, false, []byte("x"))
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		c.headers(3, true)
		c.await(func(h heard) bool { return h.kind == http2.FrameHeaders && h.stream == 3 })
	})
}

// A response that the client does not accept, because it opens no window, ends; other requests of the connection are served.
func TestResponseThatIsNotAcceptedEnds(t *testing.T) {
	silently(t, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path == "/" {
			return nil
		}
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}, func(t *testing.T, c *raw, _ *link, failed <-chan error) {
		began := time.Now()
		c.headers(1, true, ":path", "/large")
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		c.await(func(h heard) bool { return h.kind == http2.FrameRSTStream && h.stream == 1 })
		c.headers(3, true)
		c.await(func(h heard) bool { return h.kind == http2.FrameHeaders && h.stream == 3 })
	})
}

// A client that does not read anything from its connection is cut off.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		client, server := net.Pipe()
		began := time.Now()
		l := serve(t, h2.New(config(hang)), client, server)
		<-l.ended
		if lasted := time.Since(began); lasted > 10*time.Second {
			t.Errorf("closed after %v", lasted)
		}
	})
}

// A deadline in the past interrupts a handler that writes, as another goroutine of the server does when nobody reads a stream.
func TestDeadlineInterruptsAWrite(t *testing.T) {
	silently(t, func(w http.ResponseWriter, _ *http.Request) error {
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(time.Time{})
		go func() {
			<-time.After(time.Hour)
			_ = out.SetWriteDeadline(time.Unix(1, 0))
		}()
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}, func(t *testing.T, c *raw, _ *link, failed <-chan error) {
		began := time.Now()
		c.headers(1, true)
		answer := make(chan struct{})
		go func() { // stays alive
			for {
				select {
				case <-answer:
					return
				case <-time.After(10 * time.Second):
					_ = c.WritePing(true, [8]byte{})
				}
			}
		}()
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(answer)
	})
}

// Frames that need a response, from a client that reads none, are bounded.
func TestFloodOfPingsIsBounded(t *testing.T) {
	client, server := tcp(t)
	l := serve(t, h2.New(config(hang)), client, server)
	f := http2.NewFramer(client, client)
	_, _ = io.WriteString(client, http2.ClientPreface)
	_ = f.WriteSettings()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = client.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for range 2_000_000 { // far more than fit into the buffers of the kernel
		if f.WritePing(false, [8]byte{}) != nil {
			break
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	client.Close()
	<-l.ended
}

// A client that starts requests and cancels them at once is told to calm down before it costs much.
func TestRapidResetsAreBounded(t *testing.T) {
	var most, now atomic.Int64
	client, server := tcp(t)
	block := make(chan struct{})
	l := serve(t, h2.New(config(func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-block // a handler that does not notice
		now.Add(-1)
	})), client, server)
	c := newRaw(t, client)
	c.hello(client)
	for id := uint32(1); id < 1000; id += 2 {
		c.headers(id, true)
		_ = c.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	if got := c.await(is(http2.FrameGoAway)); got.code != http2.ErrCodeEnhanceYourCalm {
		t.Error(got)
	}
	close(block)
	<-l.ended
	if most.Load() > maxRequests {
		t.Errorf("%d handlers at once", most.Load())
	}
}

// An idle connection must not cost more than this, and what a handler flushes must be one write.
func TestIdleConnectionHasTwoGoroutinesAndAFlushIsOneWrite(t *testing.T) {
	client, server := tcp(t)
	count := &counted{Conn: server}
	flush := make(chan struct{})
	l := serve(t, h2.New(config(func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		for {
			select {
			case <-flush:
				_, _ = io.WriteString(w, "change")
				_, _ = io.WriteString(w, " and more")
				if err := out.Flush(); err != nil && r.Context().Err() == nil { // the client may leave as soon as it has read
					t.Error(err)
				}
			case <-r.Context().Done():
				return
			}
		}
	})), client, count)
	c := newRaw(t, client)
	c.hello(client)
	c.headers(1, true)
	flush <- struct{}{}
	c.await(is(http2.FrameData))
	_ = c.WritePing(false, [8]byte{}) // everything before it has been handled
	c.await(func(h heard) bool { return h.kind == http2.FramePing && h.ack })
	before := count.count()
	for range 10 {
		flush <- struct{}{}
		if h := c.await(is(http2.FrameData)); h.size != len("change and more") {
			t.Error(h)
		}
	}
	if n := count.count() - before; n != 10 {
		t.Errorf("%d writes for 10 flushes", n)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	own := 0
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "h2.(*conn)") || strings.Contains(stack, "h2.(*stream)") {
			own++
		}
	}
	if own != 2 {
		t.Errorf("%d goroutines\n%s", own, stacks)
	}
	client.Close()
	<-l.ended
}

func TestRequestsEndWithTheirConnectionOrClient(t *testing.T) {
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	cc, l := open(t, config(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	for _, ctx := range []context.Context{ctx, t.Context()} {
		go func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://server/", nil)
			if res, err := cc.RoundTrip(r); err == nil {
				res.Body.Close()
				t.Error("it was answered")
			}
		}()
		<-began
	}
	cancel()
	<-ended // the one that was cancelled
	l.client.Close()
	<-ended
	<-l.ended
}

func TestPanicEndsOnlyItsRequest(t *testing.T) {
	cc, _ := open(t, config(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("fault")
		}
	}))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://server/panic", nil)
	if res, err := cc.RoundTrip(r); err == nil {
		res.Body.Close()
		t.Error("it was answered")
	}
	if res, _ := ask(t, cc, "GET", "/", nil); res.StatusCode != 200 {
		t.Error(res.StatusCode)
	}
}
