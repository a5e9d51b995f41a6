package wire_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

const (
	consoleURL  = "http://mesh.test/admin/"
	consoleBack = "http://mesh.test/admin/signin/callback"
	loopback    = "http://127.0.0.1:40123/callback"
)

// program is the console or a command line: it has a verifier and a state, and checks the latter.
type program struct{ verifier, state, back string }

func newProgram(name, back string) program {
	return program{strings.Repeat(name+"-verifier-", 6), "state-of-" + name, back}
}

func (p program) challenge() string {
	sum := sha256.Sum256([]byte(p.verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (p program) start() string {
	return "/oidc/session?" + url.Values{
		"return_url": {p.back}, "state": {p.state}, "code_challenge": {p.challenge()}, "code_challenge_method": {"S256"},
		"description": {"ann's laptop"},
	}.Encode()
}

// code returns the code that the browser brings, if it comes back to this program with its state.
func (p program) code(t testing.TB, out answer) string {
	t.Helper()
	u, err := url.Parse(out.location)
	if err != nil || out.status != http.StatusSeeOther || !strings.HasPrefix(out.location, p.back+"?") {
		t.Fatalf("%d to %q (%v)\n%s", out.status, out.location, err, out.text)
	}
	if u.Query().Get("state") != p.state {
		t.Fatalf("state %q", u.Query().Get("state"))
	}
	return u.Query().Get("code")
}

func (p program) exchange(t testing.TB, s *service, code string) (*mesh.Session, error) {
	t.Helper()
	v, token, err := s.Sessions.Exchange(t.Context(), mesh.Actor{Addr: "192.0.2.1"}, code, p.verifier, p.back)
	if err == nil {
		if _, ok := identity.Session(s.ledger.World().Snapshot, token, s.ledger.Now()); !ok {
			t.Error("the token opens no session")
		}
	}
	return v, err
}

func TestPersonSignsInToTheConsole(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	s := openWith(t, i)
	b, console := s.browser(), newProgram("console", consoleBack)
	out := b.follow(console.start(), "/admin/")
	code := console.code(t, out)
	if out.header.Get("Referrer-Policy") != "no-referrer" || out.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", out.header)
	}
	v, err := console.exchange(t, s, code)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := s.ledger.World().Users.Get(v.User)
	if u.Name != "ann" || u.ProviderID != i.URL+"/ann-1" || v.Client != mesh.SessionConsole || v.Description != "ann's laptop" {
		t.Errorf("%+v of %+v", v, u)
	}
	if _, err := console.exchange(t, s, code); err == nil {
		t.Error("replay: the code worked twice")
	}
	b.get(out.url).shows(t, 400, "This sign-in cannot continue") // the callback, reloaded
	for _, secret := range append(i.Secrets(), code, console.verifier) {
		if strings.Contains(s.log.text(), secret) {
			t.Errorf("the log has %.20s…", secret)
		}
	}
}

func TestPersonConfirmsTheCommandLine(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	s := openWith(t, i)
	b, cli := s.browser(), newProgram("cli", loopback)
	rev := s.ledger.World().Rev
	confirm := b.follow(cli.start(), "127.0.0.1:40123")
	confirm.shows(t, 200, "Sign in to the command line?", "ann@example.com", "<dd>ann's laptop</dd>", "127.0.0.1:40123", "<dd>ann</dd>")
	if policy := confirm.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "form-action 'self' http://127.0.0.1:40123") {
		t.Errorf("policy %s", policy)
	}
	s.stays(t, rev)
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		b.press(confirm, header...).shows(t, 403, "did not come from this server")
	}
	b.do("POST", confirm.url, url.Values{"csrf": {"AAAAAAAAAAAAAAAAAAAAAAAAAA"}}).shows(t, 403, "did not come from this server")
	s.browser().do("POST", confirm.url, url.Values{}).shows(t, 400, "This sign-in cannot continue")
	s.stays(t, rev)
	v, err := cli.exchange(t, s, cli.code(t, b.press(confirm, "Origin", publicURL, "Sec-Fetch-Site", "same-origin")))
	if err != nil || v.Client != mesh.SessionCLI {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestSignInToTheConsoleIsNoOpenRedirect(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	for _, back := range []string{
		"", "/", "https://evil.example/admin/signin/callback", "http://mesh.test/admin/", "http://mesh.test/admin/signin/callback?next=x", "http://mesh.test/admin/signin/callback#x",
		"http://mesh.test/admin/signin/callback/../../evil", "http://mesh.test.evil.example/admin/signin/callback", "http://mesh.test@evil.example/admin/signin/callback",
		"http://evil.example\\@mesh.test/admin/signin/callback", "https://mesh.test/admin/signin/callback", "HTTP://mesh.test/admin/signin/callback", "//mesh.test/admin/signin/callback",
		"http://127.0.0.1/callback", "http://127.0.0.1:0/callback", "http://127.0.0.1:080/callback", "http://127.0.0.1:99999/callback", "http://127.0.0.1:80/callback?x", "http://127.0.0.1:80/other",
		"https://127.0.0.1:80/callback", "http://localhost:80/callback", "http://127.0.0.2:80/callback", "http://2130706433:80/callback", "http://127.1:80/callback", "http://0.0.0.0:80/callback",
		"http://127.0.0.1:80@evil.example/callback", "http://evil.example/x?http://127.0.0.1:80/callback", "http://[::ffff:127.0.0.1]:80/callback", "http://[::1%25evil]:80/callback",
		"javascript:alert(1)", "http://127.0.0.1:80/" + strings.Repeat("a", 600) + "/callback",
	} {
		b := s.browser()
		out := b.get(newProgram("x", back).start())
		out.shows(t, 400, "This sign-in cannot start", "oidc.console_urls")
		if out.location != "" || len(out.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%q leads to %q", back, out.location)
		}
	}
	for _, back := range []string{consoleBack, loopback, "http://[::1]:40123/callback"} {
		if out := s.browser().get(newProgram("x", back).start()); !strings.HasPrefix(out.location, i.URL) {
			t.Errorf("%q: %d\n%s", back, out.status, out.text)
		}
	}
	good := newProgram("x", consoleBack).start()
	for _, change := range []string{"state=" + strings.Repeat("x", 257), "state=", "code_challenge=short", "code_challenge=" + strings.Repeat("=", 43), "code_challenge_method=plain", "provider=7", "provider=x"} {
		name, _, _ := strings.Cut(change, "=")
		u, err := url.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Del(name)
		s.browser().get("/oidc/session?"+q.Encode()+"&"+change).shows(t, 400, "This sign-in cannot start")
	}
}

// An attacker who lets a victim finish the attacker's sign-in, or puts the attacker's code into the victim's browser,
// must not get the victim into the attacker's account: the console has another verifier for each browser.
func TestLoginCSRFAndCodeInjection(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: bob()})
	s := openWith(t, i)
	attacker, victim := newProgram("attacker", consoleBack), newProgram("victim", consoleBack)
	mine := s.browser()
	back := mine.follow(attacker.start(), "/oidc/callback").location
	s.browser().get(back).shows(t, 400, "started in another browser") // login CSRF
	stolen := attacker.code(t, mine.follow(back, "/admin/"))
	if _, err := victim.exchange(t, s, stolen); err == nil {
		t.Error("code injection: the victim's console accepts the attacker's code")
	}
	if _, err := attacker.exchange(t, s, stolen); err != nil {
		t.Errorf("a failed attempt used the code up: %v", err)
	}
}

