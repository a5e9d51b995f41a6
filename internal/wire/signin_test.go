package wire_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// docs/spec-coverage.md lists known mistakes of sign-in with OpenID Connect, and the tests that prevent them.

func TestPersonSignsInAndTheDeviceJoins(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	answered := c.waits(link)
	rev := s.ledger.World().Rev
	b := s.browser()
	start := b.follow(path(link), i.URL)
	cookie, err := http.ParseSetCookie(start.header.Get("Set-Cookie"))
	if err != nil || !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/oidc/" || cookie.MaxAge != 600 {
		t.Errorf("cookie %v, %v", cookie, err)
	}
	back := b.follow(start.location, "/oidc/confirm/")
	if back.status != http.StatusSeeOther || strings.Contains(back.location, "code=") || strings.Contains(back.location, "state=") {
		t.Errorf("after the exchange: %d to %s", back.status, back.location)
	}
	confirm := b.get(back.location)
	confirm.shows(t, 200, "Add this device?", "ann@example.com", "<dd>laptop</dd>", "<dd>linux</dd>", "<dd>ann</dd>")
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
		if got := confirm.header.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if policy := confirm.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "frame-ancestors 'none'; form-action 'self'") {
		t.Errorf("policy %s", policy)
	}
	if s.ledger.World().Rev != rev {
		t.Error("something was changed before the confirmation")
	}
	end := b.press(confirm, "Origin", publicURL, "Sec-Fetch-Site", "same-origin")
	if end.status != http.StatusSeeOther || end.location != publicURL+path(link) {
		t.Fatalf("confirmed: %d to %s\n%s", end.status, end.location, end.text)
	}
	if out := <-answered; !out.MachineAuthorized || out.Login.LoginName != "ann" || out.Login.DisplayName != "Ann Example" {
		t.Errorf("%+v", out)
	}
	b.get(end.location).shows(t, 200, "This device has joined")
	n := s.only()
	u, _ := s.ledger.World().Users.Get(n.Owner)
	if n.Method != mesh.RegisterOIDC || u == nil || u.Provider != "oidc" || u.ProviderID != i.URL+"/ann-1" || u.Email != "ann@example.com" {
		t.Errorf("node %+v of %+v", n, u)
	}
	if left := n.Expiry.Sub(s.ledger.Now()); left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("expires in %v, not after node.expiry", left)
	}
	for _, line := range s.log.lines(t, "device approved by sign-in") {
		if line["actor"] != "user:ann@example.com" {
			t.Errorf("logged as %v", line)
		}
	}
	for _, secret := range append(i.Secrets(), cookie.Value) {
		if strings.Contains(s.log.text(), secret) {
			t.Errorf("the log has %.20s…", secret)
		}
	}
}

// text returns the whole log.
func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// In the memory of one process, a sign-in would fail after a restart and behind two replicas.
func TestSignInContinuesOnAnotherReplicaAndAfterARestart(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	o := options{path: filepath.Join(t.TempDir(), "db"), noise: key.NewMachine()}
	next := func() (*service, func()) {
		o.wire = withProviders(providerOf(t, i, nil))
		return open(t, o)
	}
	s, stop := next()
	c := s.client()
	link := c.asks()
	b := s.browser()
	started := b.follow(path(link), "/oidc/callback")
	stop()
	b.s, stop = next()
	confirm := b.follow(started.location, "")
	stop()
	b.s, _ = next()
	if out := b.press(confirm); out.status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", out.status, out.text)
	}
	c.s = b.s
	c.connect()
	c.joins(object{"Followup": link})
	b.s.only()
}

func TestReloadOfTheCallbackDoesNotSendTheCodeTwice(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	b := s.browser()
	started := b.follow(path(s.client().asks()), "/oidc/callback")
	for range 3 {
		if out := b.get(started.location); !strings.Contains(out.location, "/oidc/confirm/") {
			t.Errorf("%d to %q", out.status, out.location)
		}
	}
	if n := len(i.Exchanged()); n != 1 {
		t.Errorf("the code was sent %d times", n)
	}
	b.press(b.follow(started.location, ""))
	b.get(started.location).shows(t, 400, "This sign-in cannot continue")
	if n := len(i.Exchanged()); n != 1 {
		t.Errorf("the code was sent %d times after the confirmation", n)
	}
}

