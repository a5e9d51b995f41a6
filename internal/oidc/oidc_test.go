package oidc_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const callback = "http://mesh.test/oidc/callback"

var flow = oidc.Flow{State: "the-state", Nonce: "the-nonce", Verifier: strings.Repeat("v", 43)}

// client returns a provider that has been discovered.
func client(t *testing.T, i *oidctest.Issuer, change func(*oidc.Config)) *oidc.Provider {
	t.Helper()
	c := oidc.Config{
		Issuer: i.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: callback,
		EmailVerifiedRequired: true, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	p := oidc.New(c)
	if err := p.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// visit goes to the provider as a browser does, and returns the query with which it comes back.
func visit(t *testing.T, p *oidc.Provider, f oidc.Flow) url.Values {
	t.Helper()
	address, err := p.AuthURL(f, false)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func signIn(t *testing.T, p *oidc.Provider) (oidc.Identity, error) {
	t.Helper()
	return p.Exchange(t.Context(), flow, visit(t, p, flow).Get("code"))
}

func TestIdentityIsReadFromTheIDToken(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: map[string]any{
		"sub": "s/1", "email": "Ann@example.com", "email_verified": "true", "preferred_username": "ann", "name": "Ann\n Example", "groups": "staff",
		"picture": "https://pictures.example/ann.png",
	}})
	got, err := signIn(t, client(t, i, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := oidc.Identity{
		Issuer: i.URL, Subject: "s/1", Email: "Ann@example.com", Username: "ann", DisplayName: "Ann Example", Groups: []string{"staff"},
		Picture: "https://pictures.example/ann.png",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUserInfoOverridesTheIDToken(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{
		Claims:   map[string]any{"email": "old@example.com", "email_verified": true, "name": "Old"},
		UserInfo: map[string]any{"sub": "1", "email": "new@example.com", "realm": map[string]any{"groups": []string{"a", "b"}}},
	})
	p := client(t, i, func(c *oidc.Config) { c.GroupsClaim = "realm.groups" })
	got, err := signIn(t, p)
	if err != nil || got.Email != "new@example.com" || got.DisplayName != "Old" || !cmp.Equal(got.Groups, []string{"a", "b"}) {
		t.Errorf("%+v, %v", got, err)
	}
	i.Behave(func(b *oidctest.Behaviour) { b.UserInfo = map[string]any{"sub": "2", "email": "new@example.com"} })
	if got, err := signIn(t, p); err == nil || !strings.Contains(err.Error(), "another person") {
		t.Errorf("UserInfo of another person: %+v, %v", got, err)
	}
}

// Otherwise a person with many groups, or a moment in which UserInfo fails, would remove the person from all groups.
func TestMissingGroupsAreUnknownIfTheyMayExist(t *testing.T) {
	sources := map[string]any{"src1": map[string]any{"endpoint": "https://graph.example"}}
	for name, c := range map[string]struct {
		claims  map[string]any
		unknown bool
	}{
		"none":           {map[string]any{}, false},
		"empty":          {map[string]any{"groups": []string{}, "hasgroups": true}, false},
		"Entra":          {map[string]any{"_claim_names": map[string]any{"groups": "src1"}, "_claim_sources": sources}, true},
		"Entra, short":   {map[string]any{"hasgroups": "true"}, true},
		"another claim":  {map[string]any{"_claim_names": map[string]any{"address": "src1"}, "_claim_sources": sources}, false},
		"list and other": {map[string]any{"groups": []any{"a", 7}, "_claim_names": map[string]any{"address": "src1"}, "_claim_sources": sources}, false},
	} {
		i := oidctest.Start(t, oidctest.Behaviour{Claims: c.claims})
		got, err := signIn(t, client(t, i, nil))
		if err != nil || got.GroupsUnknown != c.unknown {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		_, err = signIn(t, client(t, i, func(c *oidc.Config) { c.AllowedGroups = []string{"staff"} }))
		if err == nil || c.unknown != strings.Contains(err.Error(), "does not say which groups") {
			t.Errorf("%s, with a list: %v", name, err)
		}
	}
	i := oidctest.Start(t, oidctest.Behaviour{UserInfo: map[string]any{"sub": "1"}})
	p := client(t, i, nil)
	if got, err := signIn(t, p); err != nil || got.GroupsUnknown {
		t.Errorf("UserInfo without groups: %+v, %v", got, err)
	}
	i.Behave(func(b *oidctest.Behaviour) { b.UserInfo = nil })
	if got, err := signIn(t, p); err != nil || !got.GroupsUnknown {
		t.Errorf("UserInfo that fails: %+v, %v", got, err)
	}
}

func TestOnlyMappedGroupsCount(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: map[string]any{"groups": []string{"/staff", "0b1f", "prod-admins"}}})
	p := client(t, i, func(c *oidc.Config) {
		c.GroupsMap, c.AllowedGroups = map[string]string{"/staff": "staff", "0b1f": "dev"}, []string{"prod-admins"}
	})
	if got, err := signIn(t, p); err != nil || !cmp.Equal(got.Groups, []string{"staff", "dev"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEveryListMustContainThePerson(t *testing.T) {
	claims := map[string]any{"email": "ann@Example.com", "email_verified": true, "groups": []string{"staff", "mesh"}}
	with := func(name string, v any) map[string]any {
		changed := map[string]any{name: v}
		for k, v := range claims {
			if k != name {
				changed[k] = v
			}
		}
		return changed
	}
	for name, c := range map[string]struct {
		claims map[string]any
		lists  oidc.Config
		want   string // empty if the person may sign in
	}{
		"no list":          {claims, oidc.Config{}, ""},
		"all lists":        {claims, oidc.Config{AllowedDomains: []string{"example.org", "example.com"}, AllowedUsers: []string{"ANN@example.com"}, AllowedGroups: []string{"mesh"}}, ""},
		"domain":           {claims, oidc.Config{AllowedDomains: []string{"ample.com"}}, "domain of your email address"},
		"user":             {claims, oidc.Config{AllowedDomains: []string{"example.com"}, AllowedUsers: []string{"bob@example.com"}}, "your email address may not"},
		"group":            {claims, oidc.Config{AllowedUsers: []string{"ann@example.com"}, AllowedGroups: []string{"/mesh"}}, "none of the groups"},
		"no groups":        {with("groups", nil), oidc.Config{AllowedGroups: []string{"mesh"}}, "none of the groups"},
		"unverified":       {with("email_verified", false), oidc.Config{AllowedDomains: []string{"example.com"}}, "not verified"},
		"verified unsaid":  {with("email_verified", nil), oidc.Config{AllowedUsers: []string{"ann@example.com"}}, "not verified"},
		"no email":         {with("email", nil), oidc.Config{AllowedDomains: []string{"example.com"}}, "does not say"},
		"unverified, free": {with("email_verified", "false"), oidc.Config{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := client(t, oidctest.Start(t, oidctest.Behaviour{Claims: c.claims}), func(conf *oidc.Config) {
				conf.AllowedDomains, conf.AllowedUsers, conf.AllowedGroups = c.lists.AllowedDomains, c.lists.AllowedUsers, c.lists.AllowedGroups
			})
			who, err := signIn(t, p)
			var refused *oidc.NotAllowedError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
			if name == "unverified, free" && who.Email != "" {
				t.Errorf("an unverified address is used: %s", who.Email)
			}
		})
	}
	p := client(t, oidctest.Start(t, oidctest.Behaviour{Claims: with("email_verified", nil)}), func(c *oidc.Config) { c.EmailVerifiedRequired = false })
	if who, err := signIn(t, p); err != nil || who.Email != "ann@Example.com" {
		t.Errorf("an address that need not be verified: %+v, %v", who, err)
	}
}

func TestTokensOfOthersAreRefused(t *testing.T) {
	for name, claims := range map[string]map[string]any{
		"nonce":         {"nonce": "of another sign-in"},
		"no nonce":      {"nonce": nil},
		"audience":      {"aud": "another client"},
		"issuer":        {"iss": "https://id.example"},
		"expired":       {"exp": time.Now().Add(-time.Hour).Unix()},
		"two audiences": {"aud": []string{oidctest.ClientID, "another"}},
		"no subject":    {"sub": ""},
		"long subject":  {"sub": strings.Repeat("x", 256)},
		"line break":    {"sub": "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			p := client(t, oidctest.Start(t, oidctest.Behaviour{Claims: claims}), nil)
			if who, err := signIn(t, p); err == nil || !strings.HasPrefix(err.Error(), "the ID token is not valid: ") {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
}

func TestExpiryOfTheTokenIsUsedOnlyIfConfigured(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Lifetime: 5 * time.Hour})
	if who, err := signIn(t, client(t, i, nil)); err != nil || !who.Expiry.IsZero() {
		t.Errorf("%v, %v", who.Expiry, err)
	}
	who, err := signIn(t, client(t, i, func(c *oidc.Config) { c.UseExpiry = true }))
	if left := time.Until(who.Expiry); err != nil || left < 4*time.Hour || left > 5*time.Hour {
		t.Errorf("%v, %v", who.Expiry, err)
	}
}

func TestPKCEIsUsedWheneverItIsAnnounced(t *testing.T) {
	for _, c := range []struct{ announced, forced, want bool }{{true, false, true}, {false, true, true}, {false, false, false}} {
		i := oidctest.Start(t, oidctest.Behaviour{PKCE: c.announced})
		p := client(t, i, func(conf *oidc.Config) { conf.PKCE = c.forced })
		address, err := p.AuthURL(flow, false)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil || (u.Query().Get("code_challenge_method") == "S256") != c.want || strings.Contains(address, flow.Verifier) {
			t.Errorf("announced %t, forced %t: %s, %v", c.announced, c.forced, address, err)
		}
		other := flow
		other.Verifier = strings.Repeat("w", 43)
		if _, err := p.Exchange(t.Context(), other, visit(t, p, flow).Get("code")); (err != nil) != c.announced {
			t.Errorf("a code with the verifier of another sign-in: %v", err)
		}
	}
}

// A response that names another issuer may be an attempt to send the code of one provider to another (RFC 9207).
func TestIssuerOfAResponseIsChecked(t *testing.T) {
	silent := client(t, oidctest.Start(t, oidctest.Behaviour{}), nil)
	announced := client(t, oidctest.Start(t, oidctest.Behaviour{AnnounceIss: true}), nil)
	for _, c := range []struct {
		p     *oidc.Provider
		iss   string
		given bool
		want  error
	}{
		{silent, "", false, nil},
		{silent, silent.Issuer(), true, nil},
		{silent, announced.Issuer(), true, oidc.ErrOtherIssuer},
		{silent, "", true, oidc.ErrOtherIssuer},
		{announced, announced.Issuer(), true, nil},
		{announced, "", false, oidc.ErrOtherIssuer},
	} {
		if err := c.p.CheckIssuer(c.iss, c.given); !errors.Is(err, c.want) {
			t.Errorf("iss %q, given %t: %v, want %v", c.iss, c.given, err, c.want)
		}
	}
}

func TestErrorsOfTheProviderAreItsOwnWordsAndNoSecrets(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{TokenError: "server_error"})
	p := client(t, i, nil)
	var refused *oidc.RefusedError
	if _, err := signIn(t, p); !errors.As(err, &refused) || err.Error() != "server_error: as the test wants it" {
		t.Errorf("got %v", err)
	}
	i.Behave(func(b *oidctest.Behaviour) { b.TokenError = "" })
	code := visit(t, p, flow).Get("code")
	i.Close()
	_, err := p.Exchange(t.Context(), flow, code)
	if err == nil {
		t.Fatal("no error without a provider")
	}
	for _, secret := range append(i.Secrets(), flow.Nonce, flow.Verifier, flow.State) {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q shows %q", err, secret)
		}
	}
}

// A provider that refuses the client's credentials must not get the code a second time.
func TestCodeIsSentOnce(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{})
	p := client(t, i, func(c *oidc.Config) { c.ClientSecret = "wrong" })
	if _, err := signIn(t, p); err == nil || err.Error() != "invalid_client" {
		t.Errorf("got %v", err)
	}
	if n := len(i.Exchanged()); n != 1 {
		t.Errorf("the code was sent %d times", n)
	}
}

func TestProviderThatIsDownIsFoundLater(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Down: true})
	var log waittest.Transcript
	p := oidc.New(oidc.Config{Issuer: i.URL, ClientID: "mesh", RedirectURL: callback, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := p.AuthURL(flow, false); !errors.Is(err, oidc.ErrUnreachable) {
		t.Errorf("before: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { _ = p.Run(ctx) })
	defer loop.Wait()
	defer cancel()
	waittest.Eventually(t, 20*time.Second, 5*time.Millisecond, func() error {
		if !strings.Contains(log.String(), "identity provider unreachable") {
			return errors.New("nothing was logged")
		}
		return nil
	})
	i.Behave(func(b *oidctest.Behaviour) { b.Down = false })
	waittest.Eventually(t, 20*time.Second, 5*time.Millisecond, p.Err)
	if _, err := p.AuthURL(flow, false); err != nil {
		t.Errorf("after: %v", err)
	}
	waittest.Eventually(t, 20*time.Second, 5*time.Millisecond, func() error {
		if !strings.Contains(log.String(), "identity provider recovered") {
			return errors.New("the recovery was not logged")
		}
		return nil
	})
	// A provider that fails later is reported, but known endpoints stay in use.
	i.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	if err := p.Discover(t.Context()); err == nil || p.Err() == nil {
		t.Error("an outage is not reported")
	}
	if _, err := p.AuthURL(flow, false); err != nil {
		t.Errorf("during an outage: %v", err)
	}
}

func TestCheckAsksTheProviderUnlessItAnsweredAMomentAgo(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{})
	patient, eager := client(t, i, func(c *oidc.Config) { c.Fresh = time.Hour }), client(t, i, func(c *oidc.Config) { c.Fresh = time.Nanosecond })
	i.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	if err := patient.Check(t.Context()); err != nil {
		t.Errorf("it was reached a moment ago: %v", err)
	}
	if _, err := patient.Exchange(t.Context(), flow, "code"); err == nil || patient.Check(t.Context()) == nil {
		t.Errorf("it did not answer a moment ago: %v", err)
	}
	if err := eager.Check(t.Context()); err == nil || eager.Err() == nil {
		t.Errorf("it is down: %v, %v", err, eager.Err())
	}
	i.Behave(func(b *oidctest.Behaviour) { b.Down = false })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // either the turn or the context comes first
		_ = eager.Check(gone)
	}
	if err := eager.Check(t.Context()); err != nil || eager.Err() != nil {
		t.Errorf("it is back: %v, %v", err, eager.Err())
	}
}

func TestIssuerMustBeSpelledAsTheProviderDoes(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{})
	p := oidc.New(oidc.Config{Issuer: i.URL + "/", ClientID: "mesh", RedirectURL: callback, Log: slog.New(slog.DiscardHandler)})
	if err := p.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), `calls itself "`+i.URL+`"`) {
		t.Errorf("got %v", err)
	}
}

func TestTextOfOthersIsOneShortLine(t *testing.T) {
	got := oidc.Line(" a\r\nb\x00\u202ec\xff" + strings.Repeat("ä", 400))
	if !strings.HasPrefix(got, "a bcä") || len(got) > 310 || strings.ContainsAny(got, "\r\n\x00\u202e") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
