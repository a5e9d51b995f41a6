package api

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/scim"
)

// apiPath is the prefix of the paths that need an API key, except for public operations.
const apiPath = "/api/"

// protected reports whether a path may need an API key.
func protected(path string) bool {
	return strings.HasPrefix(path, apiPath) || strings.HasPrefix(path, scim.Path)
}

// open reports whether a request needs no API key.
func open(r *http.Request) bool {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // the router also uses GET handlers for HEAD
	}
	return !protected(r.URL.Path) || isPublic(method, r.URL.Path)
}

// authenticated refuses requests without a valid API key or session, except to public operations. Callers
// cannot tell unknown, malformed, wrong, expired and deleted keys apart, not even by timing. (An imported key
// that has not been used yet takes longer.)
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
			unavailable(w, r, "this replica cannot reach the database and cannot verify API keys; use another replica")
			return
		}
		ctx, err := s.identify(r.Context(), a, token)
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
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify adds to a context who the caller is, and what it may do. The error is errAbsent
// if the token is not valid.
func (s *Server) identify(ctx context.Context, a mesh.Actor, token string) (context.Context, error) {
	if strings.HasPrefix(token, string(identity.KindSession)+"_") {
		return s.identifyPerson(ctx, a, token)
	}
	k, snap, err := lookup(ctx, s.ledger, func(snap *mesh.Snapshot) (*mesh.APIKey, bool) {
		return identity.APIKey(snap, token, s.ledger.Now())
	})
	if errors.Is(err, errAbsent) {
		var ok bool
		if k, ok, err = s.keys.VerifyImported(ctx, a, token); err == nil && !ok {
			err = errAbsent
		}
		snap = s.ledger.World().Snapshot
	}
	if err != nil {
		return nil, err
	}
	s.observations.APIKeyUsed(k.ID, a.Addr)
	a.Kind, a.ID, a.Name, a.User = mesh.ActorKey, k.ID.String(), k.Prefix, k.User
	return withAccess(withActor(context.WithValue(ctx, keyLimitKey{}, k.Access), a), s.keys.Access(snap, k)), nil
}

// identifyPerson is identify for the token of a session.
func (s *Server) identifyPerson(ctx context.Context, a mesh.Actor, token string) (context.Context, error) {
	v, snap, err := lookup(ctx, s.ledger, func(snap *mesh.Snapshot) (*mesh.Session, bool) {
		return identity.Session(snap, token, s.ledger.Now())
	})
	if err != nil {
		return nil, err
	}
	u, ok := snap.Users.Get(v.User)
	if !ok {
		return nil, errAbsent
	}
	s.observations.SessionUsed(v.ID, a.Addr)
	return withSession(withAccess(withActor(ctx, control.PersonActor(a, u)), s.people.Access(u)), v.ID), nil
}

// unauthorized responds to a request without a valid API key. Tools written for
// Headscale's API compare the body with the bare word Unauthorized, so they get just
// that.
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

// actor returns who sent a request, as determined by the middleware. Call it after the body was
// read, because the idempotency key is bound to the whole request.
func actor(r *http.Request) mesh.Actor {
	a, _ := r.Context().Value(actorKey{}).(mesh.Actor)
	a.Once = onceOf(r, a)
	return a
}

type sessionKey struct{}

func withSession(ctx context.Context, id mesh.SessionID) context.Context {
	return context.WithValue(ctx, sessionKey{}, id)
}

// session returns the session that a request uses, or zero.
func session(r *http.Request) mesh.SessionID {
	id, _ := r.Context().Value(sessionKey{}).(mesh.SessionID)
	return id
}

var (
	requestWord = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	keySecret   = regexp.MustCompile(`(fl[ikps]_[^_/]*_|hskey-[a-z]+-[^/]{12}-)[^/]+`)
	// formerSecret matches keys that Headscale issued before 0.28.
	formerSecret = regexp.MustCompile(`(/[\w-]{7}\.|/[0-9a-f]{12})[\w-]{32,36}($|/)`)
)

// requestID returns the id that the caller or a proxy sent, if it is a plain word, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); requestWord.MatchString(id) {
		return id
	}
	return rand.Text()[:12]
}

// loggedPath returns the path without the secrets of keys: some operations have the prefix of
// a key in their path, and people paste the whole key.
func loggedPath(r *http.Request) string {
	return formerSecret.ReplaceAllString(keySecret.ReplaceAllString(r.URL.Path, "$1***"), "$1***$2")
}