// Otherwise an attacker lets somebody else add the attacker's device, or finish the attacker's sign-in.
func TestCallbackWithoutItsCookieIsRefused(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	mine, other := s.browser(), s.browser()
	back := mine.follow(path(s.client().asks()), "/oidc/callback").location
	other.get(back).shows(t, 400, "started in another browser")
	second := mine.follow(path(s.client().asks()), "/oidc/callback").location
	u, err := url.Parse(publicURL + "/oidc/")
	if err != nil {
		t.Fatal(err)
	}
	cookies := mine.http.Jar.Cookies(u)
	if len(cookies) != 2 {
		t.Fatalf("%d cookies", len(cookies))
	}
	swapped := []*http.Cookie{
		{Name: cookies[0].Name, Value: cookies[1].Value, Path: "/oidc/"}, {Name: cookies[1].Name, Value: cookies[0].Value, Path: "/oidc/"},
	}
	other.http.Jar.SetCookies(u, swapped)
	for _, address := range []string{back, second, "/oidc/callback", "/oidc/callback?state=x&code=y", "/oidc/confirm/x"} {
		other.get(address).shows(t, 400, "This sign-in cannot continue")
	}
	if n := len(i.Exchanged()); n != 0 {
		t.Errorf("%d codes were sent to the provider", n)
	}
	elsewhere, _ := open(t, options{wire: withProviders(providerOf(t, i, nil))})
	mine.s = elsewhere // with another key
	mine.get(back).shows(t, 400, "This sign-in cannot continue")
}

// A code of another sign-in must not work, even if an attacker gets it into the browser of the victim.
func TestInjectedCodeIsRefused(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	attacker, victim := s.browser(), s.browser()
	stolen, err := url.Parse(attacker.follow(path(s.client().asks()), "/oidc/callback").location)
	if err != nil {
		t.Fatal(err)
	}
	own, err := url.Parse(victim.follow(path(s.client().asks()), "/oidc/callback").location)
	if err != nil {
		t.Fatal(err)
	}
	q := own.Query()
	q.Set("code", stolen.Query().Get("code"))
	victim.get("/oidc/callback?"+q.Encode()).shows(t, 502, "Signing in failed", "it belongs to another sign-in")
	victim.get(own.String()).shows(t, 400, "This sign-in cannot continue") // the failure used it up
}

func TestResponseOfAnotherProviderIsRefused(t *testing.T) {
	a := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), AnnounceIss: true})
	b := oidctest.Start(t, oidctest.Behaviour{Claims: bob()})
	s, _ := open(t, options{wire: withProviders(providerOf(t, a, nil), providerOf(t, b, nil))})
	for issuer, iss := range map[int]string{0: "", 1: a.URL} { // missing although announced, and of another one
		a.Behave(func(x *oidctest.Behaviour) { x.Iss = iss })
		b.Behave(func(x *oidctest.Behaviour) { x.Iss = iss })
		br := s.browser()
		br.follow(fmt.Sprintf("/oidc/start/%d/%s", issuer, identity.LoginToken(s.client().asks())), "").
			shows(t, 400, "Signing in failed", "the response came from another identity provider")
	}
	if n := len(a.Exchanged()) + len(b.Exchanged()); n != 0 {
		t.Errorf("%d codes were exchanged", n)
	}
}

func TestErrorsOfTheProviderAreShown(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Error: url.Values{"error": {"access_denied"}, "error_description": {"<script>alert(1)</script> AADSTS50105 " + strings.Repeat("x", 2000)}}})
	s := openWith(t, i)
	link := s.client().asks()
	got := s.browser().follow(path(link), "")
	got.shows(t, 403, "did not sign you in", "access_denied: ", "AADSTS50105", identity.LoginCode(link), path(link)+"?ask")
	if strings.Contains(got.text, "<script") || len(got.text) > 6000 {
		t.Errorf("not escaped, or too long: %s", got.text)
	}
	i.Behave(func(b *oidctest.Behaviour) { b.Error, b.TokenError = nil, "invalid_client" })
	s.browser().follow(path(link), "").shows(t, 403, "invalid_client: as the test wants it")
	if lines := s.log.lines(t, "authentication failed"); len(lines) == 0 {
		t.Error("nothing was logged")
	}
}

