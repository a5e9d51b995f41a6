package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// The tests of this package run the binary as an operator does, with real processes,
// listeners, signals and databases.

var (
	binary string // the fairlead under test
	// brief is the same program, but never with the race detector, for commands that end by themselves. The detector makes a
	// process start several times slower, and tests that run it in the same process cover the packages behind the commands.
	brief string
	pg    *pgtest.Server // shared by tests that do not break it
)

// contract validates every response of the API.
var contract = sync.OnceValue(func() *apitest.Contract {
	c, err := apitest.Load(apispec.Document)
	if err != nil {
		panic(err)
	}
	return c
})

func TestMain(m *testing.M) {
	os.Exit(mainStatus(m))
}

func mainStatus(m *testing.M) int {
	if url := os.Getenv(probeVariable); url != "" {
		return probe(url)
	}
	dir, err := os.MkdirTemp("", "fairlead-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	brief = filepath.Join(dir, "fairlead")
	binary, err = brief, compile(brief, "CGO_ENABLED=0")
	if raceDetector && err == nil {
		binary = filepath.Join(dir, "fairlead-race")
		// The flags with which the Makefile builds the tests, so that packages are compiled only once.
		err = compile(binary, "CGO_ENABLED=1", "-race", "-gcflags=modernc.org/...=-race=false -dwarf=false", "-gcflags=github.com/klauspost/compress/...=-race=false -dwarf=false")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil { // tests also run the binary as other users
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The tests mostly wait for a process, so run more of them in parallel than there are
	// CPUs.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s })
}

// compile builds fairlead without debug information, as in a release, which takes the linker half as long.
func compile(path, cgo string, flags ...string) error {
	cmd := exec.CommandContext(context.Background(), "go", append(append([]string{"build", "-ldflags=-s -w", "-o", path}, flags...), ".")...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building fairlead: %w\n%s", err, out)
	}
	return nil
}

const (
	nobody = 65534
	// patience is the timeout for operations that take an instant unless the machine is busy.
	patience = 20 * time.Second
	pollTime = 20 * time.Millisecond
	// shownLines is how many lines of its log are shown when a process fails a test.
	shownLines = 50
)

// settings are configuration keys by path. They are passed to the process in its
// environment.
type settings map[string]string

func (s settings) environ() []string {
	// By default, the race detector makes every process wait for a second before it exits.
	env := []string{"PATH=" + os.Getenv("PATH"), "FAIRLEAD_CONFIG=/dev/null", "GORACE=atexit_sleep_ms=0"}
	for key, value := range s {
		env = append(env, "FAIRLEAD_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	return env
}

// with returns a copy of s with some keys changed, given as pairs of key and value.
func (s settings) with(pairs ...string) settings {
	changed := settings{}
	for key, value := range s {
		changed[key] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		changed[pairs[i]] = pairs[i+1]
	}
	return changed
}

// onSQLite returns a complete configuration with all files in a new directory.
func onSQLite(t *testing.T) settings {
	t.Helper()
	return sqliteIn(disktest.Open(t))
}

func sqliteIn(dir string) settings {
	return settings{
		"server_url": "http://127.0.0.1", "listen_addr": "127.0.0.1:0", "metrics_listen_addr": "127.0.0.1:0",
		"unix_socket": filepath.Join(dir, "fairlead.sock"), "log.format": "json",
		"database.type": "sqlite", "database.sqlite.path": filepath.Join(dir, "db.sqlite"),
		"noise.private_key_path":       filepath.Join(dir, "noise.key"),
		"derp.server.private_key_path": filepath.Join(dir, "relay.key"),
		"derp.server.enabled":          "false", // only one server per machine can bind its STUN port
	}
}

// onPostgres returns the same configuration with a new database on server.
func onPostgres(t *testing.T, server *pgtest.Server) settings {
	t.Helper()
	return onSQLite(t).with("database.type", "postgres", "database.sqlite.path", "",
		"database.postgres.host", server.Host, "database.postgres.port", fmt.Sprint(server.Port), "database.postgres.ssl", "disable",
		"database.postgres.name", server.Database(t), "database.postgres.user", server.User, "database.postgres.pass", server.Pass)
}

// startPostgres starts a PostgreSQL server that the test may break.
func startPostgres(t *testing.T, o pgtest.Options) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// onBoth runs a test on each engine.
func onBoth(t *testing.T, test func(*testing.T, settings)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, onPostgres(t, pg))
	})
}

// process is a started fairlead process.
type process struct {
	*exec.Cmd
	t        *testing.T
	settings settings
	out, log *transcript
	ended    chan struct{}

	// Set once the server is ready.
	api, metrics string
}

// start starts "fairlead args…" without waiting for anything. The process is killed when
// the test ends.
func start(t *testing.T, s settings, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := &process{
		Cmd: exec.CommandContext(context.Background(), binary, args...), t: t, settings: s,
		out: &transcript{}, log: &transcript{}, ended: make(chan struct{}),
	}
	p.Env, p.Stdout, p.Stderr = s.environ(), p.out, p.log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if change != nil {
		change(p.Cmd)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.Wait() // the tests check ProcessState
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if strings.Contains(p.log.String(), "WARNING: DATA RACE") || t.Failed() {
			t.Errorf("the log of fairlead %s ends with:\n%s", strings.Join(args, " "), p.log.tail(shownLines))
		}
	})
	return p
}

// serve starts the server and waits until it reports that it is ready.
func serve(t *testing.T, s settings) *process {
	t.Helper()
	p := start(t, s, nil, "serve")
	p.awaitReady(t)
	return p
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		for _, r := range p.log.records() {
			if r["msg"] == "fairlead is ready" {
				p.api, p.metrics = r["api"].(string), r["metrics"].(string)
				return nil
			}
		}
		select {
		case <-p.ended:
			t.Fatalf("it ended with %v: %s", p.ProcessState, p.log)
		default:
		}
		return errors.New("it is not ready")
	})
}

