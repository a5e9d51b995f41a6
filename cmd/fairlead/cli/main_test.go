package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// run is one invocation of the command line in a test.
type run struct {
	stdout, stderr bytes.Buffer
	status         int
}

// fairlead runs the command line against the server on socket, at a fixed time and
// without a terminal. The with functions may change that.
func fairlead(t *testing.T, socket string, args []string, with ...func(*Env)) *run {
	t.Helper()
	r := &run{}
	env := Env{
		Stdin:   strings.NewReader(""),
		Stdout:  &r.stdout,
		Stderr:  &r.stderr,
		Environ: []string{"FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_UNIX_SOCKET=" + socket},
		Now:     func() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC) },
		Build:   Build{Version: "0.1.0", Commit: "0a1b2c3d", Time: "2026-03-01T08:00:00Z"},
	}
	for _, change := range with {
		change(&env)
	}
	r.status = Execute(t.Context(), New(env), args)
	return r
}

// transcript returns the command and its result, in the format of testdata.
func (r *run) transcript(args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ fairlead %s\n%s", strings.Join(args, " "), &r.stdout)
	for line := range strings.Lines(r.stderr.String()) {
		b.WriteString("[stderr] " + line)
	}
	if r.status != 0 {
		fmt.Fprintf(&b, "[exit %d]\n", r.status)
	}
	return b.String()
}

// golden compares got with a file in testdata, or writes that file with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite with -update:\n%s", path, diff)
	}
}

// request is what a server received in one call.
type request struct {
	Method, Path, Body, Authorization string
}

// requestLog collects requests.
type requestLog struct {
	mu   sync.Mutex
	seen []request // guarded by mu
}

func (l *requestLog) requests() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// wrap returns a handler that adds requests to l before it calls next.
func (l *requestLog) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.seen = append(l.seen, request{r.Method, r.URL.RequestURI(), strings.TrimSpace(string(body)), r.Header.Get("Authorization")})
		l.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// listen serves handler on a socket and records the requests.
func listen(t *testing.T, handler http.Handler) (socket string, log *requestLog) {
	t.Helper()
	// The directories of t.TempDir can be too long for a socket path.
	dir, err := os.MkdirTemp("", "fairlead")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	log = &requestLog{}
	server := httptest.NewUnstartedServer(log.wrap(handler))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return socket, log
}

// answering is a server that sends the same response to every request.
func answering(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}