// A form that another site sends, or that lacks the secret of the page, adds no device.
func TestConfirmationNeedsItsOwnForm(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	b := s.browser()
	confirm := b.follow(path(s.client().asks()), "")
	rev := s.ledger.World().Rev
	for _, header := range [][]string{
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://mesh.test:81"}, {"Origin", "https://mesh.test"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
	} {
		b.press(confirm, header...).shows(t, 403, "did not come from this server")
	}
	for _, form := range []url.Values{{}, {"csrf": {""}}, {"csrf": {"AAAAAAAAAAAAAAAAAAAAAAAAAA"}}, {"csrf": {strings.Repeat("A", 8000)}}} {
		b.do("POST", confirm.url, form).shows(t, 403, "did not come from this server")
	}
	s.browser().do("POST", confirm.url, url.Values{"csrf": {csrfField.FindStringSubmatch(confirm.text)[1]}}).shows(t, 400, "This sign-in cannot continue")
	if s.ledger.World().Rev != rev {
		t.Error("something was changed")
	}
	if out := b.press(confirm, "Origin", publicURL); out.status != http.StatusSeeOther {
		t.Errorf("%d\n%s", out.status, out.text)
	}
}

func TestConfirmationCountsOnce(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	b := s.browser()
	confirm := b.follow(path(link), "")
	u, err := url.Parse(confirm.url)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.http.Jar.Cookies(u)
	b.press(confirm)
	c.joins(object{"Followup": link})
	n := s.only()
	if err := s.Nodes.Delete(t.Context(), admin, n.ID.String(), ""); err != nil {
		t.Fatal(err)
	}
	rev := s.ledger.World().Rev
	for _, c := range kept { // a browser deletes them, an attacker does not
		c.Path = "/oidc/"
	}
	b.http.Jar.SetCookies(u, kept)
	if out := b.press(confirm); out.status != http.StatusSeeOther {
		t.Errorf("%d\n%s", out.status, out.text)
	}
	if s.ledger.World().Rev != rev {
		t.Error("the second confirmation changed something")
	}
	if out := c.register(object{"Followup": ""}); out.AuthURL == "" {
		t.Errorf("the deleted device came back: %+v", out)
	}
}

// A name or an e-mail address is not an identity: whoever gets it at some provider would take over the nodes.
func TestAccountOfAnotherUserIsNotMerged(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	link := s.client().asks()
	rev := s.ledger.World().Rev
	s.browser().follow(path(link), "").shows(t, 409, "This device was not added", "Another user already has the name ann", "fairlead users link USER '"+i.URL+"/ann-1'")
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "boss", Email: "Boss@example.com"}); err != nil {
		t.Fatal(err)
	}
	claims := ann()
	claims["email"] = "boss@example.com"
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = claims })
	s.browser().follow(path(link), "").shows(t, 409, "Another user already has the email address boss@example.com")
	other := oidctest.Start(t, oidctest.Behaviour{Claims: bob()})
	s.stays(t, rev+1)
	// The same subject at another issuer is another person.
	s2, _ := open(t, options{wire: withProviders(providerOf(t, other, nil), providerOf(t, i, nil))})
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	c := s2.client()
	first := c.asks()
	b := s2.browser()
	b.press(b.follow("/oidc/start/0/"+identity.LoginToken(first), ""))
	c.joins(object{"Followup": first})
	second := s2.client().asks()
	s2.browser().follow("/oidc/start/1/"+identity.LoginToken(second), "").shows(t, 409, "Another user already has the email address bob@example.com")
}

func (s *service) stays(t testing.TB, rev mesh.Revision) {
	t.Helper()
	if got := s.ledger.World().Rev; got != rev {
		t.Errorf("revision %d, want %d", got, rev)
	}
}

func TestPersonWhoMayNotSignInIsToldWhy(t *testing.T) {
	claims := ann()
	claims["email_verified"] = false
	i := oidctest.Start(t, oidctest.Behaviour{Claims: claims})
	limit := func(c *oidc.Config) { c.AllowedDomains = []string{"example.org"} }
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, limit))})
	link := s.client().asks()
	s.browser().follow(path(link), "").shows(t, 403, "You may not sign in here", "has not verified your email address", identity.LoginCode(link))
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = ann() })
	s.browser().follow(path(link), "").shows(t, 403, "the domain of your email address may not sign in here")
	s.browser().get(path(link)+"?ask").shows(t, 200, "This device is waiting to join", "Sign in with", "fairlead auth approve "+identity.LoginCode(link))
}

func TestSigningInAgainKeepsTheNode(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
	before := s.only()
	if _, err := s.Users.Rename(t.Context(), admin, "ann", "anna", ""); err != nil {
		t.Fatal(err)
	}
	claims := ann()
	claims["name"], claims["email"], claims["preferred_username"] = "Ann Married", "ann.married@example.com", "married"
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = claims })
	old := c.node.Public()
	c.node = key.NewNode()
	again := c.register(object{"OldNodeKey": old}).AuthURL
	s.browser().signIn(again)
	c.joins(object{"Followup": again, "OldNodeKey": old})
	after := s.only()
	if after.ID != before.ID || after.Name != before.Name || after.IPv4 != before.IPv4 || after.IPv6 != before.IPv6 || after.Owner != before.Owner {
		t.Errorf("was %+v, is %+v", before, after)
	}
	u, _ := s.ledger.World().Users.Get(after.Owner)
	if u.Name != "anna" || u.DisplayName != "Ann Married" || u.Email != "ann.married@example.com" || s.ledger.World().Users.Len() != 1 {
		t.Errorf("%+v", u)
	}
}

