package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	maxBody         = 1 << 20
	bodyTimeout     = 30 * time.Second
	minRevisionWait = 5 * time.Second
	apiPath         = "/api/v1/"
)

// Handler answers on the public listener, where an API key is asked for.
func (s *Server) Handler() http.Handler { return s.chain(s.authenticated) }

// LocalHandler answers on the local socket. Who may open the socket may do
// everything; peer tells who that is.
func (s *Server) LocalHandler(peer func(context.Context) mesh.Actor) http.Handler {
	return s.chain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := peer(r.Context())
			a.RequestID = requestID(r)
			next.ServeHTTP(w, r.WithContext(withActor(r.Context(), a)))
		})
	})
}

func (s *Server) chain(authenticate func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", s.unmatched(mux))
	openapi.HandlerWithOptions(s, openapi.StdHTTPServerOptions{
		BaseRouter:       mux,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) { s.fail(w, r, badParameter(err)) },
	})
	return s.observed(authenticate(s.revised(mux)))
}

// unmatched answers what no operation does, in the form of all errors.
func (s *Server) unmatched(mux *http.ServeMux) http.HandlerFunc {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return func(w http.ResponseWriter, r *http.Request) {
		allowed := slices.DeleteFunc(slices.Clone(methods), func(m string) bool {
			probe := r.Clone(r.Context())
			probe.Method = m
			_, pattern := mux.Handler(probe)
			return pattern == "/" || pattern == ""
		})
		if len(allowed) == 0 {
			writeProblem(w, problem(http.StatusNotFound, "Not found", fmt.Sprintf("there is no %s; the operations are listed at /api/v1/docs", r.URL.Path)))
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeProblem(w, problem(http.StatusMethodNotAllowed, "Method not allowed", fmt.Sprintf("%s takes %s, not %s", r.URL.Path, strings.Join(allowed, ", "), r.Method)))
	}
}

// open lists the operations that need no API key. There is no other.
func open(r *http.Request) bool {
	switch r.Method + " " + r.URL.Path {
	case "POST /api/v1/machine", "GET /api/v1/openapi.yaml", "GET /api/v1/docs":
		return true
	}
	return !strings.HasPrefix(r.URL.Path, apiPath)
}

// authenticated lets requests in that carry a valid API key. A missing, unknown,
// wrong and expired key differ in nothing a caller could see or measure but the
// text for the missing one.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := mesh.Actor{Kind: mesh.ActorNode, Addr: s.clientAddr(r), RequestID: requestID(r)}
		if open(r) {
			next.ServeHTTP(w, r.WithContext(withActor(r.Context(), a)))
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" {
			s.Log.Warn("unauthorized", "addr", a.Addr, "path", r.URL.Path, "req", a.RequestID)
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, problem(http.StatusUnauthorized, "Unauthorized", "Unauthorized: bearer token missing"))
			return
		}
		k, ok := identity.APIKey(s.Ledger.World().Snapshot, token, now())
		if !ok {
			s.Ledger.Sync(r.Context()) // another replica may just have made it
			k, ok = identity.APIKey(s.Ledger.World().Snapshot, token, now())
		}
		if !ok {
			s.Log.Warn("authentication failed", "addr", a.Addr, "path", r.URL.Path, "req", a.RequestID)
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, problem(http.StatusUnauthorized, "Unauthorized", "Authentication failed: invalid API key"))
			return
		}
		a.Kind, a.ID, a.Name = mesh.ActorKey, k.ID.String(), k.Prefix
		next.ServeHTTP(w, r.WithContext(withActor(r.Context(), a)))
	})
}

// revised waits, if asked to, until this replica has seen what the caller has.
func (s *Server) revised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.Header.Get("Mesh-Min-Revision"); text != "" {
			rev, err := strconv.ParseInt(text, 10, 64)
			if err != nil || rev < 0 {
				writeProblem(w, problem(http.StatusBadRequest, "Bad request", "Mesh-Min-Revision is a revision, as given by Mesh-Revision"))
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), minRevisionWait)
			defer cancel()
			if err := s.Ledger.WaitFor(ctx, mesh.Revision(rev)); err != nil {
				w.Header().Set("Retry-After", "1")
				writeProblem(w, problem(http.StatusServiceUnavailable, "Not there yet", "this replica has not seen the revision yet; try again"))
				return
			}
		}
		if r.ContentLength != 0 {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			// A body that trickles in ends here, not with the server's patience.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// observed counts, sets the headers of every answer, and keeps a panic from
// leaving the caller without one.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w, server: s}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		defer func() {
			if p := recover(); p != nil && !errors.Is(asError(p), http.ErrAbortHandler) {
				s.Log.Error("a request panicked", "panic", p, "method", r.Method, "path", r.URL.Path, "stack", string(debug.Stack()))
				if rec.status == 0 {
					writeProblem(rec, problem(http.StatusInternalServerError, "Internal error", "internal error; the log of the service has the details"))
				}
			}
			s.seconds.Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(rec, r)
		if rec.status == 0 {
			rec.WriteHeader(http.StatusOK)
		}
	})
}

func asError(p any) error {
	err, _ := p.(error)
	return err
}

// recorder counts the status when the headers are sent.
type recorder struct {
	http.ResponseWriter
	server *Server
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.server.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type actorKey struct{}

func withActor(ctx context.Context, a mesh.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// actor is who asks; every handler runs behind one that says so.
func actor(r *http.Request) mesh.Actor {
	a, _ := r.Context().Value(actorKey{}).(mesh.Actor)
	return a
}

// requestID takes the caller's or a proxy's id, if it is a plain word.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	plain := func(c rune) bool {
		return c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z'
	}
	if id == "" || len(id) > 64 || strings.ContainsFunc(strings.ReplaceAll(id, "-", ""), plain) {
		return rand.Text()[:12]
	}
	return id
}

// clientAddr is the peer's address, or what a trusted proxy says it is: the
// last address in X-Forwarded-For that is not itself a trusted proxy.
func (s *Server) clientAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !s.trusted(addr) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		a, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if addr = a.Unmap(); !s.trusted(addr) {
			break
		}
	}
	return addr.String()
}

func (s *Server) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}
