package recheck_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestLogoutAsksTheProviderEvenDuringARecheck(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	ann := control.Person{Issuer: s.issuer.URL, Subject: "ann"}
	var claims []control.Claim
	waittest.Eventually(t, time.Minute, time.Millisecond, func() (err error) {
		if claims, err = s.Rechecks.Claim(t.Context(), 1, func(string) bool { return true }); err == nil && len(claims) == 0 {
			err = errors.New("not due yet")
		}
		return err
	})
	if err := s.Rechecks.LoggedOut(t.Context(), mesh.Actor{}, ann, "one"); err != nil || s.ledger.World().Sessions.Len() != 0 {
		t.Fatalf("%v, %d sessions", err, s.ledger.World().Sessions.Len())
	}
	if err := s.Rechecks.Confirm(t.Context(), claims[0], claims[0].Token); err != nil {
		t.Fatal(err)
	}
	if r, _ := s.ledger.World().Rechecks.Get(id); !r.Due.Reached(s.ledger.Now()) || r.Cause != mesh.SuspendedByLogout {
		t.Errorf("an answer from before the logout counts: %+v", r)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(2)
	if u := s.user(id); u.SuspendedBy != mesh.SuspendedByLogout {
		t.Errorf("%+v", u)
	}
}

// A check that a logout caused says nothing about a second logout during it.
func TestSecondLogoutDuringACheckIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		end func(*service, control.Claim) error
		due bool // the provider is asked again at once
	}{
		"confirmed": {func(s *service, c control.Claim) error { return s.Rechecks.Confirm(s.t.Context(), c, c.Token) }, true},
		"rejected": {func(s *service, c control.Claim) error {
			_, err := s.Rechecks.Reject(s.t.Context(), c, false)
			return err
		}, true},
		"postponed": {func(s *service, c control.Claim) error { return s.Rechecks.Postpone(s.t.Context(), c, false) }, false},
	} {
		for logouts := 1; logouts <= 2; logouts++ {
			t.Run(fmt.Sprintf("%s, %d logouts", name, logouts), func(t *testing.T) {
				t.Parallel()
				s := startEvery(t, oidctest.Behaviour{}, time.Hour)
				id := s.signIn("ann")
				ann := control.Person{Issuer: s.issuer.URL, Subject: "ann"}
				logout := func(message string) {
					if err := s.Rechecks.LoggedOut(t.Context(), mesh.Actor{}, ann, message); err != nil {
						t.Fatal(err)
					}
				}
				logout("one")
				claims, err := s.Rechecks.Claim(t.Context(), 1, func(string) bool { return true })
				if err != nil || len(claims) != 1 {
					t.Fatalf("%v, %v", claims, err)
				}
				if logouts == 2 {
					logout("two")
				}
				if err := c.end(s, claims[0]); err != nil {
					t.Fatal(err)
				}
				r, _ := s.ledger.World().Rechecks.Get(id)
				if due := r.Due.Reached(s.ledger.Now()); due != (c.due && logouts == 2) {
					t.Errorf("due: %t", due)
				}
				if want := logouts == 2 || name != "confirmed"; (r.Cause == mesh.SuspendedByLogout) != want {
					t.Errorf("cause %q", r.Cause)
				}
			})
		}
	}
}

func TestSuspensionNamesTheLogoutThatCausedTheCheck(t *testing.T) {
	s := startEvery(t, oidctest.Behaviour{}, time.Hour)
	id := s.signIn("ann")
	if err := s.Rechecks.LoggedOut(t.Context(), mesh.Actor{}, control.Person{Issuer: s.issuer.URL, Subject: "ann"}, "one"); err != nil {
		t.Fatal(err)
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(2)
	if u := s.user(id); u.SuspendedBy != mesh.SuspendedByLogout {
		t.Errorf("%+v", u)
	}
}
