package bff

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestHealthTellsWhetherTheServiceIsReached(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	for coordinator, url := range map[string]string{"reachable": f.URL, "unreachable": "http://127.0.0.1:1"} {
		a := start(t, url, nil).must(http.StatusOK, http.MethodGet, "/health", "")
		if diff := cmp.Diff(Health{Status: "pass", Version: "v1", Coordinator: coordinator}, decode[Health](t, a)); diff != "" || a.Header.Get("Content-Type") != "application/health+json" {
			t.Errorf("%v (-want +got):\n%s", a.Header, diff)
		}
	}
	c := start(t, f.URL, nil)
	f.requests()
	for range 20 {
		c.get("/health")
	}
	if n := len(f.requests()); n > 5 {
		t.Errorf("20 probes ask the service %d times", n)
	}
}

func TestEachAddressHasItsStatusAndUnknownOnesAreLogged(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	check := func(who string, want map[string]int) {
		for path, status := range want {
			before := len(c.log.String())
			a := c.get(path)
			if a.StatusCode != status {
				t.Errorf("%s: %s: %d, want %d", who, path, a.StatusCode, status)
			}
			lines := strings.Count(c.log.String()[before:], `msg="No route matches URL \"`+strings.TrimSuffix(path, "?")+`\"`)
			if want := map[bool]int{true: 1}[status == http.StatusNotFound]; lines != want {
				t.Errorf("%s: %s is logged %d times as unmatched", who, path, lines)
			}
		}
	}
	known := map[string]int{"/health": 200, "/admin/assets/app-1a2b.js": 200}
	for _, page := range []string{
		"", "nodes", "nodes/7", "nodes/new", "users", "users/7", "routes", "keys", "policy", "policy/versions", "policy/versions/3", "access", "timeline",
		"settings/api-keys", "settings/appearance", "settings/server", "settings/cluster", "cluster", "settings/dns", "settings/webhooks", "requests",
	} {
		known["/admin/"+page] = 200
	}
	unknown := map[string]int{}
	for _, path := range []string{
		"/", "/admin", "/admin/favicon.ico", "/favicon.ico", "/admin/nowhere", "/admin/nodes/", "/admin/nodes/x", "/admin//", "/admin/nodes/7/x", "/health/",
		"/admin/assets/", "/admin/assets/other.js", "/admin/index.html", "/admin/.keep", "/admin/assets/app-1a2b.js.map", "/admin/assets/app-1a2b.js.br", "/api/v1/node",
	} {
		unknown[path] = 404
	}
	check("a stranger", known)
	check("a stranger", unknown)
	for _, path := range []string{"/admin/nowhere", "/admin", "/"} {
		if text := c.get(path).text; strings.Contains(text, "csrf") || !strings.Contains(text, `Page not found`) || !strings.Contains(text, `href="/admin/"`) {
			t.Errorf("%s shows a stranger %s", path, text)
		}
	}
	c.login(newKey(t))
	check("a person", known)
	check("a person", unknown)
	wantText(t, c.get("/admin/nowhere").text, `<meta name="csrf"`)
	c.must(http.StatusMethodNotAllowed, http.MethodPost, "/admin/nodes", "")
}

