package bff

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limits of the server. The write timeout is for everything but event streams, which set their own deadlines.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = time.Minute
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 5 * time.Second
	maxHeaderBytes = 64 << 10
)

// Server is the HTTP server of the console.
type Server struct {
	config     Config
	version    string
	log        *slog.Logger
	seals      *seals
	upstream   *upstream
	bundle     *bundle
	templates  *template.Template
	operations []operation
	own        map[string]http.HandlerFunc // the result of Routes
	stopping   chan struct{}               // closed when event streams must end
	now        func() time.Time

	warnOfProxy sync.Once // warns about a proxy that is not in TrustedProxies

	throttle  throttle
	keyChecks keyChecks
	signOuts  signOuts
	streams   streams
}

// New returns a server that does not listen yet. files is the web bundle. It may be empty; the console then
// shows a page that says so.
func New(config Config, version string, files fs.FS, log *slog.Logger) (*Server, error) {
	s := &Server{config: config, version: version, log: log, operations: operations(), stopping: make(chan struct{}), now: time.Now}
	if config.StateDir != "" {
		s.signOuts.dir = filepath.Join(config.StateDir, "signed-out")
	}
	s.own = s.Routes()
	var err error
	if s.seals, err = newSeals(config.CookieSecret); err != nil {
		return nil, err
	}
	if s.upstream, err = newUpstream(config.CoordinatorURL, config.APIKey, log); err != nil {
		return nil, err
	}
	if s.bundle, err = readBundle(files); err != nil {
		return nil, fmt.Errorf("cannot read the web bundle: %w", err)
	}
	s.templates, err = parseTemplates()
	return s, err
}

// Run serves until ctx ends. It then closes event streams, to which browsers reconnect by themselves, and
// waits for other requests to finish. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", s.config.ListenAddr)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	for _, warning := range s.config.Warnings {
		s.log.Warn("configuration warning", "warning", warning)
	}
	if err := s.signOuts.prepare(); err != nil {
		s.log.Warn("cannot use state_dir: sign-outs will not survive a restart", "err", err)
	}
	if s.bundle.index == "" {
		s.log.Warn("this build has no pages: the web bundle is missing")
	}
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(func() { close(s.stopping) })
	s.log.Info("listening", "addr", listener.Addr().String(), "path", adminPath, "version", s.version)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		return server.Shutdown(drain)
	})
	group.Go(func() error {
		s.upstream.known(ctx) // logs whether the console's own key works
		return nil
	})
	return group.Wait()
}

// Handler returns the console's HTTP handler.
func (s *Server) Handler() http.Handler { return s.guard(http.HandlerFunc(s.route)) }

// Routes returns the paths that the console handles itself. Besides these, it
// serves its files and pages, and passes API calls on to the server.
func (s *Server) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/health":                   s.health,
		adminPath + "login":         s.login,
		adminPath + "logout":        s.logout,
		signInPath:                  s.startSignIn,
		callbackPath:                s.finishSignIn,
		accountPath:                 s.account,
		adminPath + "api/session":   s.session,
		adminPath + "api/v1/events": s.events,
	}
}

// route chooses the handler by the path exactly as it was sent. A path that would have to be cleaned or
// decoded first is not found.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if own, ok := s.own[path]; ok {
		own(w, r)
		return
	}
	name, below := strings.CutPrefix(path, adminPath)
	operation, isCall := strings.CutPrefix(name, "api/v1/")
	switch file, isFile := s.bundle.assets[name]; {
	case (path == "/" || path+"/" == adminPath) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.logNoRoute(r)
		s.plainPage(w, r, http.StatusNotFound, "notfound", plainPage{}) // it links to the console, because many people come here first
	case !below:
		s.noRoute(w, r)
	case isCall:
		s.call(w, r, operation)
	case name == "api" || strings.HasPrefix(name, "api/"):
		s.noCall(w, r)
	case isFile && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		file.serve(w, r, name)
	case isFile:
		notAllowed(w, "GET, HEAD")
	case strings.HasPrefix(name, "assets/") || strings.Contains(name, "."):
		s.noRoute(w, r)
	default:
		s.page(w, r, name)
	}
}

// Health is the response of /health. The console itself is healthy as long as it responds.
type Health struct {
	Status      string `json:"status"`
	Version     string `json:"version"`
	Coordinator string `json:"coordinator"` // reachable or unreachable
}

// health handles /health. It is as cheap as serving a file, because the console requests the state of the
// server at most once per factsAge. It has no rate limit, because strangers could exhaust one and make
// monitoring fail.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	health := Health{Status: "pass", Version: s.version, Coordinator: "unreachable"}
	if s.upstream.known(r.Context()).reachable {
		health.Coordinator = "reachable"
	}
	writeJSON(w, http.StatusOK, "application/health+json", health)
}

func (s *Server) logNoRoute(r *http.Request) {
	s.log.Info(fmt.Sprintf("No route matches URL %q", clip(r.URL.Path))) //nolint:sloglint // operators search for this line, path included
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.logNoRoute(r)
	http.NotFound(w, r)
}

// noCall is noRoute for requests from a page's script.
func (s *Server) noCall(w http.ResponseWriter, r *http.Request) {
	s.logNoRoute(r)
	writeProblem(w, http.StatusNotFound, typeRefused, "the console does not support this operation")
}

func notAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	writeProblem(w, http.StatusMethodNotAllowed, typeRefused, "method not allowed here: use "+methods)
}

func refuse(w http.ResponseWriter) {
	writeProblem(w, http.StatusForbidden, typeRefused, "the request did not come from a console page: reload the page")
}
