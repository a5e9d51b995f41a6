package bff

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// The tests of this package run the console against a real server. A proxy between
// the two injects faults.

const (
	cookieSecret = "k3J9x0QmZt7Lw2Rv8NcYb5Ha1Ds6Fg4e"
	patience     = 20 * time.Second
	pollTime     = 20 * time.Millisecond
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	shared *fairlead // used by all tests; started by the first one that needs it
)

// service starts the shared server on first use. Tests create their own keys.
var service = sync.OnceValue(func() *fairlead {
	dir, err := os.MkdirTemp("", "fl")
	if err != nil {
		panic(err)
	}
	binary := filepath.Join(dir, "fairlead")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", binary, "../../cmd/fairlead")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, whatever flags the tests are built with
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building fairlead: %v\n%s", err, out))
	}
	if shared, err = startService(binary, dir); err != nil {
		panic(err)
	}
	return shared
})

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait, so run more of them in parallel than there are CPUs.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	status := m.Run()
	if shared != nil {
		shared.stop()
		os.RemoveAll(filepath.Dir(shared.binary))
	}
	os.Exit(status)
}

// fairlead is a running server.
type fairlead struct {
	binary string
	env    []string
	url    string
	cmd    *exec.Cmd
	log    *waittest.Transcript
}

// startService starts a server with its data in a directory. Settings override its environment.
func startService(binary, dir string, settings ...string) (*fairlead, error) {
	f := &fairlead{binary: binary, log: &waittest.Transcript{}}
	f.env = []string{
		"PATH=" + os.Getenv("PATH"), "FAIRLEAD_CONFIG=/dev/null", "FAIRLEAD_SERVER_URL=http://127.0.0.1", "FAIRLEAD_LISTEN_ADDR=127.0.0.1:0",
		"FAIRLEAD_METRICS_LISTEN_ADDR=127.0.0.1:0", "FAIRLEAD_UNIX_SOCKET=" + filepath.Join(dir, "s"), "FAIRLEAD_DATABASE_TYPE=sqlite",
		"FAIRLEAD_DATABASE_SQLITE_PATH=" + filepath.Join(dir, "db.sqlite"), "FAIRLEAD_NOISE_PRIVATE_KEY_PATH=" + filepath.Join(dir, "noise.key"),
		"FAIRLEAD_DERP_SERVER_ENABLED=false", "FAIRLEAD_TRUSTED_PROXIES=127.0.0.1/32",
	}
	f.env = append(f.env, settings...) // the last one counts
	f.cmd = exec.CommandContext(context.Background(), f.binary, "serve")
	f.cmd.Env, f.cmd.Stderr = f.env, f.log
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	ready := regexp.MustCompile(`fairlead is ready.* api=(\S+)`)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(pollTime) {
		if found := ready.FindStringSubmatch(f.log.String()); found != nil {
			f.url = "http://" + found[1]
			return f, nil
		}
	}
	f.stop()
	return nil, fmt.Errorf("the service is not ready:\n%s", f.log)
}

func (f *fairlead) stop() {
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
}

// run executes a command of the CLI.
func (f *fairlead) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.binary, args...)
	cmd.Env = f.env
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			stderr = string(exit.Stderr)
		}
		t.Fatalf("fairlead %s: %v %s", strings.Join(args, " "), err, stderr)
	}
	return strings.TrimSpace(string(out))
}

func newKey(t *testing.T, args ...string) string {
	t.Helper()
	return service().run(t, append([]string{"apikeys", "create"}, args...)...)
}

// newName returns a name that no user has yet.
func newName() string { return "u" + strings.ToLower(rand.Text()) }

func revoke(t *testing.T, key string) {
	t.Helper()
	service().run(t, "apikeys", "expire", "--key", strings.Split(key, "_")[1])
}

// faults is a proxy in front of the server. Its fault, if any, handles all requests.
type faults struct {
	*httptest.Server
	mu    sync.Mutex
	fault http.HandlerFunc // guarded by mu; nil for none
	seen  []*http.Request  // guarded by mu
}

func startFaults(t *testing.T) *faults {
	t.Helper()
	return startFaultsFor(t, service().url)
}

