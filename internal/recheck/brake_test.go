package recheck_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// The safety brake: a provider that suddenly refuses everyone suspends three people, and nobody else without an
// administrator.
func TestTooManySuspensionsAreHeld(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	var ids []mesh.UserID
	for i := range 8 {
		ids = append(ids, s.signIn(fmt.Sprintf("person%d", i)))
	}
	count := func() (suspended, held int) {
		for _, id := range ids {
			if s.user(id).Suspended() {
				suspended++
			}
			if s.user(id).Held() {
				held++
			}
		}
		return suspended, held
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	waittest.Eventually(t, time.Minute, time.Millisecond, func() error {
		s.loop.Look(t.Context())
		if suspended, held := count(); suspended != 3 || held != 5 {
			return fmt.Errorf("%d suspended, %d held", suspended, held)
		}
		return nil
	})
	if text := s.Users.HoldWarning(); !strings.Contains(text, "5 people") {
		t.Errorf("health says %q", text)
	}
	var held []*mesh.User
	for _, id := range ids {
		if u := s.user(id); u.Held() {
			held = append(held, u)
		}
	}
	if _, err := s.Users.Suspend(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, held[0].Name, "", false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Users.Restore(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, held[1].Name, ""); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.loop.Look(t.Context())
	}
	if suspended, held := count(); suspended != 4 || held != 3 {
		t.Errorf("after the administrator decided on two: %d suspended, %d held", suspended, held)
	}
	// The others are released when the provider accepts them again.
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError, b.Claims = "", nil })
	waittest.Eventually(t, time.Minute, time.Millisecond, func() error {
		s.loop.Look(t.Context())
		if suspended, held := count(); suspended != 4 || held != 0 || s.Users.HoldWarning() != "" {
			return fmt.Errorf("%d suspended, %d held", suspended, held)
		}
		return nil
	})
}

// Anyone can have accounts at a public provider, and wait for approval with them.
func TestStrangersDoNotPullTheBrake(t *testing.T) {
	for name, edit := range map[string]func(u *mesh.User, now mesh.Time) *mesh.User{
		"waiting":   func(u *mesh.User, _ mesh.Time) *mesh.User { return u },
		"suspended": func(u *mesh.User, now mesh.Time) *mesh.User { return u.Suspend(mesh.SuspendedByRecheck, now) },
		"held":      func(u *mesh.User, now mesh.Time) *mesh.User { return u.Hold(mesh.SuspendedByRecheck, now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, oidctest.Behaviour{})
			s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
			for i := range 3 {
				id := s.signIn(fmt.Sprintf("stranger%d", i))
				s.commit(func(w *policy.World, now mesh.Time) []mesh.Event {
					u, _ := w.Users.Get(id)
					waits := *u
					waits.NeedsApproval = true
					return []mesh.Event{mesh.UserPut{User: edit(&waits, now)}}
				})
			}
			ann := s.signIn("ann")
			s.look(2)
			if u := s.user(ann); !u.Suspended() || u.Held() {
				t.Errorf("%+v", u)
			}
			for range 3 {
				s.loop.Look(t.Context())
			}
			if n := len(s.issuer.Refreshed()); n != 2 {
				t.Errorf("asked %d times, although only ann has access", n)
			}
		})
	}
}

// With many strangers, a tenth of all people would be more than three.
func TestStrangersDoNotReleaseTheBrake(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	s.commit(func(w *policy.World, now mesh.Time) (evs []mesh.Event) {
		for i := range 60 {
			evs = append(evs, mesh.UserPut{User: &mesh.User{
				ID: w.Counters.User + mesh.UserID(i) + 1, Name: fmt.Sprintf("stranger%d", i), Provider: mesh.ProviderOIDC,
				ProviderID: fmt.Sprintf("%s/stranger%d", s.issuer.URL, i), CreatedAt: now, NeedsApproval: true,
			}})
		}
		return evs
	})
	var ids []mesh.UserID
	for i := range 4 {
		ids = append(ids, s.signIn(fmt.Sprintf("person%d", i)))
	}
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(8)
	suspended := 0
	for _, id := range ids {
		if s.user(id).Suspended() {
			suspended++
		}
	}
	if suspended != 3 {
		t.Errorf("%d of 4 people suspended", suspended)
	}
}

// An administrator can approve a device of a person who still waits. That device has access.
func TestPersonWhoWaitsIsRecheckedIfADeviceIsApproved(t *testing.T) {
	s := start(t, oidctest.Behaviour{})
	id := s.signIn("ann")
	s.commit(func(w *policy.World, now mesh.Time) []mesh.Event {
		u, _ := w.Users.Get(id)
		waits := *u
		waits.NeedsApproval = true
		return []mesh.Event{mesh.UserPut{User: &waits}, mesh.NodePut{Node: &mesh.Node{
			ID: w.Counters.Node + 1, MachineKey: key.NewMachine().Public(), NodeKey: key.NewNode().Public(), Owner: id, Name: "laptop",
			IPv4: netip.MustParseAddr("100.64.0.1"), IPv6: netip.MustParseAddr("fd7a:115c:a1e0::1"), CreatedAt: now,
		}}}
	})
	s.issuer.Behave(func(b *oidctest.Behaviour) { b.RefreshError = "invalid_grant" })
	s.look(2)
	if u := s.user(id); !u.Suspended() {
		t.Errorf("%+v", u)
	}
}
