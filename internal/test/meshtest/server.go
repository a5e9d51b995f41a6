package meshtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	loopback   = "127.0.0.1"
	readyLimit = 30 * time.Second // to start, and to stop gracefully
	pollEvery  = 10 * time.Millisecond
	shownLog   = 4 << 10 // bytes of the log that a failed test shows
)

// Build builds fairlead into dir with the flags of a release and the given ones, whatever flags the tests are
// built with, and returns the path of the binary.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	binary := filepath.Join(dir, "fairlead")
	args := append([]string{"build", "-ldflags=-s -w", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/fairlead-mesh/fairlead/cmd/fairlead")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building fairlead: %w\n%s", err, out)
	}
	return binary, nil
}

// Config configures a server. Only Binary is required; the default is a single server with SQLite and without
// a relay.
type Config struct {
	Binary string // from Build
	// Postgres and Database select PostgreSQL instead of SQLite.
	Postgres *pgtest.Server
	Database string
	// URL is the server URL for clients; it defaults to the server's own address.
	URL string
	// Host is the host name in the server URL, if URL is not set; it defaults to the server's own address.
	Host string
	// NoiseKey is the file of the server's Noise key, which replicas share.
	NoiseKey string
	Relay    bool              // also run a relay with STUN
	Set      map[string]string // further configuration keys, by their path
	// Namespace is the network namespace to run in; the default is loopback. Metrics are not reachable in a
	// namespace.
	Namespace *clienttest.Namespace
}

// Server is a fairlead process on loopback or in a namespace, with all its files in a new directory. It keeps
// its ports and its data across restarts.
type Server struct {
	Addr    string // address of the listener for clients and the API
	URL     string // URL for clients and the API
	Metrics string // address of the metrics
	Socket  string

	t        testing.TB
	contract *apitest.Contract // the responses of the API are checked against it
	binary   string
	place    *clienttest.Namespace // nil for this host
	env      []string
	log      waittest.Transcript
	began    int // length of the log when the process started
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the process has ended
	wait     sync.WaitGroup
}

// Start starts a server and returns when it is ready. If the test fails, the
// end of its log is shown.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") // short: the path of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	contract, err := apitest.Load(apispec.Document)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		contract: contract,
		Addr:     freeIn(t, c.Namespace), Metrics: porttest.Addr(t), Socket: filepath.Join(dir, "socket"), t: t, binary: c.Binary, place: c.Namespace,
	}
	s.URL = "http://" + s.Addr
	if c.Host != "" {
		_, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		s.URL = "http://" + net.JoinHostPort(c.Host, port)
	}
	s.env = s.environ(c, dir)
	t.Cleanup(func() {
		s.end(syscall.SIGKILL)
		os.RemoveAll(dir)
		if log := s.log.String(); t.Failed() {
			t.Logf("the log of the server %s ends with:\n%s", s.Addr, log[max(0, len(log)-shownLog):])
		}
	})
	s.Resume()
	return s
}

// environ returns the configuration as environment variables.
func (s *Server) environ(c Config, dir string) []string {
	set := map[string]string{
		"server_url": cmp.Or(c.URL, s.URL), "listen_addr": s.Addr, "metrics_listen_addr": s.Metrics, "unix_socket": s.Socket,
		"log.format": "json", "log.level": "debug",
		"derp.server.enabled":    "false", // unless c.Relay is set: only one server per machine can use its STUN port
		"noise.private_key_path": cmp.Or(c.NoiseKey, filepath.Join(dir, "noise.key")),
		"database.type":          "sqlite", "database.sqlite.path": filepath.Join(dir, "db.sqlite"),
	}
	if c.Postgres != nil {
		set["database.type"], set["database.sqlite.path"] = "postgres", ""
		set["database.postgres.host"], set["database.postgres.port"] = c.Postgres.Host, strconv.Itoa(c.Postgres.Port)
		set["database.postgres.user"], set["database.postgres.pass"] = c.Postgres.User, c.Postgres.Pass
		set["database.postgres.name"], set["database.postgres.ssl"] = c.Database, "disable"
	}
	if c.Relay {
		set["derp.server.enabled"], set["derp.server.stun_listen_addr"] = "true", freeIn(s.t, c.Namespace)
		set["derp.server.private_key_path"] = filepath.Join(dir, "relay.key")
	}
	maps.Copy(set, c.Set)
	env := []string{"PATH=" + os.Getenv("PATH"), "FAIRLEAD_CONFIG=/dev/null"}
	for key, value := range set {
		env = append(env, "FAIRLEAD_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	return env
}

// freeIn is porttest.Addr, or the same port on the address of a namespace.
func freeIn(t testing.TB, n *clienttest.Namespace) string {
	t.Helper()
	addr := porttest.Addr(t)
	if n != nil {
		addr = strings.Replace(addr, loopback, n.Addr.String(), 1)
	}
	return addr
}

// listen listens on a port that no outgoing connection uses after the listener is closed.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", porttest.Addr(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Resume starts the process after Kill or Stop.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
}

// Supervise resumes a server as a service manager does, which starts the process again if it ends: a server that cannot use its
// database when it starts exits.
func Supervise(s *Server) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * readyLimit); ; <-time.After(time.Second) {
		err := s.start()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
		s.Kill() // if it is not ready
	}
}

