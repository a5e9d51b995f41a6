package recheck_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/recheck"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// often makes everyone due at once.
const often = time.Millisecond

var flow = oidc.Flow{State: "state", Nonce: "nonce", Verifier: strings.Repeat("v", 43)}

// service is a server with one provider.
type service struct {
	*control.Service
	t        *testing.T
	ledger   *ledger.Ledger
	issuer   *oidctest.Issuer
	provider *oidc.Provider
	loop     *recheck.Loop
	dir      string
	every    map[string]time.Duration
	log      waittest.Transcript
}

func start(t *testing.T, b oidctest.Behaviour) *service {
	t.Helper()
	return startEvery(t, b, often)
}

func startEvery(t *testing.T, b oidctest.Behaviour, every time.Duration) *service {
	t.Helper()
	b.Offline = true
	s := &service{t: t, issuer: oidctest.Start(t, b), dir: t.TempDir()}
	s.every = map[string]time.Duration{s.issuer.URL: every}
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(s.dir, "db"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	log, reg := slog.New(slog.NewTextHandler(&s.log, nil)), prometheus.NewRegistry()
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	if s.ledger, err = ledger.Open(t.Context(), ledger.Config{Store: st, Log: log, Registerer: reg, History: st, Reserved: mesh.ReservedFor(v4, v6)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.ledger.Run(ctx) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	s.Service = control.New(control.Config{
		Ledger: s.ledger, History: st, Log: log, Registerer: reg, PrefixV4: v4, PrefixV6: v6,
		RefreshTokens: identity.NewTokenSealer(identity.NewServerSecrets(identity.NewServerSecret(1))), Recheck: s.every,
	})
	s.provider = oidc.New(oidc.Config{
		Issuer: s.issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: "https://mesh.example.com/oidc/callback",
		Offline: true, Log: log, Fresh: time.Nanosecond,
	})
	if err := s.provider.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.loop = recheck.New(recheck.Config{Rechecks: s.Rechecks, Providers: []*oidc.Provider{s.provider}, Log: log, Registerer: reg})
	return s
}

// signIn signs a person in, with a session.
func (s *service) signIn(name string) mesh.UserID {
	s.t.Helper()
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.Claims = map[string]any{"sub": name, "groups": []string{"staff"}} })
	address, err := s.provider.AuthURL(flow, false)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		s.t.Fatal(err)
	}
	who, err := s.provider.Exchange(s.t.Context(), flow, back.Query().Get("code"))
	if err != nil || who.RefreshToken == "" {
		s.t.Fatalf("%+v, %v", who, err)
	}
	u, err := s.Rechecks.SignedIn(s.t.Context(), mesh.Actor{}, control.Person{Issuer: who.Issuer, Subject: who.Subject, Username: name, Groups: who.Groups}, who.RefreshToken)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := s.Sessions.Create(s.t.Context(), mesh.Actor{}, control.NewSession{User: u.ID, Client: mesh.SessionCLI}); err != nil {
		s.t.Fatal(err)
	}
	return u.ID
}

func (s *service) user(id mesh.UserID) *mesh.User {
	s.t.Helper()
	u, ok := s.ledger.World().Users.Get(id)
	if !ok {
		s.t.Fatalf("no user %v", id)
	}
	return u
}

// look rechecks everyone, until the provider has been asked so many times more.
func (s *service) look(requests int) {
	s.t.Helper()
	before := len(s.issuer.Refreshed())
	waittest.Eventually(s.t, time.Minute, time.Millisecond, func() error {
		if got := len(s.issuer.Refreshed()) - before; got < requests {
			s.loop.Look(s.t.Context())
			return fmt.Errorf("asked %d times, want %d", got, requests)
		}
		return nil
	})
}

