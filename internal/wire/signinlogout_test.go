package wire_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logoutClaims returns the claims of a logout token for ann.
func logoutClaims(i *oidctest.Issuer, id string) map[string]any {
	return map[string]any{
		"iss": i.URL, "aud": oidctest.ClientID, "sub": "ann-1", "iat": time.Now().Unix(), "exp": time.Now().Add(2 * time.Minute).Unix(), "jti": id,
		"events": map[string]any{logoutEvent: map[string]any{}},
	}
}

func (s *service) logout(token string) answer {
	s.t.Helper()
	return s.browser().do(http.MethodPost, "/oidc/backchannel-logout", url.Values{"logout_token": {token}})
}

// withSession signs ann in, and gives her a session.
func (s *service) withSession(i *oidctest.Issuer) *mesh.User {
	s.t.Helper()
	b := s.browser()
	start := b.follow(path(s.client().asks()), i.URL)
	b.follow(start.location, "/oidc/confirm/")
	u, ok := s.ledger.World().Users.ByName("ann")
	if !ok {
		s.t.Fatal("ann is not a user")
	}
	s.session(u)
	return u
}

func (s *service) session(u *mesh.User) {
	s.t.Helper()
	if _, _, err := s.Sessions.Create(s.t.Context(), mesh.Actor{}, control.NewSession{User: u.ID, Client: mesh.SessionCLI}); err != nil {
		s.t.Fatal(err)
	}
}

func TestBackChannelLogoutEndsSessionsAndAsksTheProvider(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true})
	s := offline(t, i, "")
	u := s.withSession(i)
	token := i.Sign(logoutClaims(i, "one"))
	if out := s.logout(token); out.status != http.StatusOK || out.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d: %s", out.status, out.text)
	}
	r, ok := s.ledger.World().Rechecks.Get(u.ID)
	if !ok || !r.Due.Reached(s.ledger.Now()) || r.Cause != mesh.SuspendedByLogout || s.ledger.World().Sessions.Len() != 0 {
		t.Errorf("%+v; %d sessions", r, s.ledger.World().Sessions.Len())
	}
	if now, _ := s.ledger.World().Users.Get(u.ID); now.Suspended() {
		t.Error("a logout alone suspends")
	}
	if strings.Contains(s.log.text(), token) {
		t.Error("the token is logged")
	}
}

// A provider may name only its session (sid). What else the person has started stays.
func TestLogoutOfOneSessionAtTheProviderEndsWhatItStarted(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Offline: true})
	s := offline(t, i, "")
	at := func(sid string) {
		claims := ann()
		claims["sid"] = sid
		i.Behave(func(b *oidctest.Behaviour) { b.Claims = claims })
	}
	at("laptop")
	console := newProgram("console", consoleBack)
	first, err := console.exchange(t, s, console.code(t, s.browser().follow(console.start(), "/admin/")))
	if err != nil {
		t.Fatal(err)
	}
	at("phone")
	p := newProgram("cli", "")
	device, err := s.Sessions.StartDevice("192.0.2.1", p.challenge(), "build server")
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.press(b.follow("/oidc/device/"+device, "")).shows(t, 200, "You are signed in")
	second, _, err := s.Sessions.PollDevice(t.Context(), mesh.Actor{}, device, p.verifier)
	if err != nil || second == nil {
		t.Fatalf("%+v, %v", second, err)
	}
	if strings.Contains(first.ProviderSession+second.ProviderSession, "laptop") || first.ProviderSession == second.ProviderSession {
		t.Errorf("%q, %q", first.ProviderSession, second.ProviderSession)
	}
	ended := func(sid, id string) answer {
		claims := logoutClaims(i, id)
		delete(claims, "sub")
		claims["sid"] = sid
		return s.logout(i.Sign(claims))
	}
	sessions := func() (out []mesh.SessionID) {
		for v := range s.ledger.World().Sessions.All() {
			out = append(out, v.ID)
		}
		return out
	}
	rev := s.ledger.World().Rev
	if out := ended("unknown", "one"); out.status != http.StatusOK || s.ledger.World().Rev != rev {
		t.Errorf("a session that nobody used: %d %s", out.status, out.text)
	}
	if out := ended("laptop", "two"); out.status != http.StatusOK || !slices.Equal(sessions(), []mesh.SessionID{second.ID}) {
		t.Errorf("%d %s; sessions %v", out.status, out.text, sessions())
	}
	if r, ok := s.ledger.World().Rechecks.Get(first.User); !ok || !r.Due.Reached(s.ledger.Now()) || r.Cause != mesh.SuspendedByLogout {
		t.Errorf("the provider is not asked about the person: %+v", r)
	}
	if out := ended("phone", "three"); out.status != http.StatusOK || len(sessions()) != 0 {
		t.Errorf("%d %s; sessions %v", out.status, out.text, sessions())
	}
	if out := ended("phone", "three"); out.status != http.StatusBadRequest {
		t.Errorf("a token that was used: %d %s", out.status, out.text)
	}
}

