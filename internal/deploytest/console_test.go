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

// visitor is a browser without scripts in front of a console.
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

// get returns the answer to a request, and its body.
func (v *visitor) get(path string) (*http.Response, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(r)
}

// login sends the form that an address shows, and follows to where it leads.
func (v *visitor) login(path, key string) (*http.Response, string) {
	v.t.Helper()
	_, form := v.get(path)
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

func (v *visitor) do(r *http.Request) (*http.Response, string) {
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
	return answer, string(body)
}

// testConsole: through the proxy a person logs in with a key and gets the real
// pages, until the key is revoked.
func testConsole(t *testing.T, s *Stack) {
	s = s.In(t)
	v := newVisitor(t, "http://"+s.Addr("CONSOLE_PUBLISH"))
	_, page := v.login("/admin/nodes", "flk_0123456789ab_0123456789abcdefghijklmnopqrstuvwxyz0123456")
	wantText(t, page, "Authentication failed: invalid API key")

	key := strings.TrimSpace(s.Exec("fairlead", "fairlead", "apikeys", "create", "--expiration", "1h"))
	answer, page := v.login("/admin/nodes", key)
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/admin/nodes" {
		t.Fatalf("the login leads to %s, %s:\n%s", answer.Request.URL, answer.Status, page)
	}
	wantText(t, page, `<div id="root"></div>`, `<script type="module"`)
	testConsoleAssets(t, v, page)

	_, session := v.get("/admin/api/session")
	wantText(t, session, `"url":"http://fairlead:8080"`, `"capabilities":[`)
	_, nodes := v.get("/admin/api/v1/node")
	wantText(t, nodes, `"nodes":[`)

	for path, want := range map[string]int{"/": 404, "/admin": 404, "/admin/": 200, "/admin/favicon.ico": 404, "/admin/nowhere": 404, "/api/v1/node": 404} {
		if answer, _ := v.get(path); answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, answer.Status, want)
		}
	}
	wantText(t, s.Logs("console"), `No route matches URL \"/admin/favicon.ico\"`, `No route matches URL \"/admin/nowhere\"`)
	if strings.Contains(s.Logs("console"), key) {
		t.Error("the log of the console holds the key")
	}

	s.Exec("fairlead", "fairlead", "apikeys", "expire", "--key", key)
	eventually(t, patience, func() error {
		answer, page := v.get("/admin/nodes")
		if answer.StatusCode == http.StatusOK && strings.Contains(page, "signed out because this key was revoked") {
			return nil
		}
		return fmt.Errorf("%s with a revoked key", answer.Status)
	})
}

// testConsoleAssets fetches all that a page names.
func testConsoleAssets(t *testing.T, v *visitor, page string) {
	t.Helper()
	var kinds []string
	for _, found := range assetName.FindAllStringSubmatch(page, -1) {
		answer, body := v.get(found[1])
		if answer.StatusCode != http.StatusOK || body == "" || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, %d bytes, %v", found[1], answer.Status, len(body), answer.Header)
		}
		kinds = append(kinds, strings.Split(answer.Header.Get("Content-Type"), ";")[0])
	}
	for _, kind := range []string{"text/javascript", "text/css", "image/svg+xml"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("the page loads no %s, but %q", kind, kinds)
		}
	}
}