func (s *service) change(id mesh.UserID, edit func(*mesh.Recheck)) {
	s.t.Helper()
	if _, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
		r, ok := w.Rechecks.Get(id)
		if !ok {
			return nil, errors.New("no recheck")
		}
		changed := *r
		edit(&changed)
		return []mesh.Event{mesh.RecheckPut{Recheck: &changed}}, nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// commit changes what is stored, as earlier changes would have.
func (s *service) commit(decide func(w *policy.World, now mesh.Time) []mesh.Event) {
	s.t.Helper()
	if _, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return decide(w, now), nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

func TestOnlyAConfirmedInvalidGrantSuspends(t *testing.T) {
	refuse := func(code string, status, times int) func(*oidctest.Behaviour) {
		return func(b *oidctest.Behaviour) { b.RefreshError, b.RefreshStatus, b.RefreshErrors = code, status, times }
	}
	for name, c := range map[string]struct {
		behave  func(*oidctest.Behaviour)
		suspend bool
		signIn  bool // with a token that may have been used up, the person has to sign in again
	}{
		"twice":                   {refuse("invalid_grant", 0, 0), true, true},
		"once":                    {refuse("invalid_grant", 0, 1), false, false},
		"another status":          {refuse("invalid_grant", http.StatusInternalServerError, 0), false, false},
		"invalid_request":         {refuse("invalid_request", 0, 0), false, true}, // dex, for a token that was used before
		"invalid_client":          {refuse("invalid_client", http.StatusUnauthorized, 0), false, false},
		"invalid_client with 400": {refuse("invalid_client", 0, 0), false, false},
		"unauthorized_client":     {refuse("unauthorized_client", 0, 0), false, false},
		"unauthorized":            {refuse("", http.StatusUnauthorized, 0), false, false},
		"forbidden":               {refuse("access_denied", http.StatusForbidden, 0), false, false},
		"a timeout":               {refuse("", http.StatusRequestTimeout, 0), false, false},
		"too many requests":       {refuse("invalid_request", http.StatusTooManyRequests, 0), false, false},
		"an empty body":           {refuse("", http.StatusBadRequest, 0), false, false}, // glewlwyd
		"an error of a proxy":     {refuse("", http.StatusBadGateway, 0), false, false},
		"a lost connection":       {func(b *oidctest.Behaviour) { b.RefreshLost = true }, false, false},
		"an answer of no form":    {refuse("", http.StatusOK, 0), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, oidctest.Behaviour{})
			id := s.signIn("ann")
			s.look(1)
			s.issuer.Behave(c.behave)
			s.look(2)
			if u := s.user(id); u.Suspended() != c.suspend || c.suspend && u.SuspendedBy != mesh.SuspendedByRecheck {
				t.Errorf("%+v", u)
			}
			if sent := s.issuer.Refreshed(); sent[0] != sent[1] || sent[1] != sent[2] {
				t.Error("a token that was not replaced is not used again")
			}
			if failing := s.loop.Warning() != ""; failing != (!c.suspend && name != "once") {
				t.Errorf("health says %q", s.loop.Warning())
			}
		})
		t.Run(name+" in doubt", func(t *testing.T) {
			t.Parallel()
			s := start(t, oidctest.Behaviour{})
			id := s.signIn("ann")
			s.change(id, func(r *mesh.Recheck) { r.Doubt = true })
			s.issuer.Behave(c.behave)
			requests := 2
			if c.signIn && !c.suspend {
				requests = 1 // and no more, because the token is deleted
			}
			s.look(requests)
			r, kept := s.ledger.World().Rechecks.Get(id)
			if u := s.user(id); u.Suspended() || u.Held() || kept == c.signIn || (s.ledger.World().Sessions.Len() == 0) != c.signIn {
				t.Errorf("%+v; recheck %t, %d sessions", u, kept, s.ledger.World().Sessions.Len())
			}
			if kept && name != "once" && !r.Doubt {
				t.Error("the token is no longer in doubt")
			}
			if failing := s.loop.Warning() != ""; failing != (!c.signIn && name != "once") {
				t.Errorf("health says %q", s.loop.Warning())
			}
		})
	}
}

func TestHealthCountsWhoCouldNotBeRecheckedOnAllReplicas(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	began := s.ledger.Now()
	ids := []mesh.UserID{s.signIn("ann"), s.signIn("bob"), s.signIn("eve")}
	if _, err := s.Users.Suspend(t.Context(), mesh.Actor{}, ids[2].String(), "", false); err != nil {
		t.Fatal(err)
	}
	if text := s.loop.Warning(); text != "" {
		t.Errorf("before: %q", text)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError, b.RefreshStatus = "slow_down", http.StatusTooManyRequests })
	s.look(4)
	first := s.Rechecks.Unchecked()
	if first.People != 2 || first.Since < began {
		t.Errorf("%+v", first)
	}
	// What counts is in the ledger, so another replica, or this one after a restart, says the same.
	other := recheck.New(recheck.Config{Rechecks: s.Rechecks, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if text := other.Warning(); !strings.HasPrefix(text, "2 people could not be rechecked since "+first.Since.Time().UTC().Format(time.RFC3339)) {
		t.Errorf("%q", text)
	}
	s.look(2)
	if again := s.Rechecks.Unchecked(); again != first {
		t.Errorf("a repeated failure counts as a new one: %+v, %+v", first, again)
	}
	if n := strings.Count(s.log.String(), "recheck failed"); n != 2 {
		t.Errorf("logged %d times", n)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError, b.RefreshStatus = "", 0 })
	s.look(2)
	waittest.Eventually(t, time.Minute, time.Millisecond, func() error {
		s.loop.Look(t.Context())
		if text := s.loop.Warning(); text != "" {
			return errors.New(text)
		}
		return nil
	})
}

