package wire_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

// offline runs a server that rechecks people.
func offline(t *testing.T, i *oidctest.Issuer, path string) *service {
	t.Helper()
	s, _ := open(t, options{
		path: path, recheck: map[string]time.Duration{i.URL: time.Hour},
		wire: withProviders(providerOf(t, i, func(c *oidc.Config) { c.Offline = true })),
	})
	return s
}

// The token is stored before the person confirms, because it may be too long for a cookie.
func TestRefreshTokenOfASignInIsStoredSealed(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true})
	dir := t.TempDir()
	s := offline(t, i, filepath.Join(dir, "db"))
	c := s.client()
	link := c.asks()
	b := s.browser()
	start := b.follow(path(link), i.URL)
	if !strings.Contains(start.location, "offline_access") {
		t.Errorf("the scope is not requested: %s", start.location)
	}
	back := b.follow(start.location, "/oidc/confirm/")
	u, ok := s.ledger.World().Users.ByName("ann")
	if !ok {
		t.Fatal("ann is not a user")
	}
	r, ok := s.ledger.World().Rechecks.Get(u.ID)
	if left := r.Due.Sub(s.ledger.Now()); !ok || r.Issuer != i.URL || left > time.Hour || left < 50*time.Minute {
		t.Errorf("%+v", r)
	}
	answered := c.waits(link)
	if end := b.press(b.get(back.location), "Origin", publicURL); end.status != http.StatusSeeOther {
		t.Fatalf("confirmed: %d\n%s", end.status, end.text)
	}
	if out := <-answered; !out.MachineAuthorized {
		t.Errorf("%+v", out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var stored strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stored.Write(data)
	}
	if !strings.Contains(stored.String(), r.Token) {
		t.Fatal("the database is not where this test looks")
	}
	for _, secret := range i.Secrets() {
		if strings.Contains(stored.String()+s.log.text(), secret) {
			t.Errorf("%.10s… is stored or logged", secret)
		}
	}
}

// A token that ends with the session at the provider would be refused as soon as the person signs out.
func TestOnlyOfflineTokensAreUsed(t *testing.T) {
	for scope, want := range map[string]bool{"": true, "openid offline_access": true, "openid profile": false} {
		i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true, Scope: scope})
		s := offline(t, i, "")
		b := s.browser()
		start := b.follow(path(s.client().asks()), i.URL)
		b.follow(start.location, "/oidc/confirm/")
		if got := s.ledger.World().Rechecks.Len() == 1; got != want {
			t.Errorf("granted %q: a token is stored: %t", scope, got)
		}
	}
}

func TestSuspendedPersonGetsNoRecheck(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann(), Offline: true})
	s := offline(t, i, "")
	signIn := func() answer {
		b := s.browser()
		start := b.follow(path(s.client().asks()), i.URL)
		back := b.follow(start.location, "/oidc/callback")
		return b.get(back.location)
	}
	signIn()
	if _, err := s.Users.Suspend(t.Context(), admin, "ann", "", false); err != nil {
		t.Fatal(err)
	}
	rev := s.ledger.World().Rev
	out := signIn()
	if out.status != http.StatusForbidden || s.ledger.World().Rev != rev {
		t.Errorf("%d, revision %v, was %v:\n%s", out.status, s.ledger.World().Rev, rev, out.text)
	}
}
