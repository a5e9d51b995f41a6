package oidctest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// Program is an identity provider that others wrote, in a process of its own. It knows the people ann, bob and eve, in the
// group staff. The email address of eve is in another domain.
type Program struct {
	Name string
	// Scope has everything that the tests need.
	Scope string
	// Front is the address of a proxy through which everyone reaches the provider, or empty.
	Front string
	// storage is where dex stores its state, as in its configuration.
	storage string
	// path is that of the issuer.
	path string
	// login is the format of what people type as their name.
	login   string
	command func(ctx context.Context, t testing.TB, p Program, addr, callback string) *exec.Cmd
}

// Password is the password of everyone.
const Password = "password"

// OIDCProvider returns a certified provider, from npm. Its refresh tokens stop working when a person is disabled.
func OIDCProvider() Program {
	return Program{Name: "oidc-provider", Scope: "openid,profile,email,groups", login: "%s", command: func(ctx context.Context, t testing.TB, _ Program, addr, callback string) *exec.Cmd {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, "node", "--no-warnings", "provider.mjs", port, callback)
		cmd.Dir = filepath.Join(root(t), "internal", "test", "oidctest")
		return cmd
	}}
}

// Dex returns dex, whose refresh tokens work once. It never answers a request to refresh a token: in memory, it waits for its
// own lock. See DexOnPostgres.
func Dex() Program {
	return Program{Name: "dex", storage: "{type: memory}", Scope: "openid,profile,email,groups", path: "/dex", login: "%s@example.com", command: func(ctx context.Context, t testing.TB, p Program, addr, callback string) *exec.Cmd {
		config := filepath.Join(t.TempDir(), "dex.yaml")
		if err := os.WriteFile(config, []byte(dexConfig(p.Issuer(addr), p.storage, addr, callback)), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(ctx, filepath.Join(root(t), ".bin", "dex"), "serve", config)
	}}
}

// DexOnPostgres returns dex with its state in a database.
func DexOnPostgres(pg *pgtest.Server, database string) Program {
	p := Dex()
	p.storage = fmt.Sprintf("{type: postgres, config: {host: %s, port: %d, user: %s, password: %q, database: %s, ssl: {mode: disable}}}",
		pg.Host, pg.Port, pg.User, pg.Pass, database)
	return p
}

func dexConfig(issuer, storage, addr, callback string) string {
	text := fmt.Sprintf(`issuer: %s
storage: %s
web: {http: "%s"}
logger: {level: error}
oauth2: {skipApprovalScreen: true}
expiry: {refreshTokens: {reuseInterval: 0s}}
staticClients:
  - {id: %s, secret: %s, name: Fairlead, redirectURIs: ["%s"]}
enablePasswordDB: true
staticPasswords:
`, issuer, storage, addr, ClientID, ClientSecret, callback)
	for _, name := range []string{"ann", "bob", "eve"} {
		email := name + "@example.com"
		if name == "eve" {
			email = "eve@example.org"
		}
		// The hash is that of Password.
		text += fmt.Sprintf(`  - {email: %s, username: %s, preferredUsername: %[2]s, userID: "%[2]s-1", groups: [staff], hash: "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"}
`, email, name)
	}
	return text
}

// root returns the directory of this repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Issuer returns the issuer of a provider at an address.
func (p Program) Issuer(addr string) string { return "http://" + cmp.Or(p.Front, addr) + p.path }

const (
	startLimit = time.Minute // a busy machine
	pollEvery  = 20 * time.Millisecond
)

// Start starts the provider at a free address on loopback, and waits until it answers. It runs until stop is called or the
// test ends.
func (p Program) Start(ctx context.Context, t testing.TB, addr, callback string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var out bytes.Buffer
	cmd := p.command(ctx, t, p, addr, callback)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("starting %s, which make e2e installs: %v", p.Name, err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = cmd.Wait() })
	stop = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		if t.Failed() {
			t.Logf("%s says (without its packages, run make e2e): %s", p.Name, out.String())
		}
	})
	t.Cleanup(stop)
	v := p.Visitor(t, "")
	waittest.Eventually(t, startLimit, pollEvery, func() error { return v.Open(ctx, p.Issuer(addr)+"/.well-known/openid-configuration") })
	return stop
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// Visitor is a person with a browser.
type Visitor struct {
	name string
	http *http.Client

	// PauseAt is the beginning of a URL to which the browser is not redirected. At is then that URL.
	PauseAt string
	// Text and At are the page that the person sees, and Visited lists the pages so far.
	Text    string
	At      *url.URL
	Visited []string
}

// Visitor returns one of the people, with a new browser.
func (p Program) Visitor(t testing.TB, name string) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if name == "eve" && p.login != "%s" {
		name = "eve@example.org"
	} else {
		name = fmt.Sprintf(p.login, name)
	}
	v := &Visitor{name: name, http: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	v.http.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxForms || v.PauseAt != "" && strings.HasPrefix(r.URL.String(), v.PauseAt) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return v
}

// Open opens a page.
func (v *Visitor) Open(ctx context.Context, address string) error {
	return v.send(ctx, http.MethodGet, address, nil)
}

// maxForms is more forms, and more redirects, than any provider has.
const maxForms = 10

// Until fills in and submits the form of the page, and of those that follow, until a page matches.
func (v *Visitor) Until(ctx context.Context, t testing.TB, page *regexp.Regexp) {
	t.Helper()
	for range maxForms {
		if page.MatchString(v.Text) {
			return
		}
		if err := v.Submit(ctx); err != nil {
			t.Fatalf("%q: %v\n%s", v.Visited, err, v.Text)
		}
	}
	t.Fatalf("%q: no page with %s:\n%s", v.Visited, page, v.Text)
}

// Submit fills in and submits the form of the page.
func (v *Visitor) Submit(ctx context.Context) error {
	action := formAction.FindStringSubmatch(v.Text)
	if action == nil {
		return fmt.Errorf("%s: a page without a form", v.At)
	}
	next, err := v.At.Parse(html.UnescapeString(action[1]))
	if err != nil {
		return err
	}
	form := url.Values{"login": {v.name}, "password": {Password}}
	for _, field := range formHidden.FindAllStringSubmatch(v.Text, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	return v.send(ctx, http.MethodPost, next.String(), form)
}

func (v *Visitor) send(ctx context.Context, method, address string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := v.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	v.Text, v.At = string(text), res.Request.URL
	if next, err := res.Location(); err == nil {
		v.At = next
	}
	v.Visited = append(v.Visited, fmt.Sprintf("%d %s", res.StatusCode, v.At))
	return nil
}