// startFaultsFor starts a proxy in front of the server at this address.
func startFaultsFor(t *testing.T, address string) *faults {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	f := &faults{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		fault := f.fault
		f.seen = append(f.seen, r.Clone(context.Background()))
		f.mu.Unlock()
		if fault != nil {
			fault(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *faults) set(fault http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// requests returns the requests that reached the proxy since the last call.
func (f *faults) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// hangUp simulates an unreachable server.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// testBundle is small, but has everything that a built bundle has.
func testBundle() fs.FS {
	return fstest.MapFS{
		"index.html": {Data: []byte(`<meta name="csrf" content="__CSRF__"><meta name="nonce" content="__CSP_NONCE__"><script type="module" nonce="__CSP_NONCE__" src="/admin/assets/app-1a2b.js"></script>`)},
		".keep":      {}, "assets/app-1a2b.js.map": {Data: []byte("{}")},
		"assets/app-1a2b.js": {Data: []byte("plain")}, "assets/app-1a2b.js.br": {Data: []byte("brotli")}, "assets/app-1a2b.js.gz": {Data: []byte("gzip")},
		"assets/inter-latin-wght-normal-Ab.woff2": {Data: []byte("font")},
		"assets/mark-Cd.svg":                      {Data: []byte("<svg/>")},
	}
}

// console is a running console and a browser that uses it.
type console struct {
	*browser
	server *Server
	log    *waittest.Transcript
}

// start runs a console for the server at this address.
func start(t *testing.T, coordinator string, change func(*Config)) *console {
	t.Helper()
	config := Config{CoordinatorURL: coordinator, CookieSecret: cookieSecret, LogLevel: slog.LevelDebug, TrustedProxies: loopback()}
	if change != nil {
		change(&config)
	}
	c := &console{log: &waittest.Transcript{}}
	var err error
	if c.server, err = New(config, "v1", testBundle(), NewLogger(c.log, config)); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(c.server.Handler())
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.Start()
	t.Cleanup(front.Close)
	t.Cleanup(func() { // streams left open by a failed test would keep the server from closing
		select {
		case <-c.server.stopping:
		default:
			close(c.server.stopping)
		}
	})
	c.browser = newBrowser(t, front.URL)
	t.Cleanup(func() {
		if c.key != "" && strings.Contains(c.log.String(), secretOf(c.key)) {
			t.Error("the log holds the key")
		}
	})
	return c
}

// loopback is the default of trusted_proxies.
func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// browser keeps cookies and sends the headers that browsers send.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
	csrf string
	key  string // the key used to sign in; no response may contain it
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, base: base, http: &http.Client{
		Jar: jar, Timeout: patience, Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response with its body already read.
type answer struct {
	*http.Response
	text string
}

// do sends a request. Headers are "Name: value"; one without a value is not sent.
func (b *browser) do(method, path, body string, headers ...string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set("Origin", b.base)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-CSRF", b.csrf)
	}
	for _, h := range headers {
		name, text, _ := strings.Cut(h, ":")
		r.Header.Del(name)
		if text = strings.TrimSpace(text); text != "" {
			r.Header.Set(name, text)
		}
	}
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.key != "" && strings.Contains(fmt.Sprint(string(text), resp.Header), secretOf(b.key)) {
		b.t.Errorf("%s %s: the answer holds the key", method, path)
	}
	return answer{resp, string(text)}
}

func (b *browser) get(path string, headers ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", headers...)
}

// must sends a request and fails the test if the response has a different status.
func (b *browser) must(status int, method, path, body string, headers ...string) answer {
	b.t.Helper()
	a := b.do(method, path, body, headers...)
	if a.StatusCode != status {
		b.t.Fatalf("%s %s: got %d, want %d: %s", method, path, a.StatusCode, status, a.text)
	}
	return a
}

func formToken(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("there is no login form:\n%s", page)
	}
	return found[1]
}

// tryLogin fills in and submits the sign-in form of a page.
func (b *browser) tryLogin(path, key string, headers ...string) answer {
	b.t.Helper()
	form := url.Values{"token": {formToken(b.t, b.get(path).text)}, "key": {key}}
	return b.do(http.MethodPost, "/admin/login", form.Encode(), append([]string{"Content-Type: application/x-www-form-urlencoded"}, headers...)...)
}

// login signs in and fails the test if that fails.
func (b *browser) login(key string) {
	b.t.Helper()
	b.key = key
	if a := b.tryLogin("/admin/", key); a.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("login: %d %s", a.StatusCode, a.text)
	}
	b.csrf = regexp.MustCompile(`name="csrf" content="([^"]+)"`).FindStringSubmatch(b.must(http.StatusOK, http.MethodGet, "/admin/", "").text)[1]
}

func secretOf(key string) string { return key[len("flk_7Qd0XhVb2mTa_"):] }

// eventually polls until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, patience, pollTime, try)
}

func wantText(t *testing.T, text string, phrases ...string) {
	t.Helper()
	for _, phrase := range phrases {
		if !strings.Contains(text, phrase) {
			t.Errorf("got %q, want it to say %q", text, phrase)
		}
	}
}
