package bff

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// office is a console whose server has an identity provider.
type office struct {
	*console
	server   *fairlead
	provider *oidctest.Issuer
	faults   *faults
}

func openOffice(t *testing.T) *office {
	t.Helper()
	addr := porttest.Addr(t)
	target := "http://" + addr
	o := &office{faults: startFaultsFor(t, target), provider: oidctest.Start(t, oidctest.Behaviour{PKCE: true})}
	o.console = start(t, o.faults.URL, nil)
	dir, err := os.MkdirTemp("", "fl") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("oidc:\n  name: Example\n  issuer: %s\n  client_id: %s\n  client_secret: %s\n  console_urls: [%s/admin/]\n  roles:\n    admin: [it]\n",
		o.provider.URL, oidctest.ClientID, oidctest.ClientSecret, o.base)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.server, err = startService(service().binary, dir, "FAIRLEAD_CONFIG="+config, "FAIRLEAD_SERVER_URL="+target, "FAIRLEAD_LISTEN_ADDR="+addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.server.stop)
	return o
}

// person makes the provider sign in this person next.
func (o *office) person(name string, groups ...string) {
	o.provider.Behave(func(b *oidctest.Behaviour) {
		b.Claims = map[string]any{"sub": name + "-1", "preferred_username": name, "email": name + "@example.com", "email_verified": true, "groups": groups}
	})
}

// link returns the link on the login page at a path.
func (b *browser) link(path string) string {
	b.t.Helper()
	page := b.get(path).text
	found := regexp.MustCompile(`<a class="button" href="([^"]+)">Sign in with Example</a>`).FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("the login page has no link:\n%s", page)
	}
	return html.UnescapeString(found[1])
}

// visit follows redirects from a URL until the next one leads to the console, and returns that one's path and query.
func (b *browser) visit(address string) string {
	b.t.Helper()
	for range 10 {
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		resp, err := b.http.Do(r)
		if err != nil {
			b.t.Fatal(err)
		}
		resp.Body.Close()
		next, err := resp.Location()
		if err != nil {
			b.t.Fatalf("%s: %s", address, resp.Status)
		}
		if address = next.String(); strings.HasPrefix(address, b.base+"/") {
			return strings.TrimPrefix(address, b.base)
		}
	}
	b.t.Fatal("too many redirects")
	return ""
}

// begin starts a sign-in and returns the callback with a code and a state, which the browser has not opened yet.
func (b *browser) begin(path string) string {
	b.t.Helper()
	a := b.must(http.StatusSeeOther, http.MethodGet, b.link(path), "")
	return b.visit(a.Header.Get("Location"))
}

// signIn signs in with the provider.
func (b *browser) signIn() {
	b.t.Helper()
	if a := b.get(b.begin("/admin/"), "Sec-Fetch-Site: cross-site"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/admin/" {
		b.t.Fatalf("%s: %s", a.Status, a.text)
	}
	b.csrf = regexp.MustCompile(`name="csrf" content="([^"]+)"`).FindStringSubmatch(b.must(http.StatusOK, http.MethodGet, "/admin/", "").text)[1]
}

func TestPeopleSignInWithAProvider(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	// The cases share a server, because starting one takes a second, and run in turn, because the provider signs in one person.
	for _, test := range []struct {
		name string
		run  func(*testing.T, *office, *browser)
	}{
		{"the wanted page opens and the audit log names the person", officeOpens},
		{"forged, foreign and used callbacks are refused", officeForged},
		{"links work only in their own browser and lead nowhere else", officeLinks},
		{"signing out ends the session at the server", officeSignOut},
		{"the login page says why a session ended", officeEnded},
		{"people see and end their own sessions", officeSessions},
		{"members get their own devices", officeMember},
		{"the server is away", officeAway},
	} {
		o.person("ann", "it")
		t.Run(test.name, func(t *testing.T) { test.run(t, o, newBrowser(t, o.base)) })
	}
	for _, secret := range o.provider.Secrets() {
		if strings.Contains(o.log.String(), secret) {
			t.Errorf("the log holds %.10s…", secret)
		}
	}
	if regexp.MustCompile(`fls_\w+_[A-Za-z0-9]`).MatchString(o.log.String()) {
		t.Error("the log holds a session token")
	}
}

