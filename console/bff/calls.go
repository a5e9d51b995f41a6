package bff

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	// bodyTimeout limits the time to read a whole response from the server. It does not apply to event
	// streams.
	bodyTimeout = 30 * time.Second
	// partTimeout limits the time to send one part of a response, partSize bytes, to the browser. A slow
	// connection may take as long as it needs in total, but a stalled one is closed.
	partTimeout = 30 * time.Second
	partSize    = 32 << 10
)

// call forwards an operation of the table to the server.
func (s *Server) call(w http.ResponseWriter, r *http.Request, escaped string) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op, path, allow := match(s.operations, method, escaped)
	if op.id == "" {
		if len(allow) > 0 {
			notAllowed(w, strings.Join(allow, ", "))
			return
		}
		s.noCall(w, r)
		return
	}
	v, now := s.visitor(r), s.now()
	held, ok := s.requireSession(w, r, v, now)
	if !ok {
		return
	}
	if method != http.MethodGet && !s.mayChange(r, held) {
		refuse(w)
		return
	}
	query, refused := op.filter(r.URL.RawQuery)
	if refused != "" {
		writeProblem(w, http.StatusBadRequest, typeRefused, "unsupported query parameter "+clip(refused))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.limit))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		writeProblem(w, http.StatusRequestEntityTooLarge, typeRefused, "the request is too large for the console")
		return
	} else if err != nil {
		writeProblem(w, http.StatusBadRequest, typeRefused, "the request body is incomplete")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), bodyTimeout)
	defer cancel()
	if query != "" {
		path += "?" + query
	}
	answer, err := s.send(ctx, r, held, upstreamRequest{method, path, body, op.repeatable}, requestID(w))
	if err != nil {
		s.unreachable(w, err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		s.log.Info("session ended: rejected by the server", held.kind(), held.Prefix, "addr", v.addr.String())
		s.endSession(w, v, held)
		noSession(w)
		return
	}
	if isAttended(r) {
		s.renew(w, v, held, now)
	}
	s.pass(w, r, answer)
}

// mayChange performs the four checks of a change: its method, its content type, the CSRF token of its session
// and its origin.
func (s *Server) mayChange(r *http.Request, held session) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method != http.MethodGet && r.Method != http.MethodHead &&
		err == nil && kind == "application/json" &&
		s.seals.isCSRFToken(held.ID, r.Header.Get("X-CSRF")) &&
		fromHere(r)
}

// upstreamRequest is a request to the server.
type upstreamRequest struct {
	method, path string // below /api/v1/
	body         []byte
	repeatable   bool
}

// send makes a request to the server with the person's own API key. It copies only the headers listed here from
// the browser's request.
func (s *Server) send(ctx context.Context, from *http.Request, held session, q upstreamRequest, requestID string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, s.upstream.base+"/api/v1/"+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if q.repeatable {
		r.Header["Idempotency-Key"] = nil // a nil header is not sent, and lets the transport retry
	}
	for _, edit := range []apiclient.RequestEditorFn{bearer(held.Key), forwarded(s.visitor(from), requestID)} {
		if err := edit(ctx, r); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"If-Match", "Idempotency-Key", "Mesh-Min-Revision", "Last-Event-ID"} {
		if text := from.Header.Get(name); text != "" {
			r.Header.Set(name, text)
		}
	}
	if len(q.body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	return s.upstream.http.Do(r)
}

// pass forwards a response of the server. A response that is not in the server's own format comes from an
// intermediary, such as a proxy, and is replaced.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, answer *http.Response) {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	failed := answer.StatusCode >= http.StatusBadRequest
	switch {
	case failed && kind == "application/problem+json", answer.StatusCode == http.StatusOK && kind == "application/json":
	default:
		s.log.Warn("unexpected response, not from the server", "status", answer.StatusCode, "type", kind, "req", requestID(w))
		writeProblem(w, http.StatusBadGateway, typeUnreachable, "unexpected response, possibly from a proxy in front of the server: "+answer.Status)
		return
	}
	if answer.ContentLength > maxAnswer {
		s.unreachable(w, errTooLarge)
		return
	}
	// Read the whole body before sending any of it. A slow browser would otherwise keep the server waiting
	// until it times out, and the browser could mistake a truncated body for a complete one.
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLarge
	}
	if err != nil {
		s.unreachable(w, err)
		return
	}
	for _, name := range []string{"Content-Type", "ETag", "Mesh-Revision", "X-Request-Id", "Retry-After", "Idempotency-Replayed"} {
		if text := answer.Header.Get(name); text != "" {
			w.Header().Set(name, text)
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // so that a truncated body is not mistaken for a complete one
	w.WriteHeader(answer.StatusCode)
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	for part := range slices.Chunk(body, partSize) {
		_ = control.SetWriteDeadline(time.Now().Add(partTimeout)) // if it cannot be set, there is no deadline
		if _, err := w.Write(part); err != nil {
			s.log.Debug("cannot send response to browser", "bytes", len(body), "req", requestID(w), "err", err)
			return
		}
	}
}

// unreachable reports that the server gave no response to pass on.
func (s *Server) unreachable(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		return // the browser has disconnected
	}
	s.log.Warn("server not responding", "req", requestID(w), "err", err)
	w.Header().Set("Retry-After", "2")
	status, detail := http.StatusBadGateway, "the server at "+s.host()+" is not responding"
	timeout := net.Error(nil)
	switch {
	case errors.Is(err, errTooLarge):
		detail = "the response is too large for the console: request fewer objects with limit"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		status, detail = http.StatusGatewayTimeout, "the server at "+s.host()+" did not respond in time"
	}
	writeProblem(w, status, typeUnreachable, detail)
}
