package bff

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxSessionStreams is below what the service grants one key, and below the six
	// connections that browsers open to one host without HTTP/2: what a page reads
	// and changes needs some of them.
	maxSessionStreams = 4
	maxStreams        = 48
	// judgeEvery is how long a revoked key may keep its stream at most. The service
	// itself ends a stream sooner; this does not rely on it.
	judgeEvery = 15 * time.Second
	// silence after which the service is gone: it sends something every 15 seconds.
	silence          = 40 * time.Second
	streamWrite      = 10 * time.Second
	maxEventLine     = 1 << 20
	sessionEndedText = "event: session-ended\ndata: {}\n\n"
	restartText      = "retry: 3000\n: the console restarts\n\n"
)

var (
	errStopping = errors.New("the console stops")
	errSilent   = errors.New("the service is silent")
	errOver     = errors.New("the service ended the stream")
	// errStale: other requests may have renewed the session meanwhile, which the
	// browser shows when it comes back.
	errStale = errors.New("the session was idle when the stream began")
)

// streams counts those that are open.
type streams struct {
	mu       sync.Mutex
	all      int            // guarded by mu
	sessions map[string]int // guarded by mu; none of them zero
}

func (c *streams) enter(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= maxStreams || c.sessions[session] >= maxSessionStreams {
		return false
	}
	if c.sessions == nil {
		c.sessions = map[string]int{}
	}
	c.all++
	c.sessions[session]++
	return true
}

func (c *streams) leave(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.sessions[session]--; c.sessions[session] == 0 {
		delete(c.sessions, session)
	}
}

// events passes the service's stream on for as long as the session lives. It does
// not renew the session: a page that nobody looks at keeps its stream open.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		notAllowed(w, http.MethodGet)
		return
	}
	v, now := s.visitor(r), s.now()
	held, ok, _ := s.heldSession(r, v, now)
	if !ok {
		noSession(w)
		return
	}
	// A browser sends no origin with what it reads from where the page is.
	if !fromHere(r) && (r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "") {
		refuse(w)
		return
	}
	if !s.streams.enter(held.ID) {
		w.Header().Set("Retry-After", "10")
		writeProblem(w, http.StatusServiceUnavailable, typeTooManyStreams, "too many event streams are open; close a tab of the console")
		return
	}
	defer s.streams.leave(held.ID)

	path := "events"
	if after := r.URL.Query().Get("after"); after != "" {
		query, refused := operation{query: []string{"after"}}.filter(r.URL.RawQuery)
		if refused != "" {
			writeProblem(w, http.StatusBadRequest, typeRefused, "the console does not pass on the parameter "+clip(refused)+" of this address")
			return
		}
		path += "?" + query
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	answer, err := s.send(ctx, r, held, question{http.MethodGet, path, nil, true}, requestID(w))
	if err != nil {
		s.unreachable(w, err)
		return
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		s.endSession(w, v, held)
		noSession(w)
		return
	default:
		s.pass(w, r, answer)
		return
	}
	s.log.Debug("an event stream begins", "key", held.Prefix, "addr", v.addr.String())
	out := &eventWriter{w: w, rc: http.NewResponseController(w)}
	out.begin(answer.Header.Get("Mesh-Revision"))
	why := s.follow(ctx, end, out, answer.Body, held)
	if errors.Is(why, errOver) && s.isRefused(r.Context(), held) {
		why = errEnded
	}
	switch {
	case errors.Is(why, errEnded):
		s.log.Info("session ended: signed out, expired, or its API key was refused", "key", held.Prefix, "addr", v.addr.String())
		_ = out.write([]byte(sessionEndedText)) // the browser has gone; there is nobody to tell
	case errors.Is(why, errStopping):
		_ = out.write([]byte(restartText)) // as above
	}
	s.log.Debug("an event stream ended", "key", held.Prefix, "addr", v.addr.String(), "why", why)
}

// follow copies events until the session, the stream, the browser or the console
// ends, and returns which of them did so first.
func (s *Server) follow(ctx context.Context, end context.CancelCauseFunc, out *eventWriter, body io.Reader, held session) (why error) {
	doubt := make(chan struct{}, 1) // a key has changed, perhaps this one
	silent := time.AfterFunc(silence, func() { end(errSilent) })
	defer silent.Stop()
	var group errgroup.Group
	group.Go(func() error {
		lines := bufio.NewReaderSize(body, 4<<10)
		for {
			block, err := readEvent(lines)
			if err != nil {
				end(fmt.Errorf("%w: %w", errOver, err)) // unless the end was what broke it
				return err
			}
			silent.Reset(silence)
			if err := out.write(block); err != nil {
				end(err)
				return err
			}
			if bytes.Contains(block, []byte("event: apikey.")) {
				select {
				case doubt <- struct{}{}:
				default: // it will be looked at anyway
				}
			}
		}
	})
	group.Go(func() error {
		end(s.watch(ctx, held, doubt))
		return nil
	})
	_ = group.Wait() // the cause tells more
	return context.Cause(ctx)
}

// watch returns why a session, or with it the console, is over.
func (s *Server) watch(ctx context.Context, held session, doubt <-chan struct{}) error {
	over := time.NewTimer(held.end().Sub(s.now()))
	defer over.Stop()
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopping:
			return errStopping
		case <-over.C:
			if held.end().Before(held.End) {
				return errStale
			}
			return errEnded
		case <-tick.C:
		case <-doubt:
		}
		if s.signOuts.has(held.login()) || s.isRefused(ctx, held) {
			return errEnded
		}
	}
}

// isRefused asks the service, and not what it said a moment ago.
func (s *Server) isRefused(ctx context.Context, held session) bool {
	_, err := s.upstream.whoami(ctx, held.Key)
	if !errors.Is(err, errEnded) {
		return false
	}
	s.verdicts.put(held.ID, verdict{err: errEnded})
	return true
}

// readEvent reads up to the empty line that ends an event, a comment or a mark.
func readEvent(lines *bufio.Reader) ([]byte, error) {
	var block []byte
	for {
		line, err := lines.ReadSlice('\n')
		block = append(block, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(block) < maxEventLine:
			continue
		case err != nil:
			return nil, err
		case len(block) > maxEventLine:
			return nil, errTooLarge
		case len(line) == 1 && len(block) > 0: // an empty line, or the end of a line that filled the buffer
			return block, nil
		}
	}
}

// eventWriter sends events to a browser, each with a time by which it must have
// taken it.
type eventWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (o *eventWriter) begin(revision string) {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass each event on at once
	if revision != "" {
		h.Set("Mesh-Revision", revision)
	}
	_ = o.rc.SetReadDeadline(time.Time{}) // where it cannot be set none counts
	_ = o.rc.SetWriteDeadline(time.Now().Add(streamWrite))
	_ = o.rc.Flush() // the first write tells if the browser has gone
}

func (o *eventWriter) write(block []byte) error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(streamWrite)) // as above
	if _, err := o.w.Write(block); err != nil {
		return err
	}
	return o.rc.Flush()
}