// status waits for the process to exit and returns its exit status.
func (p *process) status(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		t.Fatalf("it still runs after %v: %s", within, p.log)
	}
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop shuts the server down gracefully.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if status := p.status(t, patience); status != 0 {
		t.Fatalf("exit status %d", status)
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
}

// client returns a client that uses the API with a key or, without one, over the local
// socket. It checks that every response conforms to the contract.
func (p *process) client(key string) *client {
	c := p.fastClient(key)
	c.http.Transport = contract().Transport(p.t, c.http.Transport)
	return c
}

// fastClient returns a client that does not check responses, for tests that measure time.
func (p *process) fastClient(key string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	if key == "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.settings["unix_socket"])
		}
	}
	return &client{http: http.Client{Transport: transport, Timeout: patience}, base: "http://" + p.api, key: key}
}

type client struct {
	http http.Client
	base string
	key  string
}

// do returns the status and body of the response, or an error if there was none.
func (c *client) do(method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// must sends a request and fails the test if the response has a different status.
func (c *client) must(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	got, answer, err := c.do(method, path, body)
	if err != nil || got != status {
		t.Fatalf("%s %s: got %d (%v), want %d: %s", method, path, got, err, status, answer)
	}
	return answer
}

// result is the outcome of a command.
type result struct {
	stdout, stderr string
	status         int
}

// command runs a command to completion.
func command(t *testing.T, s settings, args ...string) result {
	t.Helper()
	p := start(t, s, func(cmd *exec.Cmd) { cmd.Path = brief }, args...)
	return result{status: p.status(t, patience), stdout: p.out.String(), stderr: p.log.String()}
}

// mustCommand returns the standard output of a command that must succeed.
func mustCommand(t *testing.T, s settings, args ...string) string {
	t.Helper()
	r := command(t, s, args...)
	if r.status != 0 {
		t.Fatalf("fairlead %s: exit status %d: %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return r.stdout
}

// newKey creates an API key over the socket.
func newKey(t *testing.T, s settings) string {
	t.Helper()
	return strings.TrimSpace(mustCommand(t, s, "apikeys", "create"))
}

// transcript is the output of a process so far.
type transcript struct{ waittest.Transcript }

func (w *transcript) tail(n int) string {
	lines := strings.SplitAfter(w.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// records returns the decoded log lines. It skips lines that are not JSON.
func (w *transcript) records() []map[string]any {
	var all []map[string]any
	for line := range strings.Lines(w.String()) {
		var r map[string]any
		if json.Unmarshal([]byte(line), &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// eventually polls until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, patience, pollTime, try)
}

// says fails the test unless text contains every phrase.
func says(t *testing.T, text string, phrases ...string) {
	t.Helper()
	for _, phrase := range phrases {
		if !strings.Contains(text, phrase) {
			t.Errorf("got %q, want it to say %q", text, phrase)
		}
	}
}
