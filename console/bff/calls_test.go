package bff

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("%s: %v: %s", a.Status, err, a.text)
	}
	return v
}

func TestTheSessionTellsWhoIsLoggedIn(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	if p := decode[apiclient.Problem](t, c.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")); p.Type != "session_ended" || p.Code != 16 {
		t.Errorf("without a session: %+v", p)
	}
	key := newKey(t, "--role", "operator", "--scope", "nodes")
	c.login(key)
	got := decode[sessionInfo](t, c.must(http.StatusOK, http.MethodGet, "/admin/api/session", ""))
	if got.Key.Expiration == nil || got.Coordinator.Version == "" || got.Coordinator.ProductVersion == "" || len(got.Capabilities) != len(operations()) {
		t.Errorf("%+v", got)
	}
	id := strings.Split(key, "_")[1]
	want := sessionInfo{
		Key:  keyInfo{ID: id, Prefix: "flk_" + id + "_***", Role: "operator", Scopes: []string{"nodes"}, Expiration: got.Key.Expiration},
		CSRF: c.csrf, Coordinator: coordinatorInfo{"http://127.0.0.1", got.Coordinator.Version, got.Coordinator.ProductVersion},
		Console: consoleInfo{"v1"}, Capabilities: got.Capabilities,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASessionGoesOnWithAnotherKey(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	old, next := newKey(t), newKey(t, "--role", "read")
	c.login(old)
	change := func(key string, headers ...string) answer {
		return c.do(http.MethodPost, "/admin/api/session", `{"key":"`+key+`"}`, headers...)
	}
	if a := change(next, "X-CSRF: x"); a.StatusCode != http.StatusForbidden {
		t.Errorf("without its token: %s", a.Status)
	}
	if a := change("wrong"); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.text, textRefused) {
		t.Errorf("a wrong key: %s %s", a.Status, a.text)
	}
	c.must(http.StatusOK, http.MethodGet, "/admin/api/session", "")
	a := change(next)
	c.key = next
	got := decode[sessionInfo](t, a)
	if a.StatusCode != http.StatusOK || got.Key.Role != "read" || got.CSRF == c.csrf {
		t.Fatalf("%s %s", a.Status, a.text)
	}
	revoke(t, old)
	c.must(http.StatusOK, http.MethodGet, "/admin/api/v1/node", "")
	for range freeTries {
		change("wrong", "X-CSRF: "+got.CSRF)
	}
	if a := change("wrong", "X-CSRF: "+got.CSRF); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("guessing: %s", a.Status)
	}
}

func TestCallsReachTheServiceAsThePerson(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, func(config *Config) { config.APIKey = newKey(t, "--role", "read") })
	key := newKey(t)
	c.login(key)
	f.requests()
	name, renamed := newName(), newName()
	a := c.must(http.StatusOK, http.MethodPost, "/admin/api/v1/user", `{"name":"`+name+`"}`, "Idempotency-Key: once-"+key[4:16], "Authorization: Bearer forged",
		"Forwarded: for=9.9.9.9", "X-Forwarded-For: 198.51.100.9", "X-Request-Id: forged", "X-Other: x")
	if a.Header.Get("Mesh-Revision") == "" || a.Header.Get("X-Request-Id") == "" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a.Header)
	}
	sent := f.requests()[0]
	for header, want := range map[string]string{
		"Authorization": "Bearer " + key, "X-Request-Id": a.Header.Get("X-Request-Id"), "X-Forwarded-For": "198.51.100.9", "Content-Type": "application/json",
		"Idempotency-Key": "once-" + key[4:16], "Cookie": "", "Forwarded": "", "X-Csrf": "", "Origin": "", "Sec-Fetch-Site": "", "X-Other": "",
	} {
		if got := sent.Header.Get(header); got != want {
			t.Errorf("%s reaches the service as %q, want %q", header, got, want)
		}
	}
	id := decode[struct{ User apiclient.User }](t, a).User.ID
	read := c.must(http.StatusOK, http.MethodGet, "/admin/api/v1/user/"+id, "", "Mesh-Min-Revision: "+a.Header.Get("Mesh-Revision"))
	etag := read.Header.Get("ETag")
	c.must(http.StatusPreconditionFailed, http.MethodPost, "/admin/api/v1/user/"+id+"/rename/other", "", `If-Match: "0"`)
	c.must(http.StatusOK, http.MethodPost, "/admin/api/v1/user/"+id+"/rename/"+renamed, "", "If-Match: "+etag)
	audit := c.must(http.StatusOK, http.MethodGet, "/admin/api/v1/audit?kind=user&limit=1000", "")
	wantText(t, audit.text, key[4:16], "198.51.100.9", renamed)
}