// A token that somebody has recorded must not sign the person out again, on any replica.
func TestLogoutTokenCountsOnce(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true})
	o := options{
		path: filepath.Join(t.TempDir(), "db"), noise: key.NewMachine(), recheck: map[string]time.Duration{i.URL: time.Hour},
		wire: withProviders(providerOf(t, i, func(c *oidc.Config) { c.Offline = true })),
	}
	s, stop := open(t, o)
	u := s.withSession(i)
	token := i.Sign(logoutClaims(i, "one"))
	if out := s.logout(token); out.status != http.StatusOK {
		t.Fatalf("%d: %s", out.status, out.text)
	}
	s.session(u)
	stop()
	s, _ = open(t, o)
	if out := s.logout(token); out.status != http.StatusBadRequest || s.ledger.World().Sessions.Len() != 1 {
		t.Errorf("%d: %s; %d sessions", out.status, out.text, s.ledger.World().Sessions.Len())
	}
	if out := s.logout(i.Sign(logoutClaims(i, "two"))); out.status != http.StatusOK || s.ledger.World().Sessions.Len() != 0 {
		t.Errorf("%d: %s; %d sessions", out.status, out.text, s.ledger.World().Sessions.Len())
	}
}

func TestForgedAndForeignLogoutTokensAreRefused(t *testing.T) {
	i, other := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true}), oidctest.Start(t, oidctest.Behaviour{})
	s := offline(t, i, "")
	s.withSession(i)
	with := func(name string, v any) string {
		c := logoutClaims(i, name)
		if c[name] = v; v == nil {
			delete(c, name)
		}
		return i.Sign(c)
	}
	good := i.Sign(logoutClaims(i, "good"))
	parts := strings.Split(good, ".")
	idToken := map[string]any{"iss": i.URL, "aud": oidctest.ClientID, "sub": "ann-1", "nonce": "n", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	strange := logoutClaims(i, "strange")
	delete(strange, "sub")
	strange["sid"] = 7
	rev := s.ledger.World().Rev
	for name, token := range map[string]string{
		"no token":               "",
		"not a token":            "a.b.c",
		"signed by somebody":     other.Sign(logoutClaims(i, "x")),
		"of another provider":    other.Sign(logoutClaims(other, "x")),
		"without a signature":    "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"changed":                parts[0] + "." + strings.Split(with("sub", "bob-1"), ".")[1] + "." + parts[2],
		"for another client":     with("aud", "another"),
		"an ID token":            i.Sign(idToken),
		"with a nonce":           with("nonce", "n"),
		"without an event":       with("events", nil),
		"with another event":     with("events", map[string]any{"http://schemas.openid.net/event/other": map[string]any{}}),
		"with an event as text":  with("events", map[string]any{logoutEvent: "yes"}),
		"without an ID":          with("jti", nil),
		"with a long ID":         with("jti", strings.Repeat("x", 300)),
		"without a time":         with("iat", nil),
		"old":                    with("iat", time.Now().Add(-10*time.Minute).Unix()),
		"from the future":        with("iat", time.Now().Add(10*time.Minute).Unix()),
		"expired":                with("exp", time.Now().Add(-5*time.Minute).Unix()),
		"without a person":       with("sub", nil),
		"with a strange session": i.Sign(strange),
		"longer than is allowed": with("padding", strings.Repeat("x", 20<<10)),
	} {
		out := s.logout(token)
		if unverified := name == "signed by somebody" || name == "changed"; unverified && out.status == http.StatusServiceUnavailable {
			continue // the server does not fetch the keys each time
		}
		if out.status != http.StatusBadRequest || !strings.Contains(out.text, "invalid_request") {
			t.Errorf("%s: %d %s", name, out.status, out.text)
		}
	}
	if s.ledger.World().Rev != rev || s.ledger.World().Sessions.Len() != 1 {
		t.Errorf("something was changed: %d sessions", s.ledger.World().Sessions.Len())
	}
	if out := s.logout(with("sub", "unknown")); out.status != http.StatusOK || s.ledger.World().Rev != rev {
		t.Errorf("a person who has never signed in: %d %s", out.status, out.text)
	}
	if out := s.logout(good); out.status != http.StatusOK {
		t.Errorf("%d: %s", out.status, out.text)
	}
}

