package wire

import (
	"bytes"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
)

// What machines without a node may do, which is all but register.
const (
	// strangerBody is six times what clients send to register.
	strangerBody = 16 << 10
	// strangerRequests is how many requests a connection may have under way: a
	// client registers, and waits for its approval.
	strangerRequests = 4
	// strangersHold bounds the bodies of all of them that are not complete.
	strangersHold = 32 << 20
)

var errOverBudget = errors.New("too many clients are registering; try again")

// serveStranger answers a machine that has no node. Its body is read before
// anything looks at it, so that the memory held for strangers can be counted.
func (s *Server) serveStranger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	requests := peerOf(r).requests
	defer requests.Add(-1)
	if requests.Add(1) > strangerRequests {
		tryLater(w, http.StatusTooManyRequests, "too many requests at once; register first")
		return
	}
	body, err := s.readBody(http.MaxBytesReader(w, r.Body, strangerBody))
	switch {
	case errors.Is(err, errOverBudget):
		tryLater(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		decodeFailed(w, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
}

// readBody reads all, within strangersHold for all bodies together.
func (s *Server) readBody(r io.Reader) ([]byte, error) {
	var buf []byte
	defer func() { s.held.Add(-int64(cap(buf))) }()
	for {
		if len(buf) == cap(buf) {
			next := make([]byte, len(buf), max(512, 2*cap(buf)))
			if s.held.Add(int64(cap(next)-cap(buf))) > strangersHold {
				s.held.Add(-int64(cap(next) - cap(buf)))
				return nil, errOverBudget
			}
			copy(next, buf)
			buf = next
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// tryLater answers clients that should ask again, but not all at once.
func tryLater(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Retry-After", strconv.Itoa(1+mathrand.IntN(5)))
	http.Error(w, text, status)
}
