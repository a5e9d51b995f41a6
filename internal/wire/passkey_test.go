package wire_test

import (
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/passkey"
	"github.com/fairlead-mesh/fairlead/internal/passkey/passkeytest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// localURL is a URL without TLS on which browsers offer passkeys.
const localURL = "http://localhost"

func withPasskeys(c *wire.Config) {
	verifier, err := passkey.New(localURL)
	if err != nil {
		panic(err) // it is a constant
	}
	c.ServerURL, c.PasskeyVerifier = localURL, verifier
}

func authenticator() *passkeytest.Authenticator {
	return &passkeytest.Authenticator{Origin: localURL, RPID: "localhost"}
}

// invite creates a user, unless it exists, and returns the path of an invitation.
func (s *service) invite(name string) string {
	s.t.Helper()
	if _, ok := s.ledger.World().Users.ByName(name); !ok {
		if _, err := s.Users.Create(s.t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, control.NewUser{Name: name}); err != nil {
			s.t.Fatal(err)
		}
	}
	_, link, err := s.Passkeys.Invite(s.t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, name, time.Time{})
	if err != nil {
		s.t.Fatal(err)
	}
	return link[strings.Index(link, control.InvitePath):]
}

var (
	passkeyOptions = regexp.MustCompile(`data-options="([^"]+)"`)
	recoveryCode   = regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){5}`)
)

// optionsOf returns the options for the browser on a page.
func (b *browser) optionsOf(page answer) string {
	b.t.Helper()
	found := passkeyOptions.FindStringSubmatch(page.text)
	if page.status != http.StatusOK || found == nil {
		b.t.Fatalf("%s: %d, a page without options:\n%s", page.url, page.status, page.text)
	}
	return html.UnescapeString(found[1])
}

// creates creates a passkey on a page.
func (b *browser) creates(a *passkeytest.Authenticator, page answer) answer {
	b.t.Helper()
	response, err := a.Create(b.optionsOf(page))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(http.MethodPost, "/passkey/create", url.Values{"response": {response}})
}

// signs signs in with a passkey on a page.
func (b *browser) signs(a *passkeytest.Authenticator, page answer) answer {
	b.t.Helper()
	response, err := a.SignIn(b.optionsOf(page))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(http.MethodPost, "/passkey/sign-in", url.Values{"response": {response}})
}

func TestInvitedPersonCreatesAPasskeyAndAddsADevice(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a := s.browser(), authenticator()
	link := s.client().asks()
	if page := b.get(path(link)); strings.Contains(page.text, "passkey") {
		t.Error("the login page offers passkeys that nobody has")
	}
	invitation := s.invite("ann")
	page := b.get(invitation)
	page.shows(t, 200, "Create a passkey", "<strong>ann</strong>")
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "; script-src 'sha256-") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	created := b.creates(a, page)
	created.shows(t, 200, "Your passkey is ready", "<strong>ann</strong>", "tailscale up --login-server "+localURL)
	if !recoveryCode.MatchString(created.text) {
		t.Errorf("no recovery code:\n%s", created.text)
	}
	b.get(invitation).shows(t, 404, "This invitation is not valid")
	u, _ := s.ledger.World().Users.ByName("ann")
	if u.Provider != mesh.ProviderLocal || u.ProviderID != "local/"+u.ID.String() {
		t.Errorf("user %+v", u)
	}

	c := s.client()
	link = c.asks()
	answered := c.waits(link)
	b.get(path(link)).shows(t, 200, "Sign in with a passkey", "ask an administrator")
	a.Uses = 5
	confirm := b.signs(a, b.get("/passkey/start/"+strings.TrimPrefix(path(link), "/auth/")))
	if confirm.status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", confirm.status, confirm.text)
	}
	form := b.get(confirm.location)
	form.shows(t, 200, "Add this device?", "<dd>ann</dd>", "<dd>laptop</dd>")
	if out := b.press(form); out.status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", out.status, out.text)
	}
	if out := <-answered; !out.MachineAuthorized || out.Login.LoginName != "ann" {
		t.Errorf("%+v", out)
	}
	if n := s.only(); n.Owner != u.ID {
		t.Errorf("node %+v", n)
	}
	for k := range s.ledger.World().Passkeys.All() {
		if k.Uses != 5 || k.LastUse == 0 || k.User != u.ID {
			t.Errorf("passkey %+v", k)
		}
	}
	for _, secret := range []string{strings.TrimPrefix(invitation, "/passkey/invite/"), recoveryCode.FindString(created.text)} {
		if strings.Contains(s.log.text(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// A page that one replica has shown is continued by another, and after a restart.
func TestPasskeysWorkAcrossReplicas(t *testing.T) {
	o := options{path: filepath.Join(t.TempDir(), "db"), noise: key.NewMachine(), wire: withPasskeys}
	s, stop := open(t, o)
	b, a := s.browser(), authenticator()
	page := b.get(s.invite("ann"))
	stop()
	b.s, stop = open(t, o)
	b.creates(a, page).shows(t, 200, "Your passkey is ready")
	page = b.get("/passkey/start/" + strings.TrimPrefix(path(b.s.client().asks()), "/auth/"))
	stop()
	b.s, _ = open(t, o)
	if out := b.signs(a, page); out.status != http.StatusSeeOther {
		t.Errorf("%d\n%s", out.status, out.text)
	}
}

func TestRecoveryCodeReplacesAllPasskeysOnce(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, lost, found := s.browser(), authenticator(), authenticator()
	first := recoveryCode.FindString(b.creates(lost, b.get(s.invite("ann"))).text)
	second := recoveryCode.FindString(b.creates(found, b.get(s.invite("ann"))).text)
	if n := s.ledger.World().Passkeys.Len(); n != 2 {
		t.Fatalf("%d passkeys", n)
	}
	recover := func(code string) answer { return b.do(http.MethodPost, "/passkey/recover", url.Values{"code": {code}}) }
	b.get("/passkey/recover").shows(t, 200, "Use your recovery code")
	recover(first).shows(t, 404, "This code is not valid") // the second passkey came with another
	recover("0000-0000-0000-0000-0000-0000").shows(t, 404, "This code is not valid")
	recover("").shows(t, 404, "This code is not valid")
	page := recover(strings.ToLower(strings.ReplaceAll(second, "-", "")))
	page.shows(t, 200, "Create a passkey", "replaces all earlier passkeys")
	if strings.Contains(b.optionsOf(page), `"excludeCredentials":[{`) {
		t.Error("the browser would refuse to replace a passkey on the same device")
	}
	fresh := authenticator()
	b.creates(fresh, page).shows(t, 200, "Your passkey is ready")
	recover(second).shows(t, 404, "This code is not valid")
	start := "/passkey/start/" + strings.TrimPrefix(path(s.client().asks()), "/auth/")
	for what, a := range map[string]*passkeytest.Authenticator{"lost": lost, "found": found} {
		if out := b.signs(a, b.get(start)); out.status != http.StatusForbidden {
			t.Errorf("the %s passkey still works: %d", what, out.status)
		}
	}
	if out := b.signs(fresh, b.get(start)); out.status != http.StatusSeeOther {
		t.Errorf("the new passkey: %d\n%s", out.status, out.text)
	}
}

func TestInvitationWorksOnceAndNotAfterANewerOne(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, other := s.browser(), s.browser()
	older := s.invite("ann")
	page := b.get(older)
	newer := s.invite("ann")
	b.creates(authenticator(), page).shows(t, 404, "This invitation is not valid")
	b.get(older).shows(t, 404, "This invitation is not valid")
	page, again := b.get(newer), other.get(newer)
	b.creates(authenticator(), page).shows(t, 200, "Your passkey is ready")
	other.creates(authenticator(), again).shows(t, 404, "This invitation is not valid")
	if n := s.ledger.World().Passkeys.Len(); n != 1 {
		t.Errorf("%d passkeys", n)
	}
	for _, bad := range []string{"x", "fli_x_y", strings.TrimPrefix(newer, "/passkey/invite/")[:10], strings.Repeat("A", 24)} {
		b.get("/passkey/invite/"+bad).shows(t, 404, "This invitation is not valid")
	}
}

func TestPasskeyPagesRefuseOtherBrowsersAndSites(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a := s.browser(), authenticator()
	b.creates(a, b.get(s.invite("ann")))
	start := "/passkey/start/" + strings.TrimPrefix(path(s.client().asks()), "/auth/")
	page := b.get(start)
	response, err := a.SignIn(b.optionsOf(page))
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"response": {response}}
	s.browser().do(http.MethodPost, "/passkey/sign-in", form).shows(t, 400, "out of date") // login CSRF: without the cookie
	b.do(http.MethodPost, "/passkey/sign-in", form, "Origin", "https://evil.example").shows(t, 403, "did not come from this server")
	b.do(http.MethodPost, "/passkey/sign-in", form, "Sec-Fetch-Site", "cross-site").shows(t, 403, "did not come from this server")
	b.do(http.MethodPost, "/passkey/create", form).shows(t, 400, "out of date") // the cookie is for another purpose
	if out := b.do(http.MethodPost, "/passkey/sign-in", url.Values{"response": {strings.Repeat("x", 64<<10)}}); out.status < 400 {
		t.Errorf("a huge form: %d", out.status)
	}
	if out := b.do(http.MethodPost, "/passkey/sign-in", form, "Origin", localURL, "Sec-Fetch-Site", "same-origin"); out.status != http.StatusSeeOther {
		t.Errorf("%d\n%s", out.status, out.text)
	}
	b.do(http.MethodPost, "/passkey/sign-in", form).shows(t, 400, "out of date") // replay
	u, _ := s.ledger.World().Users.ByName("ann")
	for _, k := range s.Passkeys.Of(u.ID) {
		if err := s.Passkeys.Delete(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, k.ID.String()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.ledger.World().Invitations.Len(); n != 0 {
		t.Errorf("%d recovery codes are left", n)
	}
	if out := b.signs(a, b.get(start)); out.status != http.StatusForbidden {
		t.Errorf("a deleted passkey: %d", out.status)
	}
}

func TestPersonSignsInToTheConsoleAndTheCommandLineWithAPasskey(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a := s.browser(), authenticator()
	console, cli := newProgram("console", consoleBack), newProgram("cli", loopback)
	b.get(console.start()).shows(t, 400, "unknown identity provider") // nobody has a passkey
	b.creates(a, b.get(s.invite("ann")))
	page := b.get(console.start())
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' http://mesh.test;") {
		t.Errorf("policy %s", policy)
	}
	v, err := console.exchange(t, s, console.code(t, b.signs(a, page)))
	if err != nil {
		t.Fatal(err)
	}
	if u, _ := s.ledger.World().Users.Get(v.User); u.Name != "ann" || v.Client != mesh.SessionConsole {
		t.Errorf("%+v of %+v", v, u)
	}
	confirm := b.signs(a, b.get(cli.start()))
	form := b.get(confirm.location)
	form.shows(t, 200, "127.0.0.1:40123")
	if _, err := cli.exchange(t, s, cli.code(t, b.press(form))); err != nil {
		t.Fatal(err)
	}
}

func TestPersonSignsInToACommandLineElsewhereWithAPasskey(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a, cli := s.browser(), authenticator(), newProgram("cli", loopback)
	token, err := s.Sessions.StartDevice("192.0.2.1", cli.challenge(), "build server")
	if err != nil {
		t.Fatal(err)
	}
	link := "/oidc/device/" + token
	b.get(link).shows(t, 400, "unknown identity provider") // nobody has a passkey
	b.creates(a, b.get(s.invite("ann")))
	form := b.get(b.signs(a, b.get(link)).location)
	form.shows(t, 200, identity.Code(token), "build server")
	b.press(form).shows(t, 200)
	v, _, err := s.Sessions.PollDevice(t.Context(), mesh.Actor{}, token, cli.verifier)
	if err != nil || v == nil || v.Client != mesh.SessionCLI {
		t.Fatalf("%+v, %v", v, err)
	}
}

func TestOwnerApprovesAnSSHSessionWithAPasskey(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a, c := s.browser(), authenticator(), newTarget(s)
	b.creates(a, b.get(s.invite("alice")))
	link, held := c.asksForApproval("ana")
	form := b.get(b.signs(a, b.get(link)).location)
	form.shows(t, 200, "Approve this SSH session?", "<dd>ana</dd>")
	b.press(form).shows(t, 200, "The SSH session was approved")
	if out := <-held; !out.Accept {
		t.Errorf("%+v", out)
	}
}

func TestPasskeyIsOfferedBesideAProvider(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s, _ := open(t, options{wire: func(c *wire.Config) {
		withProviders(providerOf(t, i, nil))(c)
		withPasskeys(c)
	}})
	b := s.browser()
	b.creates(authenticator(), b.get(s.invite("holder")))
	choose := b.get(newProgram("console", consoleBack).start())
	choose.shows(t, 200, "Sign in with a passkey")
	b.get(newProgram("console", consoleBack).start()+"&provider="+wire.PasskeyProvider).shows(t, 200, "Sign in with your passkey")
	b.get(path(s.client().asks())).shows(t, 200, "Sign in with a passkey", "Sign in with 127.0.0.1")
}

func TestSuspendedPersonCannotUseAPasskey(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a := s.browser(), authenticator()
	b.creates(a, b.get(s.invite("ann")))
	page := b.get(s.invite("ann"))
	if _, err := s.Users.Suspend(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "ann", "", false); err != nil {
		t.Fatal(err)
	}
	b.creates(authenticator(), page).shows(t, 409, "Your passkey was not accepted")
	confirm := b.signs(a, b.get("/passkey/start/"+strings.TrimPrefix(path(s.client().asks()), "/auth/")))
	b.get(confirm.location).shows(t, 403, "Your account is suspended")
}

// Deleting the last passkey ends a sign-in that is not confirmed yet.
func TestDeletedPasskeyCannotConfirmADevice(t *testing.T) {
	s, _ := open(t, options{wire: withPasskeys})
	b, a := s.browser(), authenticator()
	b.creates(a, b.get(s.invite("ann")))
	confirm := b.signs(a, b.get("/passkey/start/"+strings.TrimPrefix(path(s.client().asks()), "/auth/")))
	form := b.get(confirm.location)
	u, _ := s.ledger.World().Users.ByName("ann")
	if _, err := s.Users.Delete(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "ann", "", false); err != nil {
		t.Fatal(err)
	}
	if w := s.ledger.World(); len(w.Passkeys.Of(u.ID)) != 0 || w.Invitations.Len() != 0 {
		t.Error("passkeys of a deleted user are left")
	}
	b.press(form).shows(t, 409, "This device was not added", "passkey was deleted")
}
