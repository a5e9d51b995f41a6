package api

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// apiPath is where an API key is needed, except for public operations.
const apiPath = "/api/"

// open reports whether a request needs no API key.
func open(r *http.Request) bool {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // the router treats them alike
	}
	return !strings.HasPrefix(r.URL.Path, apiPath) || isPublic(method, r.URL.Path)
}

// authenticated lets requests in that carry a valid API key. Unknown, malformed,
// wrong, expired and deleted keys differ in nothing that a caller could see or
// measure.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := mesh.Actor{Kind: mesh.ActorNode, Addr: identity.ClientAddr(r, s.trustedProxies), RequestID: requestID(r)}
		w.Header().Set("X-Request-Id", a.RequestID)
		if open(r) {
			next.ServeHTTP(w, r.WithContext(withActor(r.Context(), a)))
			return
		}
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
			if s.refusals.Admit(a.Addr) {
				s.log.Warn("unauthorized", "addr", a.Addr, "path", loggedPath(r), "req", a.RequestID)
			}
			unauthorized(w, r, "Unauthorized: bearer token missing")
			return
		}
		if s.closed() {
			unavailable(w, r, "this replica lost the database and another one has it: it cannot tell whether the API key is still valid; use another replica")
			return
		}
		k, _, err := lookup(r.Context(), s.ledger, func(snap *mesh.Snapshot) (*mesh.APIKey, bool) {
			return identity.APIKey(snap, token, s.ledger.Now())
		})
		switch {
		case errors.Is(err, errAbsent):
			if s.refusals.Admit(a.Addr) {
				s.log.Warn("authentication failed", "addr", a.Addr, "path", loggedPath(r), "req", a.RequestID)
			}
			unauthorized(w, r, "Authentication failed: invalid API key")
			return
		case err != nil:
			s.fail(w, r, err)
			return
		}
		guard.Prove(r.Context())
		s.observations.APIKeyUsed(k.ID, a.Addr)
		a.Kind, a.ID, a.Name = mesh.ActorKey, k.ID.String(), k.Prefix
		next.ServeHTTP(w, r.WithContext(withAccess(withActor(r.Context(), a), k.Access)))
	})
}

// unauthorized refuses an API key. Tools written for Headscale's API compare the
// body with the bare word.
func unauthorized(w http.ResponseWriter, r *http.Request, detail string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	if readsOnlyJSON(r) {
		write(w, http.StatusUnauthorized, "text/plain; charset=utf-8", []byte("Unauthorized"))
		return
	}
	writeProblem(w, r, problem(http.StatusUnauthorized, detail))
}

type actorKey struct{}

func withActor(ctx context.Context, a mesh.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// actor is who asks; every handler runs behind one that says so. What a request asks for
// once is known when its body has been read.
func actor(r *http.Request) mesh.Actor {
	a, _ := r.Context().Value(actorKey{}).(mesh.Actor)
	a.Once = onceOf(r, a)
	return a
}

var (
	requestWord = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	keySecret   = regexp.MustCompile(`(fl[kp]_[^_/]*_)[^/]+`)
)

// requestID takes the caller's or a proxy's id, if it is a plain word.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); requestWord.MatchString(id) {
		return id
	}
	return rand.Text()[:12]
}

// loggedPath is the path without the secrets of keys: some operations name a
// key in their path, and people paste the whole of it.
func loggedPath(r *http.Request) string { return keySecret.ReplaceAllString(r.URL.Path, "$1***") }