func officeOpens(t *testing.T, o *office, b *browser) {
	page := b.get("/admin/nodes?filter=tag%3Adb").text
	wantText(t, page, "Sign in with API key", `type="password"`)
	if strings.Contains(page, "<script") || strings.Contains(page, "autofocus") {
		t.Errorf("the login page has a script, or skips the buttons:\n%s", page)
	}
	back := b.begin("/admin/nodes?filter=tag%3Adb")
	a := b.get(back, "Sec-Fetch-Site: cross-site", "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/admin/nodes?filter=tag%3Adb" || !hasSession(a) {
		t.Fatalf("%s to %q: %s", a.Status, a.Header.Get("Location"), a.text)
	}
	info := decode[sessionInfo](t, b.must(http.StatusOK, http.MethodGet, "/admin/api/session", ""))
	if info.Person != "ann" || info.Key.Role != "admin" || info.Key.ID != "user:ann" || info.Key.Expiration != nil {
		t.Errorf("%+v", info)
	}
	b.csrf = info.CSRF
	name := newName()
	b.must(http.StatusOK, http.MethodPost, "/admin/api/v1/user", `{"name":"`+name+`"}`)
	wantText(t, o.server.run(t, "audit", "list", "-o", "json"), name, `"name": "ann"`)
	b.must(http.StatusConflict, http.MethodPost, "/admin/api/session", `{"key":"flk_x"}`)
	wantText(t, o.log.String(), `msg="signed in" user=ann`)
}

// officeForged tries to sign a browser in as somebody else, with callbacks that it did not start.
func officeForged(t *testing.T, o *office, victim *browser) {
	attacker := newBrowser(t, o.base)
	stolen := attacker.begin("/admin/")
	refused := func(what string, b *browser, path string) {
		t.Helper()
		if a := b.get(path, "Sec-Fetch-Site: cross-site"); a.StatusCode != http.StatusForbidden || hasSession(a) || !strings.Contains(a.text, "Sign in again.") {
			t.Errorf("%s: %s %v\n%s", what, a.Status, a.Cookies(), a.text)
		}
	}
	refused("login CSRF", victim, stolen)
	own := victim.begin("/admin/")
	refused("login CSRF during a sign-in", victim, stolen)
	theirs, mine := queryOf(t, stolen), queryOf(t, own)
	with := func(code, state string) string {
		return callbackPath + "?" + url.Values{"code": {code}, "state": {state}}.Encode()
	}
	refused("forged state", victim, with(mine.Get("code"), "AAAAAAAAAAAAAAAAAAAAAAAAAA"))
	refused("no state", victim, with(mine.Get("code"), ""))
	refused("no code", victim, with("", mine.Get("state")))
	if a := victim.do(http.MethodHead, own, ""); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %s", a.Status)
	}
	victim.must(http.StatusSeeOther, http.MethodGet, own, "") // none of that has disturbed the sign-in
	// A callback that was used, with and without a session.
	if a := victim.get(own); a.StatusCode != http.StatusSeeOther || hasSession(a) {
		t.Errorf("going back in the history: %s %v", a.Status, a.Cookies())
	}
	refused("replay in a copy of the browser", newBrowser(t, o.base), own)

	// The code of another browser, with the own state: only the server can notice.
	other := newBrowser(t, o.base)
	state := queryOf(t, other.begin("/admin/")).Get("state")
	refused("code injection", other, with(theirs.Get("code"), state))
	refused("the sign-in after a refusal", other, with(theirs.Get("code"), state))
	attacker.must(http.StatusSeeOther, http.MethodGet, stolen, "")
}