func TestAChangeNeedsAllFourChecks(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	other := start(t, f.URL, nil)
	other.login(newKey(t))
	f.requests()
	change := func(headers ...string) int {
		return c.do(http.MethodPost, "/admin/api/v1/node/expire", `{"ids":[]}`, headers...).StatusCode
	}
	for name, headers := range map[string][]string{
		"no token": {"X-CSRF:"}, "a wrong token": {"X-CSRF: x"}, "the token of another session": {"X-CSRF: " + other.csrf},
		"a form": {"Content-Type: application/x-www-form-urlencoded"}, "text": {"Content-Type: text/plain"}, "no type": {"Content-Type:"},
		"another site": {"Sec-Fetch-Site: cross-site"}, "a sibling": {"Sec-Fetch-Site: same-site"}, "by hand": {"Sec-Fetch-Site: none"},
		"an old browser on another site": {"Sec-Fetch-Site:", "Origin: https://evil.example"}, "neither": {"Sec-Fetch-Site:", "Origin:"}, "null": {"Sec-Fetch-Site:", "Origin: null"},
	} {
		if got := change(headers...); got != http.StatusForbidden {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := c.do(http.MethodGet, "/admin/api/v1/node/expire", "").StatusCode; got != http.StatusMethodNotAllowed {
		t.Errorf("by GET: %d", got)
	}
	if sent := f.requests(); len(sent) > 0 {
		t.Errorf("the service was asked for %s", sent[0].URL)
	}
	for _, headers := range [][]string{nil, {"Sec-Fetch-Site:"}, {"Content-Type: application/json; charset=utf-8"}} {
		if got := change(headers...); got == http.StatusForbidden {
			t.Errorf("a page of the console with %v: %d", headers, got)
		}
	}
	if got := c.get("/admin/api/v1/node").Header; got.Get("Access-Control-Allow-Origin") != "" {
		t.Error("other sites may read answers")
	}
}

func TestOnlyTheTableReachesTheService(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	f.requests()
	for address, want := range map[string]int{
		"/admin/api/v1/debug/profile": 404, "/admin/api/v1/openapi.yaml": 404, "/admin/api/v1/": 404, "/admin/api/v2/node": 404, "/admin/api": 404,
		"/admin/api/v1/node/..%2f..%2fversion": 404, "/admin/api/v1/node/../user": 404, "/admin/api/v1//node": 404, "/admin/api/v1/node/7%2e%2e": 404,
		"/admin//api/v1/node": 404, "/admin/api/v1/node?url=http://evil.example": 400, "/admin/api/v1/node;x=1": 404,
	} {
		if a := c.get(address); a.StatusCode != want || a.Header.Get("Location") != "" {
			t.Errorf("%s: %s", address, a.Status)
		}
	}
	if a := c.do(http.MethodPost, "/admin/api/v1/user", strings.Repeat("x", bodyLimit+1)); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %s", a.Status)
	}
	if a := c.do(http.MethodPost, "/admin/api/v1/policy/confirm", "{}"); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body where none belongs: %s", a.Status)
	}
	if sent := f.requests(); len(sent) > 0 {
		t.Errorf("the service was asked for %s", sent[0].URL)
	}
}

