package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/scim"
)

const minRevisionWait = 5 * time.Second

// Handler returns the handler of the public listener, where the API needs an API key. It also
// serves the handlers in beside, by their patterns, and includes them in the metrics.
func (s *Server) Handler(beside map[string]http.Handler) http.Handler {
	api := s.chain(s.authenticated)
	mux := http.NewServeMux()
	for pattern, h := range beside {
		mux.Handle(pattern, h)
	}
	mux.Handle(scim.Path, s.scimHandler())
	return s.observed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" && cleanPath(r.URL.EscapedPath()) {
			mux.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
}

// LocalHandler returns the handler of the local socket. Anyone who can open the socket is an
// administrator; peer returns who it is.
func (s *Server) LocalHandler(peer func(context.Context) mesh.Actor) http.Handler {
	return s.observed(s.chain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := peer(r.Context())
			a.RequestID = requestID(r)
			w.Header().Set("X-Request-Id", a.RequestID)
			next.ServeHTTP(w, r.WithContext(withAccess(withActor(r.Context(), a), mesh.Access{Role: mesh.RoleAdmin})))
		})
	}))
}

func (s *Server) chain(authenticate func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(unmatchedPattern, s.unmatched(mux))
	openapi.HandlerWithOptions(s.handlers, openapi.StdHTTPServerOptions{
		BaseRouter:       mux,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) { s.fail(w, r, badParameter(err)) },
	})
	return s.verified(authenticate(s.once(s.wellFormed(s.revised(s.permitted(mux))))))
}

// verified makes the first requests after a pause of this process wait until it has caught up with
// changes on other replicas, such as revoked keys. If the database is unavailable, the requests
// proceed anyway.
func (s *Server) verified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if protected(r.URL.Path) {
			_ = s.ledger.Verified(r.Context())
		}
		next.ServeHTTP(w, r)
	})
}

// unmatched responds with a Problem to requests that match no operation.
func (s *Server) unmatched(mux *http.ServeMux) http.HandlerFunc {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			writeProblem(w, r, problem(http.StatusNotFound, "metrics are served on another port; see metrics_listen_addr"))
			return
		}
		allowed := slices.DeleteFunc(slices.Clone(methods), func(m string) bool {
			probe := r.Clone(r.Context())
			probe.Method = m
			_, pattern := mux.Handler(probe)
			return pattern == unmatchedPattern || pattern == ""
		})
		if len(allowed) == 0 {
			noSuchPath(w, r)
			return
		}
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		writeProblem(w, r, problem(http.StatusMethodNotAllowed, fmt.Sprintf("%s supports %s, not %s", r.URL.Path, list, r.Method)))
	}
}

// wellFormed refuses requests that would be misinterpreted later: a path that the router would
// redirect to a cleaned one, and a query whose invalid parts it would drop.
func (s *Server) wellFormed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cleanPath(r.URL.EscapedPath()) {
			noSuchPath(w, r)
			return
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil && strings.HasPrefix(r.URL.Path, apiPath) {
			s.fail(w, r, &badRequest{"", "invalid query string: " + err.Error()})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func cleanPath(p string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/" && clean != "/"
}

func noSuchPath(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, problem(http.StatusNotFound, fmt.Sprintf("unknown path %s; all operations are listed at /api/v1/docs", r.URL.Path)))
}

// revised waits until this replica has seen the revision in Mesh-Min-Revision.
func (s *Server) revised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.Header.Get("Mesh-Min-Revision"); text != "" && strings.HasPrefix(r.URL.Path, apiPath) {
			rev, err := strconv.ParseInt(text, 10, 64)
			if err != nil || rev < 0 {
				s.fail(w, r, &badRequest{"Mesh-Min-Revision", "Mesh-Min-Revision must be a revision number, as in the response header Mesh-Revision"})
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), minRevisionWait)
			defer cancel()
			if err := s.ledger.WaitFor(ctx, mesh.Revision(rev)); err != nil {
				w.Header().Set("Retry-After", "1")
				writeProblem(w, r, problem(http.StatusServiceUnavailable, "this replica has not reached this revision yet; try again"))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// observed counts and times requests, sets the headers of every response, and responds to
// requests whose handler panics.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, server: s}
		defer func() {
			p := recover()
			if !rec.hijacked && !rec.endless {
				s.seconds.Observe(time.Since(start).Seconds())
			}
			if p != nil {
				s.panicked(rec, r, p)
			}
		}()
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(rec, r)
	})
}

// panicked responds to a request whose handler panicked. A response that had begun is aborted,
// so that it does not look complete.
func (s *Server) panicked(w *recorder, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.log.Error("request panicked", "panic", p, "method", r.Method, "path", loggedPath(r), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	writeProblem(w, r, problem(http.StatusInternalServerError, "internal error; see the server log"))
}

// recorder counts the status when the headers are sent, and sets Mesh-Revision to this
// replica's revision in responses that do not have it.
type recorder struct {
	http.ResponseWriter
	server   *Server
	status   int
	hijacked bool // the connection serves another protocol now
	endless  bool // the response is an endless stream
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.server.requests.WithLabelValues(strconv.Itoa(status)).Inc()
		if h := w.Header(); h.Get(revisionHeader) == "" {
			h.Set(revisionHeader, revision(w.server.ledger.World().Rev))
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Hijack takes over the connection, for handlers that do not use http.ResponseController.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	if w.status == 0 {
		w.status = http.StatusSwitchingProtocols
		w.server.requests.WithLabelValues(strconv.Itoa(w.status)).Inc()
	}
	return c, rw, nil
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