// Anyone can send logout tokens. They must not keep people from signing in.
func TestUnfinishedLogoutsDoNotKeepPeopleFromSigningIn(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	for range 40 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST /oidc/backchannel-logout HTTP/1.1\r\nHost: mesh.test\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
			"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(c).ReadString('\n') // the server reads the body
		if err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	s.browser().follow(path(s.client().asks()), "").shows(t, 200, "Add this device?")
	if out := s.logout(i.Sign(logoutClaims(i, "one"))); out.status != http.StatusOK {
		t.Errorf("%d: %s", out.status, out.text)
	}
}

func TestForgedLogoutTokensFetchTheKeysAtALimitedPace(t *testing.T) {
	i, other := oidctest.Start(t, oidctest.Behaviour{Claims: ann()}), oidctest.Start(t, oidctest.Behaviour{})
	s := openWith(t, i)
	begun, later := time.Now(), 0
	for n := range 20 {
		out := s.logout(other.Sign(logoutClaims(i, strconv.Itoa(n))))
		switch {
		case out.status == http.StatusServiceUnavailable && out.header.Get("Retry-After") != "":
			later++
		case out.status != http.StatusBadRequest:
			t.Errorf("%d: %s", out.status, out.text)
		}
	}
	if limit := 1 + int(time.Since(begun)/time.Second); i.KeysFetched() > limit || i.KeysFetched() == 0 || later != 20-i.KeysFetched() {
		t.Errorf("the keys were fetched %d times, want at most %d; %d tokens were not verified", i.KeysFetched(), limit, later)
	}
	if out := s.logout(i.Sign(logoutClaims(i, "one"))); out.status != http.StatusOK {
		t.Errorf("a token of the provider: %d: %s", out.status, out.text)
	}
	s.browser().follow(path(s.client().asks()), "").shows(t, 200, "Add this device?")
}

func TestLogoutTokenCanBeSentAgainIfTheProviderIsDown(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	i.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	if out := s.logout(i.Sign(logoutClaims(i, "one"))); out.status != http.StatusServiceUnavailable || out.header.Get("Retry-After") == "" {
		t.Errorf("%d: %s", out.status, out.text)
	}
}

func TestProviderCannotSignOutPeopleOfAnother(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{})
	other := oidc.New(oidc.Config{Issuer: i.URL + "/realm/", ClientID: "x", RedirectURL: wire.CallbackURL(publicURL), Log: slog.New(slog.DiscardHandler)})
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, nil), other)})
	u, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "eve"})
	if err == nil {
		_, err = s.Users.Link(t.Context(), admin, "eve", i.URL+"/realm/7", false, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	s.session(u)
	c := logoutClaims(i, "one")
	c["sub"] = "realm/7"
	if out := s.logout(i.Sign(c)); out.status != http.StatusBadRequest || !strings.Contains(out.text, "could be confused") || s.ledger.World().Sessions.Len() != 1 {
		t.Errorf("%d: %s; %d sessions", out.status, out.text, s.ledger.World().Sessions.Len())
	}
}
