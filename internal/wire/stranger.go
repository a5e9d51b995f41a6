package wire

import (
	"bytes"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// Limits for machines without a node, which can do little but register.
const (
	// strangerBody is six times the size of what clients send to register.
	strangerBody = 16 << 10
	// strangerRequests is how many concurrent requests a connection may have: a
	// client registers, and waits for approval.
	strangerRequests = 4
	// strangersMemory limits the total memory for bodies that are being read.
	strangersMemory = 32 << 20
	// strangersShare determines how much of the unused memory one network may hold: a
	// ninth of the total if it is the only one, and less as more networks take their
	// share. Thousands of networks together leave room for another one.
	strangersShare = 8
)

// bodies counts the memory held for the bodies of unknown machines.
type bodies struct {
	mu   sync.Mutex
	held int            // guarded by mu, as is of
	of   map[string]int // bytes held by each network, without zeros
}

// take counts n more bytes for a network, if it may hold them.
func (b *bodies) take(network string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[network]+n > (strangersMemory-b.held)/strangersShare {
		return false
	}
	if b.of == nil {
		b.of = map[string]int{}
	}
	b.held += n
	b.of[network] += n
	return true
}

func (b *bodies) give(network string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	if b.of[network] -= n; b.of[network] <= 0 {
		delete(b.of, network)
	}
}

var errOverBudget = errors.New("too many clients are registering; try again")

// serveStranger handles requests of a machine that has no node. It reads the whole body
// before the handler runs, so that the memory used by strangers can be counted.
func (s *Server) serveStranger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p := peerOf(r)
	defer p.requests.Add(-1)
	if p.requests.Add(1) > strangerRequests {
		tryLater(w, http.StatusTooManyRequests, "too many requests; register first")
		return
	}
	body, err := s.readBody(identity.Network(p.addr), http.MaxBytesReader(w, r.Body, strangerBody))
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

// readBody reads a whole body, within the memory that the network may hold.
func (s *Server) readBody(network string, r io.Reader) ([]byte, error) {
	var buf []byte
	defer func() { s.bodies.give(network, cap(buf)) }()
	for {
		if len(buf) == cap(buf) {
			size := max(512, 2*cap(buf))
			if !s.bodies.take(network, size-cap(buf)) {
				return nil, errOverBudget
			}
			next := make([]byte, len(buf), size)
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

// tryLater tells clients to retry, but not all at the same time.
func tryLater(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Retry-After", strconv.Itoa(1+mathrand.IntN(5)))
	http.Error(w, text, status)
}