func TestErrorsOfTheServiceStayAndOthersAreReplaced(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t, "--role", "read"))
	for path, want := range map[string]int{"/admin/api/v1/node/999999": 404, "/admin/api/v1/node?limit=x": 400} {
		a := c.must(want, http.MethodGet, path, "")
		if p := decode[apiclient.Problem](t, a); p.Status != want || p.Type != "about:blank" || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	c.must(http.StatusForbidden, http.MethodPost, "/admin/api/v1/user", `{"name":"nobody"}`)

	answer := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "http://evil.example/")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	const inner = "inner <b>secret</b>"
	for name, fault := range map[string]http.HandlerFunc{
		"a page of a proxy": answer(500, "text/html", inner), "a redirect": answer(302, "application/json", inner), "a page": answer(200, "text/html", inner),
		"away": hangUp,
	} {
		f.set(fault)
		a := c.must(http.StatusBadGateway, http.MethodGet, "/admin/api/v1/node", "")
		p := decode[apiclient.Problem](t, a)
		if p.Type != "coordinator_unreachable" || strings.Contains(a.text, "inner") || a.Header.Get("Location") != "" || len(a.Cookies()) > 0 || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %s %v", name, a.text, a.Header)
		}
	}
	f.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(maxAnswer+1))
		w.WriteHeader(http.StatusOK)
	})
	if a := c.get("/admin/api/v1/node"); a.StatusCode != http.StatusBadGateway || !strings.Contains(a.text, "too large") {
		t.Errorf("a huge answer: %s %s", a.Status, a.text)
	}
	f.set(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if a := c.get("/admin/api/v1/node"); a.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("a service that hangs: %s", a.Status)
	}
	f.set(nil)
	c.must(http.StatusOK, http.MethodGet, "/admin/api/v1/node", "")
}

// The server, or a proxy in front of it, may close an idle connection at the moment it is reused.
func TestWhatChangesNothingIsAskedAgainOverAnotherConnection(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	for body, repeated := range map[[2]string]bool{
		{"policy/access", `{"by":"users"}`}: true,
		{"policy/check", `{"policy":"{}"}`}: true,
		{"user", `{"name":"once"}`}:         false,
	} {
		c.must(http.StatusOK, http.MethodGet, "/admin/api/v1/user", "") // leaves an idle connection for reuse
		var asked atomic.Int32
		f.set(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			f.set(nil)
			hangUp(w, r)
		})
		want := http.StatusBadGateway
		if repeated {
			want = http.StatusOK
		}
		if a := c.do(http.MethodPost, "/admin/api/v1/"+body[0], body[1]); a.StatusCode != want || asked.Load() != 1 {
			t.Errorf("%s: %s, cut off %d times: %s", body[0], a.Status, asked.Load(), a.text)
		}
		f.set(nil)
	}
}

func TestARevokedKeyEndsItsSessions(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	c.login(key)
	second := newBrowser(t, c.base)
	second.login(key)
	revoke(t, key)

	a := c.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/v1/node", "")
	if p := decode[apiclient.Problem](t, a); p.Type != "session_ended" || a.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("%+v", p)
	}
	page := c.get("/admin/nodes")
	wantText(t, page.text, textRevoked, `name="token"`)
	if got := page.Cookies()[0].MaxAge; got != 60 {
		t.Errorf("other tabs are told for %d seconds", got)
	}
	wantText(t, c.get("/admin/keys").text, textRevoked)
	// The other window finds out by itself, after the cached key check of its last page has expired.
	eventually(t, func() error {
		if a := second.get("/admin/nodes"); !strings.Contains(a.text, textRevoked) {
			return fmt.Errorf("still logged in: %s", a.Status)
		}
		return nil
	})
	second.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
}

func TestSessionsOutliveAServiceThatIsAway(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	c.login(newKey(t))
	f.set(hangUp)
	eventually(t, func() error {
		if a := c.get("/admin/api/session"); a.StatusCode != http.StatusBadGateway {
			return fmt.Errorf("the session: %s", a.Status)
		}
		return nil
	})
	wantText(t, c.must(http.StatusOK, http.MethodGet, "/admin/nodes", "").text, `<meta name="csrf"`)
	f.set(nil)
	c.must(http.StatusOK, http.MethodGet, "/admin/api/session", "")
}

func TestAnotherCookieSecretEndsAllSessions(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	other := start(t, service().url, func(config *Config) { config.CookieSecret = strings.ToLower(cookieSecret) })
	other.http.Jar = c.http.Jar
	other.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
	c.must(http.StatusOK, http.MethodGet, "/admin/api/session", "")
}
