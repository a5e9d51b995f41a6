package bff

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestLoginLeadsWhereThePersonWantedToGo(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	before := c.get("/admin/nodes?filter=tag%3Adb")
	if before.StatusCode != http.StatusOK {
		t.Errorf("without a session: %s", before.Status)
	}
	wantText(t, before.text, "<title>Fairlead</title>", `type="password" autocomplete="current-password" maxlength="256"`, "console v1", "Where do I get an API key?", "fairlead apikeys create")
	if strings.Contains(before.text, "<script") {
		t.Error("the login page has a script")
	}
	a := c.tryLogin("/admin/nodes?filter=tag%3Adb", " "+key+"\n")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/admin/nodes?filter=tag%3Adb" {
		t.Fatalf("%s to %q: %s", a.Status, a.Header.Get("Location"), a.text)
	}
	wantText(t, c.get("/admin/nodes").text, `<meta name="csrf" content="`)
	if a := c.get("/admin/login"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/admin/" {
		t.Errorf("the login page of somebody logged in: %s", a.Status)
	}
}

func TestCookiesAreClosedToScriptsAndBoundToTLS(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	find := func(a answer, name string) *http.Cookie {
		for _, cookie := range a.Cookies() {
			if cookie.Name == name {
				return cookie
			}
		}
		t.Fatalf("no cookie %s: %v", name, a.Header["Set-Cookie"])
		return nil
	}
	plain := find(c.tryLogin("/admin/", key), "fairlead_session")
	if !plain.HttpOnly || plain.Secure || plain.SameSite != http.SameSiteLaxMode || plain.Path != "/admin/" || len(plain.Value) > 1000 || plain.MaxAge <= 0 {
		t.Errorf("over plain HTTP: %+v", plain)
	}
	// The jar does not send Secure cookies over plain HTTP, so set the headers by hand.
	page := c.get("/admin/", "X-Forwarded-Proto: https", "Cookie: none=1")
	word := find(page, "__Secure-fairlead_login")
	form := url.Values{"token": {formToken(t, page.text)}, "key": {key}}.Encode()
	secure := find(c.do(http.MethodPost, "/admin/login", form, "Content-Type: application/x-www-form-urlencoded", "X-Forwarded-Proto: https",
		"Cookie: "+word.Name+"="+word.Value), "__Secure-fairlead_session")
	if !secure.HttpOnly || !secure.Secure || secure.SameSite != http.SameSiteLaxMode || secure.Path != "/admin/" {
		t.Errorf("over TLS: %+v", secure)
	}
	// A session cookie issued over plain HTTP is invalid under the __Secure- name.
	for _, value := range []string{plain.Value, secure.Value[1:], "x", ""} {
		a := c.get("/admin/api/session", "X-Forwarded-Proto: https", "Cookie: __Secure-fairlead_session="+value)
		if a.StatusCode != http.StatusUnauthorized {
			t.Errorf("a session that is not one: %s", a.Status)
		}
	}
	if a := c.get("/admin/api/session", "X-Forwarded-Proto: https", "Cookie: __Secure-fairlead_session="+secure.Value); a.StatusCode != http.StatusOK {
		t.Errorf("the session: %s", a.Status)
	}
	if strings.Contains(plain.Value, key) || strings.Contains(c.log.String(), strings.SplitN(key, "_", 3)[2]) {
		t.Error("the key is readable")
	}
}

func TestEveryLoginHasASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	c.login(key)
	first := c.csrf
	c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	c.login(key)
	if c.csrf == first {
		t.Error("the second session has the token of the first")
	}
}

func TestLoginRefusalsHaveOneText(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	revoked := newKey(t)
	revoke(t, revoked)
	for _, key := range []string{"", "nonsense", "flk_AAAAAAAAAAAA_" + strings.Repeat("x", 43), revoked, "flk_" + strings.Repeat("x", 300)} {
		began := time.Now()
		a := c.tryLogin("/admin/users", key, "X-Forwarded-For: 198.51.100."+fmt.Sprint(len(key)%250))
		if a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.text, "Authentication failed: invalid API key") || len(a.Cookies()) != 1 {
			t.Errorf("%q: %s %v %s", key, a.Status, a.Cookies(), a.text)
		}
		if key != "" && strings.Contains(a.text, key) {
			t.Errorf("the page shows %q", key)
		}
		if time.Since(began) < refusalTime {
			t.Errorf("%q is refused sooner than a key that was looked up", key)
		}
	}
}

