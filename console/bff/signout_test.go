package bff

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stolen returns a copy of a browser's session cookie, as a Cookie header.
func stolen(t *testing.T, b *browser) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+adminPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range b.http.Jar.Cookies(r.URL) {
		if cookie.Name == cookieName {
			return "Cookie: " + cookieName + "=" + cookie.Value
		}
	}
	t.Fatal("there is no session")
	return ""
}

// TestACopiedCookieIsWorthNothingAfterSignOut signs out at one of three replicas
// that share a directory. The third starts only after the sign-out.
func TestACopiedCookieIsWorthNothingAfterSignOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	replica := func() *console {
		c := start(t, service().url, func(config *Config) { config.StateDir = dir })
		if err := c.server.signOuts.prepare(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := replica(), replica()
	key := newKey(t)
	first.login(key)
	early := stolen(t, first.browser)
	other := newBrowser(t, first.base)
	other.login(key)

	// Continuing with another key stays within the same login: signing out ends both cookies.
	info := first.must(http.StatusOK, http.MethodPost, "/admin/api/session", fmt.Sprintf(`{"key":%q}`, newKey(t)))
	first.csrf = decode[sessionInfo](t, info).CSRF
	late := stolen(t, first.browser)

	thief := newBrowser(t, second.base)
	for _, cookie := range []string{early, late} {
		thief.must(http.StatusOK, http.MethodGet, "/admin/api/v1/whoami", "", cookie)
	}
	first.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	for name, c := range map[string]*console{"here": first, "at another replica": second, "after a restart": replica()} {
		thief := newBrowser(t, c.base)
		for _, cookie := range []string{early, late} {
			for _, path := range []string{"/admin/api/v1/whoami", "/admin/api/session", "/admin/api/v1/events"} {
				if a := thief.get(path, cookie); a.StatusCode != http.StatusUnauthorized || hasSession(a) {
					t.Errorf("%s %s: %s", name, path, a.Status)
				}
			}
			wantText(t, thief.get("/admin/nodes", cookie).text, `name="token"`)
		}
	}
	other.must(http.StatusOK, http.MethodGet, "/admin/api/session", "") // another login with the same key
}

func TestWithoutADirectorySignOutCountsInThisProcess(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	cookie := stolen(t, c.browser)
	c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	newBrowser(t, c.base).must(http.StatusUnauthorized, http.MethodGet, "/admin/api/v1/whoami", "", cookie)
}

func TestSigningOutEndsTheStreamOfACopiedCookie(t *testing.T) {
	t.Parallel()
	c := start(t, service().url, nil)
	c.login(newKey(t))
	thief := newBrowser(t, c.base)
	s := thief.stream(stolen(t, c.browser))
	s.await("retry:", patience)
	c.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	newKey(t) // makes the console check now instead of in 15 seconds
	s.await("event: session-ended", patience)
}

func TestSignOutsAreForgottenWhenTheirSessionsAreTooOld(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "signed-out")} {
		o := signOuts{dir: dir}
		if err := o.prepare(); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		add := func(id string, at time.Time) {
			t.Helper()
			if err := o.add(id, at); err != nil {
				t.Fatal(err)
			}
		}
		add("a", now)
		add("b", now.Add(longestTime-time.Hour))
		if !o.has("a") || !o.has("b") || o.has("c") {
			t.Errorf("%q: it does not have what was signed out", dir)
		}
		add("c", now.Add(longestTime+time.Hour))
		if o.has("a") || !o.has("c") {
			t.Errorf("%q: it keeps what is too old", dir)
		}
	}
}

// TestADirectoryThatCannotBeWrittenIsAnErrorAndMemoryCounts: the person is still
// signed out in this process, and the caller gets an error to log.
func TestADirectoryThatCannotBeWrittenIsAnErrorAndMemoryCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := signOuts{dir: filepath.Join(file, "signed-out")}
	if o.prepare() == nil || o.add("a", time.Now()) == nil || !o.has("a") {
		t.Error("it says that it stored a sign-out, or does not know it")
	}
}
