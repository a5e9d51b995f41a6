package api

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	onceHeader     = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	maxOnceKey     = 255
)

// keyedRequest is a request with an Idempotency-Key. content hashes the method, the
// request URI, If-Match and as much of the body as the handler has read.
type keyedRequest struct {
	key     mesh.Secret
	content hash.Hash
}

type keyedRequestKey struct{}

// once reads the Idempotency-Key of a change. The ledger commits a receipt with the change,
// so a request with the same key is not executed again. Requests without an API key have no
// owner to keep receipts for; their Idempotency-Key is ignored.
func (s *Server) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys, given := r.Header[onceHeader]
		if !given || r.Method == http.MethodGet || r.Method == http.MethodHead || open(r) {
			next.ServeHTTP(w, r)
			return
		}
		if len(keys) != 1 || keys[0] == "" || len(keys[0]) > maxOnceKey || strings.ContainsFunc(keys[0], unicode.IsControl) {
			text := fmt.Sprintf("%s must be a single value of 1 to %d bytes without control characters", onceHeader, maxOnceKey)
			s.fail(w, r, &badRequest{onceHeader, text})
			return
		}
		k := &keyedRequest{key: sha256.Sum256([]byte(keys[0])), content: sha256.New()}
		for _, part := range []string{r.Method, r.URL.RequestURI(), r.Header.Get(matchHeader)} {
			k.content.Write(append(binary.AppendUvarint(nil, uint64(len(part))), part...))
		}
		r = r.WithContext(context.WithValue(r.Context(), keyedRequestKey{}, k))
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, k.content), r.Body}
		next.ServeHTTP(w, r)
	})
}

// onceOf returns what identifies a request in its receipt, or nil if it has no
// Idempotency-Key. The body must have been read.
func onceOf(r *http.Request, a mesh.Actor) *mesh.Once {
	k, ok := r.Context().Value(keyedRequestKey{}).(*keyedRequest)
	if !ok {
		return nil
	}
	return &mesh.Once{Owner: string(a.Kind) + ":" + a.ID, Key: k.key, Request: mesh.Secret(k.content.Sum(nil))}
}

// answeredBefore responds to a request that was already executed, or returns the error to
// fail with. A refusal does not prove that it was not executed: the first request may have
// removed the object that the second one refers to.
func (s *core) answeredBefore(w http.ResponseWriter, r *http.Request, why error) (bool, error) {
	once := actor(r).Once
	if once == nil {
		return false, why
	}
	var done *ledger.AlreadyDone
	if !errors.As(why, &done) {
		var refusal *control.Refusal
		if !errors.As(why, &refusal) {
			return false, why
		}
		m, _, err := lookup(r.Context(), s.ledger, func(snap *mesh.Snapshot) (*mesh.Receipt, bool) {
			m, ok := snap.Receipts.For(once)
			return m, ok && !m.Until.Reached(s.ledger.Now())
		})
		if err != nil {
			return false, why
		}
		if err := s.ledger.Confirm(r.Context(), m.Rev); err != nil {
			return false, err
		}
		done = &ledger.AlreadyDone{Receipt: m}
	}
	if done.Receipt.Request != once.Request {
		text := "this " + onceHeader + " was already used for a different request; use a new one for each request"
		writeProblem(w, r, problem(http.StatusConflict, text))
		return true, nil
	}
	s.replay(w, r, done.Receipt)
	return true, nil
}

// replay repeats the response of the operation, with the objects as they are now.
func (s *core) replay(w http.ResponseWriter, r *http.Request, m *mesh.Receipt) {
	w.Header().Set(replayedHeader, "true")
	snap := s.ledger.World().Snapshot
	body, err := s.operations[r.Pattern].replay(replayed{w, r, snap, m, s.ledger.Now()})
	var shown *shownOnce
	switch {
	case errors.As(err, &shown):
		p := problem(http.StatusConflict, shown.Error())
		p.Current = shown.object
		writeProblem(w, r, p)
	case err != nil:
		text := fmt.Sprintf("this request succeeded at revision %d, but its result has since been deleted", m.Rev)
		writeProblem(w, r, problem(http.StatusGone, text))
	default:
		reply(w, snap, body)
	}
}

// replayed is a request that was already executed.
type replayed struct {
	w       http.ResponseWriter
	r       *http.Request
	snap    *mesh.Snapshot
	receipt *mesh.Receipt
	now     mesh.Time
}

// replay rebuilds the response of an operation. An error other than shownOnce means that
// its object is gone. The attribute x-replay in api/openapi.yaml selects one of the replay…
// methods.
type replay func(replayed) (any, error)

// shownOnce is the error for a repeated request whose response contained a secret: the
// secret is not stored, so it cannot be shown again.
type shownOnce struct {
	what   string
	id     string
	object any
}

func (e *shownOnce) Error() string {
	return fmt.Sprintf("this request already created the %s with id %s, whose value was shown only once; "+
		"if you lost it, delete it and create another with a new %s", e.what, e.id, onceHeader)
}

func (*handlers) replayEmpty(replayed) (any, error) { return openapi.Empty{}, nil }