// start starts the process and waits until it is ready.
func (s *Server) start() error {
	s.began = len(s.log.String())
	cmd := s.command(context.Background(), "serve")
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	s.wait.Go(func() {
		defer close(ended)
		_ = cmd.Wait() // Stop checks its state
	})
	for deadline := time.Now().Add(readyLimit); !strings.Contains(s.Log(), `"fairlead is ready"`); {
		select {
		case <-ended:
			return fmt.Errorf("the server ended when it should start: %v\n%s", cmd.ProcessState, s.Log())
		case <-time.After(pollEvery):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server is not ready after %v", readyLimit)
		}
	}
	return nil
}

func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	if s.place != nil {
		cmd = s.place.Command(ctx, s.binary, args...)
	}
	cmd.Env = s.env
	return cmd
}

// end sends a signal and waits until the process has ended.
func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal) // it may have exited already
	select {
	case <-s.ended:
	case <-time.After(readyLimit):
		s.t.Errorf("the server does not end within %v after %v", readyLimit, signal)
		_ = s.cmd.Process.Kill()
	}
	s.wait.Wait()
}

// Kill kills the process, as in a crash.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop stops the process gracefully.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(syscall.SIGTERM)
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server ended with status %d", code)
	}
}

// Signal sends a signal to the process.
func (s *Server) Signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// PID returns the id of the current process, for measuring it.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns what the process wrote since its last start.
func (s *Server) Log() string { return s.log.String()[s.began:] }

// Transcript returns what all processes of this server wrote.
func (s *Server) Transcript() string { return s.log.String() }

// Says returns how many lines of Log have this message.
func (s *Server) Says(message string) int {
	return strings.Count(s.Log(), fmt.Sprintf("\"msg\":%q", message))
}

// TryCLI runs a fairlead command over the socket and returns its output.
func (s *Server) TryCLI(ctx context.Context, args ...string) (string, error) {
	cmd := s.command(ctx, args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("fairlead %s: %w: %s", strings.Join(args, " "), err, problem.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// CLI is TryCLI for a command that must succeed.
func (s *Server) CLI(args ...string) string {
	s.t.Helper()
	out, err := s.TryCLI(s.t.Context(), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// APIKey creates an API key.
func (s *Server) APIKey() string {
	s.t.Helper()
	return s.CLI("apikeys", "create")
}

// PreAuthKey creates a pre-auth key for an existing user. The flags are those of "preauthkeys create".
func (s *Server) PreAuthKey(user string, flags ...string) string {
	s.t.Helper()
	return s.CLI(append([]string{"preauthkeys", "create", "--user", user}, flags...)...)
}

// Dial connects to an address in the network of the server.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.place != nil {
		return s.place.DialContext(ctx, network, addr)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// API sends a request over the socket and returns the body of a successful response.
func (s *Server) API(ctx context.Context, method, path, body string) ([]byte, error) {
	client := &http.Client{Transport: s.contract.Transport(s.t, &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
		},
	})}
	return fetch(ctx, client, method, "http://"+s.Addr+path, body)
}

// Metric returns the sum of all series of a metric.
func (s *Server) Metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := fetch(ctx, &http.Client{}, http.MethodGet, "http://"+s.Metrics+"/metrics", "")
	if err != nil {
		return 0, err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndexByte(line, '}'); i >= 0 {
			series, value = line[:strings.IndexByte(line, '{')], strings.TrimSpace(line[i+1:])
		}
		if series != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return sum, nil
}

func fetch(ctx context.Context, client *http.Client, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = errors.New(res.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", method, url, err, answer)
	}
	return answer, nil
}
