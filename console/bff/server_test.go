package bff

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cookieSecret = "0123456789abcdef0123456789abcdef"

// service stands for the coordination service: it answers.
func service(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

func get(t *testing.T, s *Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestHealthTellsWhetherTheServiceIsReached(t *testing.T) {
	for coordinator, url := range map[string]string{"reachable": service(t), "unreachable": "http://127.0.0.1:1"} {
		answer := get(t, New(Config{CoordinatorURL: url}, "v1", slog.New(slog.DiscardHandler)), "/health")
		var got Health
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Health{Status: "pass", Version: "v1", Coordinator: coordinator}, got); diff != "" || answer.Code != http.StatusOK {
			t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
		}
	}
}

func TestOnlyHealthAndAdminWithItsSlashAreThere(t *testing.T) {
	var log bytes.Buffer
	s := New(Config{CoordinatorURL: service(t)}, "v1", slog.New(slog.NewTextHandler(&log, nil)))
	for path, want := range map[string]int{
		"/admin/": http.StatusOK, "/health": http.StatusOK,
		"/admin": http.StatusNotFound, "/": http.StatusNotFound, "/admin/favicon.ico": http.StatusNotFound,
	} {
		log.Reset()
		if got := get(t, s, path).Code; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		lines := strings.Count(log.String(), `No route matches URL \"`+path+`\"`)
		if (lines == 1) != (want == http.StatusNotFound) {
			t.Errorf("%s is logged %d times as unmatched:\n%s", path, lines, log.String())
		}
	}
}

func TestProbeAsksARunningConsole(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if err := Probe(t.Context(), addr); err == nil {
		t.Error("a console that does not run is well")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := New(Config{CoordinatorURL: service(t), ListenAddr: addr}, "v1", slog.New(slog.DiscardHandler))
	go func() { ended <- s.Run(ctx) }()
	_, port, _ := net.SplitHostPort(addr)
	for err = Probe(ctx, "0.0.0.0:"+port); err != nil && len(ended) == 0 && t.Context().Err() == nil; {
		err = Probe(ctx, "0.0.0.0:"+port)
	}
	if err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestConfigurationNamesEveryProblem(t *testing.T) {
	for text, want := range map[string]string{
		"coordinator_url: http://fairlead:8080\ncookie_secret: " + cookieSecret:                                "",
		"coordinator_url: http://fairlead:8080\nserver: {cookie_secret: " + cookieSecret + "}":                 "",
		"coordinator_url: fairlead\ncookie_secret: short\nlog_level: trace":                                    "coordinator_url cookie_secret log_level",
		"coordinator_url: http://f\ncookie_secret: " + cookieSecret + "\nserver: {cookie_secret: x}":           "differs",
		"coordinator_url: http://f\ncookie_secret: " + cookieSecret + "\napikey: flk_x":                        "apikey",
		"coordinator_url: http://f\ncookie_secret: " + strings.Repeat("x", 33) + "\nlisten_addr: 127.0.0.1:99": "exactly 32 characters, has 33",
		"": "coordinator_url cookie_secret",
	} {
		file := filepath.Join(t.TempDir(), "console.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadConfig(file)
		if want == "" {
			if err != nil || got.CookieSecret != cookieSecret || got.ListenAddr != "0.0.0.0:3000" || got.LogLevel != "info" {
				t.Errorf("%s\n%+v, %v", text, got, err)
			}
			continue
		}
		for part := range strings.FieldsSeq(want) {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s\n%v, want %q named", text, err, part)
			}
		}
	}
}
