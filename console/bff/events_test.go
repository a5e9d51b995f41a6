package bff

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// stream is an event stream as a browser reads it.
type stream struct {
	t      *testing.T
	status int
	header http.Header
	lines  chan string // closed when the stream ends
	close  context.CancelFunc
}

func (b *browser) stream(headers ...string) *stream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/admin/api/v1/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, h := range headers {
		name, text, _ := strings.Cut(h, ": ")
		r.Header.Set(name, text)
	}
	resp, err := (&http.Client{Jar: b.http.Jar}).Do(r) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		b.t.Fatal(err)
	}
	s := &stream{t: b.t, status: resp.StatusCode, header: resp.Header, lines: make(chan string, 1000), close: cancel}
	go func() {
		defer close(s.lines)
		defer resp.Body.Close()
		for in := bufio.NewReader(resp.Body); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				if !errors.Is(err, io.EOF) {
					s.lines <- "broken: " + err.Error()
				}
				return
			}
			s.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return s
}

// await reads until a line starts with prefix, and returns that line.
func (s *stream) await(prefix string, within time.Duration) string {
	s.t.Helper()
	deadline := time.After(within)
	var seen []string
	for {
		select {
		case line, ok := <-s.lines:
			if strings.HasPrefix(line, prefix) {
				return line
			}
			if seen = append(seen, line); !ok {
				s.t.Fatalf("the stream ended without %q: %q", prefix, seen)
			}
		case <-deadline:
			s.t.Fatalf("no %q after %v: %q", prefix, within, seen)
		}
	}
}

// ends waits for the end of the stream and fails the test if the console sends a
// session-ended event or a partial event first. Events of other tests may arrive.
func (s *stream) ends() {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return
			}
			if line == "event: session-ended" || line == "event: half" {
				s.t.Errorf("it ends with %q", line)
			}
		case <-deadline:
			s.t.Fatal("it does not end")
		}
	}
}

func TestEventsReachThePageAndResume(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	s := c.stream()
	if s.status != http.StatusOK || s.header.Get("Content-Type") != "text/event-stream" || s.header.Get("Mesh-Revision") == "" || s.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", s.status, s.header)
	}
	s.await("retry:", patience)
	c.must(http.StatusOK, http.MethodPost, "/admin/api/v1/user", `{"name":"`+newName()+`"}`)
	s.await("event: user.created", patience)
	id := ""
	for id == "" || !strings.Contains(id, "-") {
		id = strings.TrimPrefix(s.await("id: ", patience), "id: ")
	}
	s.close()
	second := newName()
	c.must(http.StatusOK, http.MethodPost, "/admin/api/v1/user", `{"name":"`+second+`"}`)
	s = c.stream("Last-Event-ID: " + id)
	for !strings.Contains(s.await("data:", patience), second) {
	}
}

// TestARevokedKeyEndsItsStreamWithin15Seconds: the page finds out without a click.
func TestARevokedKeyEndsItsStreamWithin15Seconds(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	c.login(key)
	s := c.stream()
	s.await("retry:", patience)
	revoke(t, key)
	s.await("event: session-ended", recheckEvery)
	s.ends()
	wantText(t, c.get("/admin/").text, textRevoked)
	if s := c.stream(); s.status != http.StatusUnauthorized {
		t.Errorf("another stream: %d", s.status)
	}
}

// TestAStreamEndsWithItsKeyThoughTheServiceHoldsItOpen: the console checks the key itself.
func TestAStreamEndsWithItsKeyThoughTheServiceHoldsItOpen(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	key := newKey(t)
	c.login(key)
	f.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 1000\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := c.stream()
	s.await("retry:", patience)
	f.set(nil)
	revoke(t, key)
	s.await("event: session-ended", recheckEvery+patience)
	s.ends()
}

// TestAStreamBeatsOnlyWhileTheServerAnswers: a page that hears nothing for three beats knows that the server hangs.
func TestAStreamBeatsOnlyWhileTheServerAnswers(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	s := c.stream()
	s.await("retry:", patience)
	beat := strings.TrimSpace(beatText)
	s.await(beat, beatEvery+patience)
	f.set(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) // new requests hang; the stream stays
	hang := func(checks int) {
		t.Helper()
		f.requests()
		seen := 0
		eventually(t, func() error {
			if seen += len(f.requests()); seen < checks {
				return fmt.Errorf("%d checks of the server", seen)
			}
			return nil
		})
	}
	hang(1)
	for len(s.lines) > 0 { // discard beats that were due before the fault
		<-s.lines
	}
	hang(3)
	for len(s.lines) > 0 {
		if line := <-s.lines; line == beat {
			t.Fatal("the stream beats though the server hangs")
		}
	}
	f.set(nil)
	s.await(beat, beatEvery+patience)
}

func TestAStreamThatIsCutEndsWithoutEndingTheSession(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	f.set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 1000\n\nevent: half\ndata: of an eve")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	s := c.stream()
	s.await("retry:", patience)
	s.ends()
	f.set(nil)
	s = c.stream()
	if s.status != http.StatusOK {
		t.Errorf("afterwards: %d", s.status)
	}
	s.await("retry:", patience)
}

// TestAStreamOutlivesNoSession: an idle session may have been renewed in the
// meantime, so its stream just ends and the browser reconnects. A session past its
// maximum age cannot be renewed, so its stream ends with a session-ended event.
func TestAStreamOutlivesNoSession(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	for _, name := range []string{"idle", "over"} {
		now := time.Now()
		held := session{ID: name, Key: key, Renewed: now.Add(2*time.Second - idleTime), End: now.Add(time.Hour)}
		if name == "over" {
			held.Renewed, held.End = now, now.Add(2*time.Second)
		}
		text, err := c.server.seals.seal(cookieName, held)
		if err != nil {
			t.Fatal(err)
		}
		s := c.stream("Cookie: " + cookieName + "=" + text)
		s.await("retry:", patience)
		if name == "over" {
			s.await("event: session-ended", patience)
		}
		s.ends()
	}
}

func TestStreamsAreBoundedAndOfThisConsoleOnly(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	if s := c.stream(); s.status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", s.status)
	}
	c.login(newKey(t))
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		if s := c.stream(header); s.status != http.StatusForbidden {
			t.Errorf("%s: %d", header, s.status)
		}
	}
	var open []*stream
	for range maxSessionStreams {
		s := c.stream()
		if s.status != http.StatusOK {
			t.Fatal(s.status)
		}
		open = append(open, s)
	}
	if s := c.stream(); s.status != http.StatusServiceUnavailable || s.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", s.status)
	}
	open[0].close()
	eventually(t, func() error {
		if s := c.stream(); s.status != http.StatusOK {
			s.close()
			return fmt.Errorf("%d", s.status)
		}
		return nil
	})
}

func TestAConsoleThatStopsTellsPagesToComeBack(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	s := c.stream()
	s.await("retry: 1000", patience)
	close(c.server.stopping)
	s.await("retry: 3000", patience)
	s.ends()
}