func TestAnotherPersonOnTheSameMachineGetsAnotherNode(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
	first := s.only()
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	old := c.node.Public()
	c.node = key.NewNode()
	again := c.register(object{"OldNodeKey": old}).AuthURL
	s.browser().signIn(again)
	out := c.joins(object{"Followup": again, "OldNodeKey": old})
	if out.Login.LoginName != "bob" || s.ledger.World().Nodes.Len() != 2 {
		t.Errorf("%+v, %d nodes", out, s.ledger.World().Nodes.Len())
	}
	if n, ok := s.ledger.World().Nodes.Get(first.ID); !ok || n.Owner != first.Owner || n.NodeKey != first.NodeKey || n.IPv4 != first.IPv4 {
		t.Errorf("the first node is %+v, was %+v", n, first)
	}
}

func TestProviderThatIsDown(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Down: true})
	p := providerOf(t, i, func(c *oidc.Config) { c.Name = "Example ID" })
	s, _ := open(t, options{wire: withProviders(p)})
	c := s.client()
	link := c.asks()
	b := s.browser()
	b.get(path(link)).shows(t, 200, "Example ID cannot be reached at the moment", identity.LoginCode(link), `http-equiv="refresh"`)
	b.get("/oidc/start/0/"+identity.LoginToken(link)).shows(t, 503, "Example ID cannot be reached", identity.LoginCode(link))
	i.Behave(func(b *oidctest.Behaviour) { b.Down = false })
	if err := p.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.signIn(link)
	c.joins(object{"Followup": link})
	// While people cannot sign in, those who did do not notice.
	i.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	if err := p.Discover(t.Context()); err == nil {
		t.Fatal("it is not down")
	}
	c.connect()
	c.joins(nil)
}

// Until the next regular check, people would be sent to an address that does not answer.
func TestNobodyIsSentToAProviderThatHasStopped(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, func(c *oidc.Config) { c.Name, c.Fresh = "Example ID", time.Nanosecond }))})
	link := s.client().asks()
	b := s.browser()
	i.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	b.get(path(link)).shows(t, 200, "Example ID cannot be reached at the moment", identity.LoginCode(link), `http-equiv="refresh"`)
	b.get("/oidc/start/0/"+identity.LoginToken(link)).shows(t, 503, "Example ID cannot be reached")
	i.Behave(func(b *oidctest.Behaviour) { b.Down = false })
	b.follow(path(link), "").shows(t, 200, "Add this device?")
}

func TestSeveralProvidersAreOffered(t *testing.T) {
	a, z := oidctest.Start(t, oidctest.Behaviour{Claims: ann()}), oidctest.Start(t, oidctest.Behaviour{Claims: bob()})
	named := func(name string) func(*oidc.Config) { return func(c *oidc.Config) { c.Name = name } }
	s, _ := open(t, options{wire: withProviders(providerOf(t, a, named("Work")), providerOf(t, z, named("<Home>")))})
	c := s.client()
	link := c.asks()
	b := s.browser()
	token := identity.LoginToken(link)
	b.get(path(link)).shows(t, 200, "Sign in with Work", "Sign in with <Home>", "/oidc/start/0/"+token, "/oidc/start/1/"+token)
	b.press(b.follow("/oidc/start/1/"+token, ""))
	if out := c.joins(object{"Followup": link}); out.Login.LoginName != "bob" {
		t.Errorf("%+v", out)
	}
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	token := identity.LoginToken(s.client().asks())
	old := identity.NewLoginSealer(s.secrets).SealLogin(identity.Login{NodeKey: key.NewNode().Public(), IssuedAt: mesh.TimeOf(time.Now().Add(-2 * time.Hour))})
	b := s.browser()
	for address, want := range map[string]string{
		"/oidc/start/0/" + token: i.URL + "/authorize?",
		"/oidc/start/0/" + token + "?redirect_uri=https://evil.example/": i.URL + "/authorize?",
		"/oidc/start/1/" + token:                        "",
		"/oidc/start/-1/" + token:                       "",
		"/oidc/start/0/evil.example":                    "",
		"/oidc/start/0/" + old:                          publicURL + "/auth/" + old,
		"/auth/" + token + "?next=https://evil.example": publicURL + "/oidc/start/0/" + token,
	} {
		if out := b.get(address); !strings.HasPrefix(out.location, want) || want == "" && out.location != "" || strings.Contains(out.location, "evil") {
			t.Errorf("%.60s leads to %q", address, out.location)
		}
	}
}