func TestHealthCountsPeopleWhomNobodyAskedAboutForAWhile(t *testing.T) {
	s := startEvery(t, oidctest.Behaviour{}, time.Hour)
	id := s.signIn("ann")
	due := s.ledger.Now().Add(-time.Hour)
	s.change(id, func(r *mesh.Recheck) { r.Due = due })
	if got := s.Rechecks.Unchecked(); got != (control.Unchecked{People: 1, Since: due}) {
		t.Errorf("%+v", got)
	}
	if text := s.loop.Warning(); !strings.HasPrefix(text, "1 person could not be rechecked since ") {
		t.Errorf("%q", text)
	}
}

// Tokens of a provider that is not configured stay, because that may be a mistake.
func TestRefreshTokensAreDeletedWhenRechecksAreSwitchedOff(t *testing.T) {
	s := startEvery(t, oidctest.Behaviour{}, time.Hour)
	off, unknown := s.signIn("ann"), s.signIn("bob")
	s.change(unknown, func(r *mesh.Recheck) { r.Issuer = "https://old.example.com" })
	s.loop.Look(t.Context())
	if n := s.ledger.World().Rechecks.Len(); n != 2 {
		t.Fatalf("%d tokens", n)
	}
	s.every[s.issuer.URL] = 0
	s.loop.Look(t.Context())
	if _, kept := s.ledger.World().Rechecks.Get(off); kept {
		t.Error("the token stays")
	}
	if _, kept := s.ledger.World().Rechecks.Get(unknown); !kept {
		t.Error("the token of a provider that is not configured is deleted")
	}
	if s.user(off).Suspended() || s.ledger.World().Sessions.Len() != 2 {
		t.Error("a person is affected")
	}
	if !strings.Contains(s.log.String(), "refresh tokens deleted") {
		t.Error("the log does not say so")
	}
}

func TestProviderThatIsDownIsNotAsked(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	s.look(1)
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.Down = true })
	before, _ := s.ledger.World().Rechecks.Get(id)
	waittest.Eventually(t, time.Minute, time.Millisecond, func() error {
		if !before.Due.Reached(s.ledger.Now()) {
			return errors.New("not due yet")
		}
		return nil
	})
	s.loop.Look(t.Context())
	if after, _ := s.ledger.World().Rechecks.Get(id); !cmp.Equal(before, after) {
		t.Errorf("%+v, was %+v", after, before)
	}
}

func TestRotatedTokensReplaceEachOther(t *testing.T) {
	s := start(t, oidctest.Behaviour{Rotate: true})
	id := s.signIn("ann")
	s.look(4)
	seen := map[string]bool{}
	for _, token := range s.issuer.Refreshed() {
		if seen[token] {
			t.Error("a token was used twice")
		}
		seen[token] = true
	}
	if s.user(id).Suspended() {
		t.Error("the user is suspended")
	}
}

// A replica that dies between the answer of the provider and its commit leaves a token that was used up. So does a provider
// whose answer is lost.
func TestTokenThatWasPerhapsUsedUpMeansSignInAgain(t *testing.T) {
	for name, interrupt := range map[string]func(*service, mesh.UserID){
		"a replica died": func(s *service, id mesh.UserID) {
			claims, err := s.Rechecks.Claim(s.t.Context(), 1, func(string) bool { return true })
			if err != nil || len(claims) != 1 {
				s.t.Fatalf("%v, %v", claims, err)
			}
			if _, err := s.provider.Refresh(s.t.Context(), claims[0].Token); err != nil {
				s.t.Fatal(err)
			}
			if others, err := s.Rechecks.Claim(s.t.Context(), 1, func(string) bool { return true }); err != nil || len(others) != 0 {
				s.t.Errorf("two replicas use the token: %v, %v", others, err)
			}
			s.change(id, func(r *mesh.Recheck) { r.ClaimedAt = r.ClaimedAt.Add(-2 * time.Minute) })
		},
		"the answer was lost": func(s *service, _ mesh.UserID) {
			s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshLost = true })
			s.look(1)
			s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshLost = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, oidctest.Behaviour{Rotate: true})
			id := s.signIn("ann")
			waittest.Eventually(t, time.Minute, time.Millisecond, func() error {
				if r, _ := s.ledger.World().Rechecks.Get(id); !r.Due.Reached(s.ledger.Now()) {
					return errors.New("not due yet")
				}
				return nil
			})
			interrupt(s, id)
			s.look(2) // the provider refuses twice
			_, again := s.ledger.World().Rechecks.Get(id)
			if u := s.user(id); u.Suspended() || u.Held() || again || s.ledger.World().Sessions.Len() != 0 {
				t.Errorf("%+v; recheck %t, %d sessions", u, again, s.ledger.World().Sessions.Len())
			}
			if s.signIn("ann") != id {
				t.Error("another user")
			}
			s.look(2)
		})
	}
}