// TestHeadersAreTheGoldenOnes pins the exact headers of every kind of response.
func TestHeadersAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	var got strings.Builder
	show := func(name string, a answer) {
		fmt.Fprintf(&got, "# %s\n%s\n", name, a.Status)
		for _, header := range sortedKeys(a.Header) {
			for _, text := range a.Header[header] {
				fmt.Fprintf(&got, "%s: %s\n", header, text)
			}
		}
		got.WriteString("\n")
	}
	tls := "X-Forwarded-Proto: https"
	show("login page", c.get("/admin/", tls))
	show("no page", c.get("/admin/nowhere"))
	show("no route", c.get("/"))
	show("health", c.get("/health"))
	show("no session", c.get("/admin/api/session"))
	show("login", c.tryLogin("/admin/", key))
	show("shell", c.get("/admin/nodes"))
	show("session", c.get("/admin/api/session"))
	show("call", c.get("/admin/api/v1/dns"))
	show("asset", c.get("/admin/assets/app-1a2b.js", "Accept-Encoding: gzip, br"))
	c.csrf = decode[sessionInfo](t, c.get("/admin/api/session")).CSRF
	show("logout", c.do(http.MethodPost, "/admin/logout", ""))

	text := got.String()
	for pattern, word := range map[string]string{
		`nonce-[A-Za-z0-9_-]{22}'`: "nonce-NONCE'", `(?m)^X-Request-Id: \S+`: "X-Request-Id: ID", `(?m)^Date: .*`: "Date: NOW", `(?m)^Mesh-Revision: \d+`: "Mesh-Revision: N",
		`(?m)^Etag: .*`: "Etag: TAG", `(?m)^Content-Length: .*\n`: "", `(fairlead_\w+)=[A-Za-z0-9_-]+;`: "$1=SEALED;",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, word)
	}
	const golden = "testdata/headers.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), text); err != nil || diff != "" {
		t.Errorf("%v; run with -update if it shall be so (-want +got):\n%s", err, diff)
	}
}

func TestEachPageHasItsOwnNonce(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	seen := map[string]bool{}
	for range 3 {
		a := c.get("/admin/")
		nonce := regexp.MustCompile(`script-src 'self' 'nonce-([^']+)'`).FindStringSubmatch(a.Header.Get("Content-Security-Policy"))[1]
		if seen[nonce] || strings.Count(a.text, nonce) != 2 || strings.Contains(a.text, nonceWord) || strings.Contains(a.text, csrfWord) {
			t.Errorf("nonce %s: %s", nonce, a.text)
		}
		seen[nonce] = true
	}
}

func TestFilesComeInTheSmallestFormThatIsTaken(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	for accepted, want := range map[string][2]string{
		"gzip, deflate, br, zstd": {"br", "brotli"}, "gzip": {"gzip", "gzip"}, "br;q=0, gzip;q=0.5": {"gzip", "gzip"}, "identity": {"", "plain"},
	} {
		a := c.get("/admin/assets/app-1a2b.js", "Accept-Encoding: "+accepted)
		if a.Header.Get("Content-Encoding") != want[0] || a.text != want[1] {
			t.Errorf("%s: %s, %q", accepted, a.Header.Get("Content-Encoding"), a.text)
		}
	}
	wantText(t, c.get("/admin/").text, `/admin/assets/inter-latin-wght-normal-Ab.woff2`, `href="/admin/assets/mark-Cd.svg"`)
}

func TestWithoutABundleThePageSaysSo(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	var err error
	if c.server.bundle, err = readBundle(fstest.MapFS{".keep": {}}); err != nil {
		t.Fatal(err)
	}
	wantText(t, c.get("/admin/").text, "API key") // people can still sign in
	c.tryLogin("/admin/", newKey(t))
	page := c.must(http.StatusOK, http.MethodGet, "/admin/nodes", "").text
	wantText(t, page, "web bundle is missing", "Sign out")
}

func TestAConsoleRunsIsProbedAndStops(t *testing.T) {
	t.Parallel()
	addr := porttest.Addr(t)
	if err := Probe(t.Context(), addr); err == nil {
		t.Error("a console that does not run is well")
	}
	var log waittest.Transcript
	config := Config{CoordinatorURL: service().url, CookieSecret: cookieSecret, ListenAddr: addr, Warnings: []string{"a warning"}}
	s, err := New(config, "v1", fstest.MapFS{}, NewLogger(&log, config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	_, port, _ := net.SplitHostPort(addr)
	eventually(t, func() error { return Probe(ctx, "0.0.0.0:"+port) })
	b := newBrowser(t, "http://"+addr)
	if a := b.get("/health", "X-Long: "+strings.Repeat("x", 2*maxHeaderBytes)); a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long headers: %s", a.Status)
	}
	b.tryLogin("/admin/", newKey(t))
	open := b.stream()
	open.await("retry: 1000", patience)
	stop()
	open.await("retry: 3000", patience)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantText(t, log.String(), "a warning", "bundle is missing", "no api_key is set", "listening")
}
