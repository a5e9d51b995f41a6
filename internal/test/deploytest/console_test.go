//go:build !race

package deploytest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)
	assetName = regexp.MustCompile(`"(/admin/assets/[\w.-]+)"`)
)

// visitor is a browser without JavaScript that visits a console.
type visitor struct {
	t      *testing.T
	base   string
	client http.Client
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, base, http.Client{Jar: jar}}
}

// page is a response and the address at which the browser ended up.
type page struct {
	status     int
	path, body string
	header     http.Header
}

func (v *visitor) get(path string) page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(r)
}

// login submits the login form at a path and follows the redirects.
func (v *visitor) login(path, key string) page {
	v.t.Helper()
	form := v.get(path).body
	token := formToken.FindStringSubmatch(form)
	if token == nil {
		v.t.Fatalf("there is no form at %s:\n%s", path, form)
	}
	values := url.Values{"token": {token[1]}, "key": {key}}
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+"/admin/login", strings.NewReader(values.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", v.base)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.do(r)
}

func (v *visitor) do(r *http.Request) page {
	v.t.Helper()
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return page{answer.StatusCode, answer.Request.URL.Path, string(body), answer.Header}
}

// testConsole checks that a person can log in with an API key through the proxy and gets the real
// pages until the key is revoked.
func testConsole(t *testing.T, s *Stack) {
	s = s.In(t)
	v := newVisitor(t, "http://"+s.Addr("CONSOLE_PUBLISH"))
	refused := v.login("/admin/nodes", "flk_0123456789ab_0123456789abcdefghijklmnopqrstuvwxyz0123456")
	_, port, _ := strings.Cut(s.Env("PROXY_DEV_PUBLISH"), ":")
	wantText(t, refused.body, "Authentication failed: invalid API key", "Console for localhost:"+port+"<")

	key := strings.TrimSpace(s.Exec("fairlead", "fairlead", "apikeys", "create", "--expiration", "1h"))
	nodes := v.login("/admin/nodes", key)
	if nodes.status != http.StatusOK || nodes.path != "/admin/nodes" {
		t.Fatalf("the login leads to %s, %d:\n%s", nodes.path, nodes.status, nodes.body)
	}
	wantText(t, nodes.body, `<div id="root"></div>`, `<script type="module"`)
	testConsoleAssets(t, v, nodes.body)
	wantText(t, v.get("/admin/api/session").body, `"url":"http://localhost:`, `"capabilities":[`) // the server URL that devices use
	wantText(t, v.get("/admin/api/v1/node").body, `"nodes":[`)

	for path, want := range map[string]int{"/": 404, "/admin": 404, "/admin/": 200, "/admin/favicon.ico": 404, "/admin/nowhere": 404, "/api/v1/node": 404} {
		if got := v.get(path).status; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for _, path := range []string{"/", "/admin"} {
		wantText(t, v.get(path).body, `The console is at <a href="/admin/">`)
	}
	log := s.Logs("console")
	wantText(t, log, `No route matches URL \"/admin/favicon.ico\"`, `No route matches URL \"/admin/nowhere\"`)
	if strings.Contains(log, key) {
		t.Error("the log of the console holds the key")
	}

	s.Exec("fairlead", "fairlead", "apikeys", "expire", "--key", key)
	eventually(t, patience, func() error {
		if got := v.get("/admin/nodes"); !strings.Contains(got.body, "signed out because this key was revoked") {
			return fmt.Errorf("%d with a revoked key:\n%s", got.status, got.body)
		}
		return nil
	})
}

// testConsoleAssets fetches every asset that a page refers to.
func testConsoleAssets(t *testing.T, v *visitor, html string) {
	t.Helper()
	var kinds []string
	for _, found := range assetName.FindAllStringSubmatch(html, -1) {
		asset := v.get(found[1])
		if asset.status != http.StatusOK || asset.body == "" || !strings.Contains(asset.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, %d bytes, %v", found[1], asset.status, len(asset.body), asset.header)
		}
		kinds = append(kinds, strings.Split(asset.header.Get("Content-Type"), ";")[0])
	}
	for _, kind := range []string{"text/javascript", "text/css", "image/svg+xml"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("the page loads no %s, but %q", kind, kinds)
		}
	}
}