// A neighbour of the server's domain can set cookies for it, but not make valid ones, and its own lead only to its own
// code, which is useless for the victim's console.
func TestCookieTossing(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	attacker, victim := newProgram("attacker", consoleBack), newProgram("victim", consoleBack)
	mine, theirs := s.browser(), s.browser()
	back := mine.follow(attacker.start(), "/oidc/callback").location
	own := theirs.follow(victim.start(), "/oidc/callback").location
	u, err := url.Parse(publicURL + "/oidc/")
	if err != nil {
		t.Fatal(err)
	}
	forged := theirs.http.Jar.Cookies(u)[0]
	tossed := mine.http.Jar.Cookies(u)[0]
	// The attacker's flow under the name of the victim's is not accepted.
	other := s.browser()
	other.http.Jar.SetCookies(u, []*http.Cookie{{Name: forged.Name, Value: tossed.Value, Path: "/oidc/"}})
	other.get(own).shows(t, 400, "This sign-in cannot continue")
	// The attacker's own flow, tossed into the victim's browser, gives a code for the attacker's verifier only.
	theirs.http.Jar.SetCookies(u, []*http.Cookie{{Name: tossed.Name, Value: tossed.Value, Path: "/oidc/"}})
	if _, err := victim.exchange(t, s, attacker.code(t, theirs.follow(back, "/admin/"))); err == nil {
		t.Error("the victim's console accepts a tossed sign-in")
	}
	if _, err := victim.exchange(t, s, victim.code(t, theirs.follow(own, "/admin/"))); err != nil {
		t.Errorf("the victim's own sign-in fails: %v", err)
	}
}