func TestAFormThatThisConsoleDidNotMakeIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	token := formToken(t, c.get("/admin/").text)
	stranger := start(t, service().url, nil)
	for name, try := range map[string]func() answer{
		"another site":     func() answer { return c.tryLogin("/admin/", key, "Sec-Fetch-Site: cross-site") },
		"a sibling":        func() answer { return c.tryLogin("/admin/", key, "Sec-Fetch-Site: same-site") },
		"another origin":   func() answer { return c.tryLogin("/admin/", key, "Origin: https://evil.example") },
		"no origin":        func() answer { return c.tryLogin("/admin/", key, "Origin:") },
		"no token":         func() answer { return post(c.browser, "key="+key) },
		"a forged token":   func() answer { return post(c.browser, "token="+token[:len(token)-2]+"AA&key="+key) },
		"no cookie":        func() answer { return post(newBrowser(t, c.base), "token="+token+"&key="+key) },
		"another's cookie": func() answer { stranger.get("/admin/"); return post(stranger.browser, "token="+token+"&key="+key) },
		"JSON":             func() answer { return c.do(http.MethodPost, "/admin/login", `{"key":"`+key+`"}`) },
		"too much":         func() answer { return post(c.browser, "token="+token+"&key="+strings.Repeat("x", 10_000)) },
	} {
		a := try()
		if a.StatusCode != http.StatusForbidden || hasSession(a) {
			t.Errorf("%s: %s, %v", name, a.Status, a.Cookies())
		}
	}
}

func post(b *browser, form string) answer {
	return b.do(http.MethodPost, "/admin/login", form, "Content-Type: application/x-www-form-urlencoded")
}

func hasSession(a answer) bool {
	for _, cookie := range a.Cookies() {
		if strings.Contains(cookie.Name, "session") && cookie.MaxAge > 0 {
			return true
		}
	}
	return false
}

func TestGuessingIsSlowedDownPerNetwork(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	for range freeTries {
		if a := c.tryLogin("/admin/", "wrong", "X-Forwarded-For: 2001:db8::1"); a.StatusCode != http.StatusUnauthorized {
			t.Fatal(a.Status)
		}
	}
	key := newKey(t)
	a := c.tryLogin("/admin/", key, "X-Forwarded-For: 2001:db8::2")
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" || !strings.Contains(a.text, "Too many attempts. Try again in 1") {
		t.Errorf("%s, %q: %s", a.Status, a.Header.Get("Retry-After"), a.text)
	}
	if a := c.tryLogin("/admin/", key, "X-Forwarded-For: 2001:db8:0:1::1"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("another network: %s", a.Status)
	}
}

func TestStrangersCannotLockAdministratorsOut(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	token := formToken(t, c.get("/admin/").text)
	const strangers = 100
	var group errgroup.Group
	group.SetLimit(20)
	for i := range strangers {
		group.Go(func() error {
			wrong := fmt.Sprintf("flk_%012d_%s", i, strings.Repeat("x", 43))
			a := c.do(http.MethodPost, "/admin/login", url.Values{"token": {token}, "key": {wrong}}.Encode(), "Content-Type: application/x-www-form-urlencoded",
				fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i))
			if a.StatusCode != http.StatusUnauthorized {
				return fmt.Errorf("stranger %d: %s", i, a.Status)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if a := c.tryLogin("/admin/", key, "X-Forwarded-For: 198.51.100.7"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("after %d bad tries from other addresses a good key gets %s, Retry-After %s", strangers, a.Status, a.Header.Get("Retry-After"))
	}
}

func TestABrowserThatWasLoggedInIsNotSlowedDownByItsNeighbours(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	key := newKey(t)
	c.login(key)
	c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	stranger := newBrowser(t, c.base) // from the same address
	for range freeTries {
		stranger.tryLogin("/admin/", "wrong")
	}
	if a := stranger.tryLogin("/admin/", key); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the stranger: %s", a.Status)
	}
	c.login(key)
	c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	for range freeTries {
		c.tryLogin("/admin/", "wrong")
	}
	if a := c.tryLogin("/admin/", key); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("its own tries do not count: %s", a.Status)
	}
}

func TestAServiceThatIsAwayIsToldApartFromAWrongKey(t *testing.T) {
	t.Parallel()
	f := startFaults(t)
	c := start(t, f.URL, nil)
	key := newKey(t)
	f.set(hangUp)
	for range freeTries + 2 { // attempts during an outage do not count
		a := c.tryLogin("/admin/", key)
		if a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(a.text, "is not responding") || strings.Contains(a.text, textRefused) {
			t.Fatalf("%s: %s", a.Status, a.text)
		}
	}
	f.set(nil)
	c.login(key)
}

func TestLogAndLoginPageTellOfAServerThatIsUnreachable(t *testing.T) {
	t.Parallel()
	const notice = "cannot be reached. You can sign in once it is back"
	f := startFaults(t)
	f.set(hangUp)
	c := start(t, f.URL, nil)
	wantText(t, c.get("/admin/").text, notice, f.Listener.Addr().String(), `name="token"`)
	wantText(t, c.log.String(), "level=WARN", "server unreachable; nobody can sign in until it is back")
	page := func(want bool) {
		t.Helper()
		eventually(t, func() error {
			if a := c.get("/admin/"); strings.Contains(a.text, notice) != want {
				return fmt.Errorf("the notice is not %v: %s", want, a.text)
			}
			return nil
		})
	}
	f.set(nil)
	page(false)
	wantText(t, c.log.String(), "server reachable again")
	f.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }) // as a proxy in between would respond
	page(true)
	if n := strings.Count(c.log.String(), "server unreachable"); n != 2 {
		t.Errorf("the log tells of two outages %d times", n)
	}
}