func queryOf(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func officeLinks(t *testing.T, o *office, b *browser) {
	link := b.link("/admin/users")
	token := queryOf(t, link).Get("token")
	for name, try := range map[string]func() answer{
		"another site":     func() answer { return b.get(link, "Sec-Fetch-Site: cross-site") },
		"another browser":  func() answer { other := newBrowser(t, o.base); other.link("/admin/"); return other.get(link) },
		"no token":         func() answer { return b.get(signInPath + "?provider=0") },
		"a forged token":   func() answer { return b.get(signInPath + "?provider=0&token=" + token[1:]) },
		"unknown provider": func() answer { return b.get(signInPath + "?provider=7&token=" + token) },
	} {
		a := try()
		if a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusNotFound || a.Header.Get("Location") != "" || strings.Contains(fmt.Sprint(a.Cookies()), signInName) {
			t.Errorf("%s: %s %v", name, a.Status, a.Cookies())
		}
	}
	// Open redirects: neither the query nor a page outside the console can be the target.
	for _, extra := range []string{"&path=//evil.example", "&next=https://evil.example", "&return_url=https://evil.example"} {
		b := newBrowser(t, o.base)
		back := b.visit(b.must(http.StatusSeeOther, http.MethodGet, b.link("/admin/users")+extra, "").Header.Get("Location"))
		if a := b.get(back + extra); a.Header.Get("Location") != "/admin/users" {
			t.Errorf("%s leads to %q", extra, a.Header.Get("Location"))
		}
	}
	// Over TLS, hosts with the same parent domain cannot set the cookie.
	page := b.get("/admin/", "X-Forwarded-Proto: https", "Cookie: none=1")
	word := page.Cookies()[0]
	a := b.get(signInPath+"?provider=0&token="+formToken(t, page.text), "X-Forwarded-Proto: https", "Cookie: "+word.Name+"="+word.Value)
	cookie := a.Cookies()[0]
	if cookie.Name != "__Host-fairlead_signin" || !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookie %+v", cookie)
	}
	if to := queryOf(t, a.Header.Get("Location")).Get("return_url"); to != "https"+strings.TrimPrefix(o.base, "http")+"/admin/signin/callback" {
		t.Errorf("return URL %s", to)
	}
}

func officeSignOut(t *testing.T, o *office, b *browser) {
	b.signIn()
	cookie := stolen(t, b)
	if list := o.server.run(t, "sessions", "list", "-o", "json"); !strings.Contains(list, `"client": "console"`) {
		t.Fatal(list)
	}
	o.server.run(t, "users", "create", "bystander") // commands do not need the session
	b.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	// A console that knows nothing of the sign-out: only the server can refuse the copy.
	elsewhere := start(t, o.faults.URL, nil)
	elsewhere.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/v1/whoami", "", cookie)
	b.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
}

func officeEnded(t *testing.T, o *office, b *browser) {
	b.signIn()
	for _, id := range regexp.MustCompile(`(?m)^(\d+) `).FindAllStringSubmatch(o.server.run(t, "sessions", "list"), -1) {
		o.server.run(t, "sessions", "revoke", id[1])
	}
	b.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/v1/whoami", "")
	wantText(t, b.get("/admin/").text, textPersonRevoked)

	held := session{Person: true, Issued: o.console.server.now()}
	held.Renewed, held.End = held.Issued, held.Issued.Add(longestTime/7)
	held.Renewed = held.End // in use until the end
	if got := held.endedBy().text(); got != textPersonExpired {
		t.Errorf("a session that expired at the server: %q", got)
	}
}

