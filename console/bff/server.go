package bff

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Times of the server. A probe of the health allows 5 seconds, so asking the
// service must take less.
const (
	headerTimeout = 10 * time.Second
	drainTimeout  = 5 * time.Second
	askTimeout    = 2 * time.Second
)

//go:embed page.html
var page []byte

// Server answers browsers.
type Server struct {
	config  Config
	version string
	log     *slog.Logger
	client  *http.Client
}

// New returns a server that has not begun to listen.
func New(config Config, version string, log *slog.Logger) *Server {
	return &Server{config: config, version: version, log: log, client: &http.Client{Timeout: askTimeout}}
}

// Run serves until ctx ends, then lets requests under way end.
func (s *Server) Run(ctx context.Context) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", s.config.ListenAddr)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	if s.config.APIKey == "" {
		s.log.Warn("no api_key is set; people log in with keys of their own")
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		stopped <- server.Shutdown(drain)
	})
	s.log.Info("listening", "addr", listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

// Handler is the console's HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /admin/{$}", s.page)
	mux.HandleFunc("/admin", s.noRoute) // the mux would redirect
	mux.HandleFunc("/", s.noRoute)
	return mux
}

// Health is the answer of /health. The console itself is well as long as it
// answers.
type Health struct {
	Status      string `json:"status"`
	Version     string `json:"version"`
	Coordinator string `json:"coordinator"` // reachable or unreachable
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	health := Health{Status: "pass", Version: s.version, Coordinator: "reachable"}
	if err := s.ask(r.Context()); err != nil {
		s.log.Debug("the service does not answer", "err", err)
		health.Coordinator = "unreachable"
	}
	w.Header().Set("Content-Type", "application/health+json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(health) // the caller has gone; there is nobody to tell
}

// ask gets any answer from the service. A service that is ill but answers is
// reachable.
func (s *Server) ask(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.config.CoordinatorURL, "/")+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = w.Write(page) // the browser has gone; there is nobody to tell
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.log.Info(fmt.Sprintf("No route matches URL %q", r.URL.Path)) //nolint:sloglint // operators search for this line, address included
	http.NotFound(w, r)
}