// TestAConsoleWarnsAtItsStartOfAServerThatIsUnreachable: the warning comes before the
// first visitor.
func TestAConsoleWarnsAtItsStartOfAServerThatIsUnreachable(t *testing.T) {
	t.Parallel()
	config := Config{CoordinatorURL: "http://" + porttest.Addr(t), CookieSecret: cookieSecret, ListenAddr: "127.0.0.1:0"}
	var log waittest.Transcript
	s, err := New(config, "v1", testBundle(), NewLogger(&log, config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return s.Run(ctx) })
	eventually(t, func() error {
		if !strings.Contains(log.String(), "server unreachable") || !strings.Contains(log.String(), config.CoordinatorURL) {
			return errors.New(log.String())
		}
		return nil
	})
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheLoginPageWarnsOfPlainHTTP(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	const warning = "This connection is not encrypted"
	request := func(host, proto string) string {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/admin/", nil)
		r.Host = host
		r.Header.Set("X-Forwarded-Proto", proto)
		resp, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		page := make([]byte, 20_000)
		n := 0
		for err == nil {
			var m int
			m, err = resp.Body.Read(page[n:])
			n += m
		}
		return string(page[:n])
	}
	wantText(t, request("mesh.example:3001", "http"), warning)
	for host, proto := range map[string]string{"mesh.example:3001": "https", "localhost:3001": "http", "[::1]:3001": "http", "127.0.0.1": "http"} {
		if strings.Contains(request(host, proto), warning) {
			t.Errorf("%s://%s is warned of", proto, host)
		}
	}
}

func TestLogAndLoginPageTellOfTheOwnKey(t *testing.T) {
	t.Parallel()
	for own, want := range map[string][2]string{
		"": {"no api_key is set", "no api_key is configured for the console"},
		"flk_AAAAAAAAAAAA_" + strings.Repeat("s3cret", 7): {"the server rejects api_key", "rejects the console&#39;s api_key"},
		newKey(t, "--role", "read"):                       {"the server accepts api_key", ""},
	} {
		c := start(t, service().url, func(config *Config) { config.APIKey = own })
		page := c.get("/admin/").text
		wantText(t, page, "Fairlead ", "Console for 127.0.0.1<") // the host of server_url, not of coordinator_url
		wantText(t, c.log.String(), want[0])
		if strings.Contains(page, "api_key") {
			t.Error("the login page tells a stranger about the own key")
		}
		c.login(newKey(t)) // signing in works in all three cases
		c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
		page = c.get("/admin/").text
		wantText(t, page, want[1])
		if own != "" && (strings.Contains(c.log.String(), own) || strings.Contains(page, own)) {
			t.Error("the own key is shown")
		}
	}
}

func TestLogoutEndsTheSessionAndClearsTheBrowser(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	for name, header := range map[string]string{"another site": "Sec-Fetch-Site: cross-site", "no token": "X-CSRF:"} {
		if a := c.do(http.MethodPost, "/admin/logout", "", header); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, a.Status)
		}
	}
	c.must(http.StatusMethodNotAllowed, http.MethodGet, "/admin/logout", "")
	a := c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	if got := a.Header.Get("Clear-Site-Data"); got != `"cache", "storage"` {
		t.Errorf("Clear-Site-Data: %s", got)
	}
	c.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
	c.login(newKey(t))
	const isForm = "Content-Type: application/x-www-form-urlencoded"
	stale := c.do(http.MethodPost, "/admin/logout", "csrf=of-another-session", isForm, "X-CSRF:")
	if stale.StatusCode != http.StatusForbidden || stale.Header.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("by the form of an older page: %s %v", stale.Status, stale.Header)
	}
	wantText(t, stale.text, "You are still signed in", `name="csrf" value="`+c.csrf+`"`)
	form := c.do(http.MethodPost, "/admin/logout", "csrf="+c.csrf, isForm, "X-CSRF:")
	if form.StatusCode != http.StatusSeeOther || form.Header.Get("Location") != "/admin/" {
		t.Errorf("by a form: %s", form.Status)
	}
	c.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
}