func TestForgedStateOfAConsoleSignIn(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	b := s.browser()
	back, err := url.Parse(b.follow(newProgram("x", consoleBack).start(), "/oidc/callback").location)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"", "x", "state-of-x", strings.ToLower(back.Query().Get("state"))} {
		q := back.Query()
		q.Set("state", state)
		b.get("/oidc/callback?"+q.Encode()).shows(t, 400, "This sign-in cannot continue")
	}
	if n := len(i.Exchanged()); n != 0 {
		t.Errorf("%d codes were sent to the provider", n)
	}
}

func TestConsoleSignInContinuesOnAnotherReplica(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	o := options{path: filepath.Join(t.TempDir(), "db"), noise: key.NewMachine()}
	next := func() (*service, func()) {
		o.wire = withProviders(providerOf(t, i, nil))
		return open(t, o)
	}
	s, stop := next()
	b, console := s.browser(), newProgram("console", consoleBack)
	started := b.follow(console.start(), "/oidc/callback")
	stop()
	b.s, stop = next()
	code := console.code(t, b.follow(started.location, "/admin/"))
	stop()
	s, _ = next()
	if _, err := console.exchange(t, s, code); err != nil {
		t.Error(err)
	}
	elsewhere, _ := open(t, options{wire: withProviders(providerOf(t, i, nil))}) // with another key
	if _, err := console.exchange(t, elsewhere, code); err == nil {
		t.Error("a code of another server is accepted")
	}
}

func TestPersonChoosesTheProvider(t *testing.T) {
	a, b := oidctest.Start(t, oidctest.Behaviour{Claims: ann()}), oidctest.Start(t, oidctest.Behaviour{Claims: bob()})
	s, _ := open(t, options{wire: withProviders(providerOf(t, a, nil), providerOf(t, b, nil))})
	console := newProgram("console", consoleBack)
	s.browser().get(console.start()).shows(t, 200, "Choose how to sign in", "provider=0", "provider=1", "Sign in with")
	br := s.browser()
	v, err := console.exchange(t, s, console.code(t, br.follow(console.start()+"&provider=1", "/admin/")))
	if err != nil {
		t.Fatal(err)
	}
	if u, _ := s.ledger.World().Users.Get(v.User); u.Name != "bob" {
		t.Errorf("signed in as %s", u.Name)
	}
}

func TestConsoleSignInSaysWhyItFailed(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.browser().follow(newProgram("x", consoleBack).start(), "").shows(t, 409, "You were not signed in", "Another user already has the name ann")
}

func TestPersonConfirmsTheCommandLineOfAnotherComputer(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	s := openWith(t, i)
	p := newProgram("cli", "")
	sum := sha256.Sum256([]byte(p.verifier))
	token, err := s.Sessions.StartDevice("192.0.2.1", base64.RawURLEncoding.EncodeToString(sum[:]), "build server")
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	rev := s.ledger.World().Rev
	confirm := b.follow("/oidc/device/"+token, "")
	confirm.shows(t, 200, "Sign in to the command line?", "ann@example.com", "<dd>build server</dd>", identity.Code(token), "it shows the same code")
	if policy := confirm.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "form-action 'self'") {
		t.Errorf("policy %s", policy)
	}
	b.press(confirm, "Origin", "https://evil.example").shows(t, 403, "did not come from this server")
	s.stays(t, rev)
	if v, _, err := s.Sessions.PollDevice(t.Context(), mesh.Actor{}, token, p.verifier); v != nil || err != nil {
		t.Errorf("a session before the confirmation: %v, %v", v, err)
	}
	b.press(confirm, "Origin", publicURL).shows(t, 200, "You are signed in", "continues by itself")
	v, text, err := s.Sessions.PollDevice(t.Context(), mesh.Actor{}, token, p.verifier)
	if err != nil || v == nil || v.Client != mesh.SessionCLI || text == "" {
		t.Errorf("%+v, %v", v, err)
	}
	// Somebody else with the link cannot confirm again.
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	other := s.browser()
	other.press(other.follow("/oidc/device/"+token, "")).shows(t, 409, "You were not signed in", "already confirmed")
	other.get("/oidc/device/x").shows(t, 400, "This sign-in cannot start", "fairlead login --device")
}