func officeSessions(t *testing.T, o *office, b *browser) {
	b.signIn()
	other, bob := newBrowser(t, o.base), newBrowser(t, o.base)
	other.signIn()
	o.person("bob", "it")
	bob.signIn()
	const form = "Content-Type: application/x-www-form-urlencoded"
	revokeForm := func(b *browser, id, csrf string, headers ...string) answer {
		return b.do(http.MethodPost, accountPath, url.Values{"session": {id}, "csrf": {csrf}}.Encode(), append(headers, form)...)
	}
	ids := func(b *browser) (found []string) {
		page := b.must(http.StatusOK, http.MethodGet, accountPath, "").text
		wantText(t, page, "this session", "Go to the console")
		for _, id := range regexp.MustCompile(`name="session" value="(\d+)"`).FindAllStringSubmatch(page, -1) {
			found = append(found, id[1])
		}
		return found
	}
	own, theirs := ids(b), ids(other)
	if len(own) == 0 || len(own) != len(theirs) || len(ids(bob)) != 0 {
		t.Fatalf("sessions %v, %v, %v", own, theirs, ids(bob))
	}
	last := own[len(own)-1] // the newest, of the other browser
	for name, a := range map[string]answer{
		"another site": revokeForm(b, last, b.csrf, "Sec-Fetch-Site: cross-site"),
		"no token":     revokeForm(b, last, ""),
		"bob's token":  revokeForm(b, last, bob.csrf),
	} {
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, a.Status)
		}
	}
	if a := revokeForm(bob, last, bob.csrf); a.StatusCode != http.StatusNotFound {
		t.Errorf("bob revokes a session of ann: %s", a.Status)
	}
	if a := revokeForm(b, "../1", b.csrf); a.StatusCode != http.StatusBadRequest {
		t.Errorf("not an ID: %s", a.Status)
	}
	other.must(http.StatusOK, http.MethodGet, "/admin/api/v1/whoami", "")
	if a := revokeForm(b, last, b.csrf); a.StatusCode != http.StatusSeeOther {
		t.Errorf("revoke: %s", a.Status)
	}
	other.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/v1/whoami", "")
	b.must(http.StatusOK, http.MethodGet, "/admin/api/v1/whoami", "")
	wantText(t, newBrowser(t, o.base).get(accountPath).text, `name="token"`)
}

// officeMember checks that members get the page of their own devices, instead of those of administrators.
func officeMember(t *testing.T, o *office, b *browser) {
	o.person("bob")
	if a := b.get(b.begin("/admin/nodes"), "Sec-Fetch-Site: cross-site"); a.Header.Get("Location") != "/admin/nodes" {
		t.Fatalf("%s to %q", a.Status, a.Header.Get("Location"))
	}
	for _, path := range []string{"/admin/", "/admin/nodes", "/admin/settings/server"} {
		if a := b.get(path); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/admin/my" {
			t.Errorf("%s: %s to %q", path, a.Status, a.Header.Get("Location"))
		}
	}
	b.must(http.StatusNotFound, http.MethodGet, "/admin/nowhere", "")
	b.csrf = regexp.MustCompile(`name="csrf" content="([^"]+)"`).FindStringSubmatch(b.must(http.StatusOK, http.MethodGet, "/admin/my", "").text)[1]
	info := decode[sessionInfo](t, b.must(http.StatusOK, http.MethodGet, "/admin/api/session", ""))
	if info.Person != "bob" || info.Key.Role != roleMember || slices.Contains(info.Capabilities, "getPolicy") || !slices.Contains(info.Capabilities, "renameNode") {
		t.Errorf("%+v", info)
	}
	b.must(http.StatusForbidden, http.MethodGet, "/admin/api/v1/policy", "")
	b.must(http.StatusOK, http.MethodPost, "/admin/api/v1/preauthkey", `{"user":"bob","reusable":false,"ephemeral":false}`)
	wantText(t, b.must(http.StatusOK, http.MethodGet, accountPath, "").text, "Signed in as <b>bob</b>")
	b.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	b.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
}

func officeAway(t *testing.T, o *office, b *browser) {
	back := b.begin("/admin/users")
	o.faults.set(hangUp)
	a := b.get(back)
	if a.StatusCode != http.StatusServiceUnavailable || hasSession(a) {
		t.Errorf("%s %v", a.Status, a.Cookies())
	}
	wantText(t, a.text, "is not responding")
	o.faults.set(nil)
	b.signIn()
	o.faults.set(hangUp)
	b.must(http.StatusNoContent, http.MethodPost, "/admin/logout", "")
	o.faults.set(nil)
	wantText(t, o.log.String(), "cannot revoke a session at the server")
	b.must(http.StatusUnauthorized, http.MethodGet, "/admin/api/session", "")
}