func TestRestoredPersonIsNotSuspendedForTheSameToken(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(2)
	if !s.user(id).Suspended() {
		t.Fatal("not suspended")
	}
	for range 3 { // nobody asks about suspended people
		s.loop.Look(t.Context())
	}
	if n := len(s.issuer.Refreshed()); n != 2 {
		t.Errorf("asked %d times", n)
	}
	if _, err := s.Users.Restore(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	s.look(2)
	if _, ok := s.ledger.World().Rechecks.Get(id); ok || s.user(id).Suspended() || s.ledger.World().Sessions.Len() != 1 {
		t.Errorf("the administrator's decision does not count: %+v", s.user(id))
	}
	s.signIn("ann") // with a new token, a refusal counts again
	s.look(2)
	if !s.user(id).Suspended() {
		t.Error("a refusal of the new token does not count")
	}
}

func TestLastAdministratorIsNotSuspended(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	if _, err := s.Users.SetRole(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "ann", mesh.RoleAdmin, ""); err != nil {
		t.Fatal(err)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(4)
	if u := s.user(id); u.Suspended() || u.Held() {
		t.Errorf("%+v", u)
	}
}

func TestGroupsFollowTheProvider(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.Claims = map[string]any{"sub": "ann", "groups": []string{"sales"}} })
	s.look(1)
	if got := s.user(id).Groups; !cmp.Equal(got, []string{"sales"}) {
		t.Errorf("groups %q", got)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.Claims = map[string]any{"sub": "ann"} })
	s.look(1)
	if got := s.user(id).Groups; !cmp.Equal(got, []string{"sales"}) {
		t.Errorf("groups %q, although a renewed token need not contain them", got)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.Claims = map[string]any{"sub": "bob", "groups": []string{"admins"}} })
	s.look(1)
	if got := s.user(id).Groups; !cmp.Equal(got, []string{"sales"}) || s.ledger.World().Users.Len() != 1 {
		t.Errorf("groups %q: those of somebody else", got)
	}
}

func TestNewerSignInWinsOverARecheck(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	var claims []control.Claim
	waittest.Eventually(t, time.Minute, time.Millisecond, func() (err error) {
		if claims, err = s.Rechecks.Claim(t.Context(), 1, func(string) bool { return true }); err == nil && len(claims) == 0 {
			err = errors.New("not due yet")
		}
		return err
	})
	s.signIn("ann")
	if r, err := s.Rechecks.Reject(t.Context(), claims[0], true); err != nil || r != control.RejectionNone || s.user(id).Suspended() {
		t.Errorf("%v, %v", r, err)
	}
	if err := s.Rechecks.Confirm(t.Context(), claims[0], "old"); err != nil {
		t.Fatal(err)
	}
	s.look(1)
	if sent := s.issuer.Refreshed(); sent[0] == claims[0].Token || sent[0] == "old" {
		t.Error("the token of the newer sign-in is not used")
	}
}

func TestRefreshTokensAreStoredSealedAndNotLogged(t *testing.T) {
	s := start(t, oidctest.Behaviour{Rotate: true})
	s.signIn("ann")
	s.look(2)
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(2)
	var stored strings.Builder
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stored.Write(data)
	}
	if !strings.Contains(stored.String(), s.issuer.URL) {
		t.Fatal("the database is not where this test looks")
	}
	if sent := s.issuer.Refreshed(); len(sent) < 4 {
		t.Fatalf("%d requests", len(sent))
	}
	for _, secret := range append(s.issuer.Secrets(), s.issuer.Refreshed()...) {
		if strings.Contains(stored.String(), secret) {
			t.Errorf("%s is stored", secret)
		}
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("%s is logged", secret)
		}
	}
}
