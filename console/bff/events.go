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
	// maxSessionStreams is below the number of streams that the server allows one API key, and below the six
	// connections that browsers open to one host without HTTP/2, because pages need some of them for other
	// requests.
	maxSessionStreams = 4
	maxStreams        = 48
	// recheckEvery is the longest time that a stream can outlive its revoked key. The server itself ends the
	// stream sooner; this is a second line of defence.
	recheckEvery = 15 * time.Second
	// silence is the time without data after which the server is considered gone. It sends something every 15
	// seconds.
	silence = 40 * time.Second
	// beatEvery is how often a stream carries data while the server responds. Pages consider a stream broken if
	// it is silent for three times as long. The server's own heartbeats are too rare for that.
	beatEvery        = 4 * time.Second
	streamWrite      = 10 * time.Second
	maxEventLine     = 1 << 20
	sessionEndedText = "event: session-ended\ndata: {}\n\n"
	beatText         = ": beat\n\n"
	restartText      = "retry: 3000\n: the console is restarting\n\n"
)

var (
	errStopping = errors.New("the console is shutting down")
	errSilent   = errors.New("no event or heartbeat from the server")
	errOver     = errors.New("the server closed the stream")
	// errStale means that the idle timeout, as known when the stream began, has passed. Other requests may have
	// renewed the session since: the browser then reconnects with its new cookie.
	errStale = errors.New("the idle timeout known when the stream began has passed")
)

// streams counts open event streams, in total and per session.
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

// events forwards the server's event stream for as long as the session lives. It does not renew the session,
// because a page that nobody looks at keeps its stream open.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		notAllowed(w, http.MethodGet)
		return
	}
	v, now := s.visitor(r), s.now()
	held, ok := s.requireSession(w, r, v, now)
	if !ok {
		return
	}
	// Browsers send no Origin header with same-origin reads.
	if !fromHere(r) && (r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "") {
		refuse(w)
		return
	}
	if !s.streams.enter(held.ID) {
		w.Header().Set("Retry-After", "10")
		writeProblem(w, http.StatusServiceUnavailable, typeTooManyStreams, "too many event streams are open: close some console tabs")
		return
	}
	defer s.streams.leave(held.ID)

	path := "events"
	if after := r.URL.Query().Get("after"); after != "" {
		query, refused := operation{query: []string{"after"}}.filter(r.URL.RawQuery)
		if refused != "" {
			writeProblem(w, http.StatusBadRequest, typeRefused, "unsupported query parameter "+clip(refused))
			return
		}
		path += "?" + query
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	answer, err := s.send(ctx, r, held, upstreamRequest{http.MethodGet, path, nil, true}, requestID(w))
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
	s.log.Debug("event stream started", held.kind(), held.Prefix, "addr", v.addr.String())
	out := &eventWriter{w: w, rc: http.NewResponseController(w)}
	out.begin(answer.Header.Get("Mesh-Revision"))
	why := s.follow(ctx, end, out, answer.Body, held)
	if errors.Is(why, errOver) && s.isRefused(r.Context(), held) {
		why = errEnded
	}
	switch {
	case errors.Is(why, errEnded):
		s.log.Info("session ended: signed out, expired, or rejected by the server", held.kind(), held.Prefix, "addr", v.addr.String())
		_ = out.write([]byte(sessionEndedText)) // fails only if the browser has disconnected
	case errors.Is(why, errStopping):
		_ = out.write([]byte(restartText)) // as above
	}
	s.log.Debug("event stream ended", held.kind(), held.Prefix, "addr", v.addr.String(), "why", why)
}

// follow copies events until the session, the stream, the browser connection or the console ends, and returns
// which of them ended first.
func (s *Server) follow(ctx context.Context, end context.CancelCauseFunc, out *eventWriter, body io.Reader, held session) (why error) {
	recheck := make(chan struct{}, 1) // signalled when an API key has changed, perhaps this one
	silent := time.AfterFunc(silence, func() { end(errSilent) })
	defer silent.Stop()
	var group errgroup.Group
	group.Go(func() error {
		lines := bufio.NewReaderSize(body, 4<<10)
		for {
			block, err := readEvent(lines)
			if err != nil {
				end(fmt.Errorf("%w: %w", errOver, err)) // errOver is ignored if the stream ended for another reason first
				return err
			}
			silent.Reset(silence)
			if err := out.write(block); err != nil {
				end(err)
				return err
			}
			if bytes.Contains(block, []byte("event: apikey.")) {
				select {
				case recheck <- struct{}{}:
				default: // a check is due already
				}
			}
		}
	})
	group.Go(func() error {
		end(s.watch(ctx, held, recheck))
		return nil
	})
	group.Go(func() error {
		s.beat(ctx, end, out)
		return nil
	})
	_ = group.Wait() // the cause of ctx is more specific than this error
	return context.Cause(ctx)
}

// beat writes a comment every few seconds for as long as the server responds, so that pages notice quickly when
// it hangs.
func (s *Server) beat(ctx context.Context, end context.CancelCauseFunc, out *eventWriter) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.upstream.known(ctx).reachable {
			continue
		}
		if err := out.write([]byte(beatText)); err != nil {
			end(err)
			return
		}
	}
}

// watch waits until the session or the console ends and returns the reason.
func (s *Server) watch(ctx context.Context, held session, recheck <-chan struct{}) error {
	over := time.NewTimer(held.end().Sub(s.now()))
	defer over.Stop()
	tick := time.NewTicker(recheckEvery)
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
		case <-recheck:
		}
		if s.signOuts.has(held.login()) || s.isRefused(ctx, held) {
			return errEnded
		}
	}
}

// isRefused asks the server whether it refuses the key, without using the cache.
func (s *Server) isRefused(ctx context.Context, held session) bool {
	_, err := s.upstream.whoami(ctx, held.Key)
	if !errors.Is(err, errEnded) {
		return false
	}
	s.keyChecks.put(held.ID, keyCheck{err: errEnded})
	return true
}

// readEvent reads up to the empty line that ends an event or a comment.
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

// eventWriter sends events to a browser, each with a write deadline.
type eventWriter struct {
	mu sync.Mutex // held to write a whole event
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (o *eventWriter) begin(revision string) {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // tells proxies that support it to forward each event at once
	if revision != "" {
		h.Set("Mesh-Revision", revision)
	}
	_ = o.rc.SetReadDeadline(time.Time{}) // if it cannot be set, there is no deadline
	_ = o.rc.SetWriteDeadline(time.Now().Add(streamWrite))
	_ = o.rc.Flush() // the first write fails if the browser has disconnected
}

func (o *eventWriter) write(block []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.rc.SetWriteDeadline(time.Now().Add(streamWrite)) // as above
	if _, err := o.w.Write(block); err != nil {
		return err
	}
	return o.rc.Flush()
}