func TestTabsDoNotDisturbEachOther(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	b := s.browser()
	var back []string
	for range 5 {
		back = append(back, b.follow(path(s.client().asks()), "/oidc/callback").location)
	}
	u, err := url.Parse(publicURL + "/oidc/")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.http.Jar.Cookies(u)); n != 3 {
		t.Errorf("the browser has %d cookies", n)
	}
	for n, address := range slices.Backward(back) {
		if out := b.get(address); (out.status == http.StatusSeeOther) != (n >= 2) {
			t.Errorf("sign-in %d of 5: %d", n+1, out.status)
		}
	}
}

func TestNodeExpiresWithTheToken(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Lifetime: 72 * time.Hour})
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, func(c *oidc.Config) { c.UseExpiry = true }))})
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
	if left := s.only().Expiry.Sub(s.ledger.Now()); left < 71*time.Hour || left > 72*time.Hour {
		t.Errorf("expires in %v", left)
	}
}

func TestSignInDoesNotOverruleAnAdministrator(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	b := s.browser()
	confirm := b.follow(path(link), "")
	if _, err := s.Logins.Reject(t.Context(), admin, link, "not yours"); err != nil {
		t.Fatal(err)
	}
	b.press(confirm).shows(t, 409, "An administrator rejected this device: not yours")
	b.get(path(link)).shows(t, 200, "This device was rejected")
	if out := c.register(object{"Followup": link}); out.Error == "" {
		t.Errorf("%+v", out)
	}
}

func TestSecureCookiesBehindHTTPS(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s, _ := open(t, options{wire: func(c *wire.Config) {
		c.Providers, c.ServerURL = []*oidc.Provider{providerOf(t, i, nil)}, "https://mesh.test"
	}})
	out := s.browser().get("/oidc/start/0/" + identity.LoginToken(s.client().asks()))
	cookie, err := http.ParseSetCookie(out.header.Get("Set-Cookie"))
	if err != nil || !cookie.Secure || !strings.HasPrefix(cookie.Name, "__Secure-") {
		t.Errorf("cookie %v, %v", cookie, err)
	}
}

func TestNobodySignsInWithoutAProvider(t *testing.T) {
	s, _ := open(t, options{})
	for _, address := range []string{"/oidc/start/0/x", "/oidc/callback?state=x&code=y", "/oidc/confirm/x"} {
		if status, _, _ := s.outside("GET", address, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", address, status)
		}
	}
	out := s.client().register(nil)
	if status, _, text := s.outside("GET", strings.TrimPrefix(out.AuthURL, s.url), ""); status != 200 || strings.Contains(text, "Sign in") {
		t.Errorf("%d %s", status, text)
	}
}

// The issuers of both providers and the subjects together form the same account.
func TestProviderCannotSignInPeopleOfAnother(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: map[string]any{"sub": "realm/7", "preferred_username": "eve"}})
	other := oidc.New(oidc.Config{Issuer: i.URL + "/realm/", ClientID: "x", RedirectURL: wire.CallbackURL(publicURL), Log: slog.New(slog.DiscardHandler)})
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, nil), other)})
	link := s.client().asks()
	s.browser().follow("/oidc/start/0/"+identity.LoginToken(link), "").shows(t, 502, "Signing in failed", "could be confused with one of another provider")
	i.Behave(func(b *oidctest.Behaviour) { b.Claims["sub"] = "realms/7" })
	s.browser().follow("/oidc/start/0/"+identity.LoginToken(link), "").shows(t, 200, "Add this device?")
}

func TestLinkedUserSignsIn(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	u, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.client()
	link := c.asks()
	b := s.browser()
	b.follow(path(link), "").shows(t, 409, "fairlead users link USER '"+i.URL+"/ann-1'")
	if _, err := s.Users.Link(t.Context(), admin, "ann", i.URL+"/ann-1", false, ""); err != nil {
		t.Fatal(err)
	}
	b.signIn(link)
	c.joins(object{"Followup": link})
	if n := s.only(); n.Owner != u.ID {
		t.Errorf("%+v", n)
	}
}
