package wire_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

func TestSuspendedPersonIsToldSo(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
	if _, err := s.Users.Suspend(t.Context(), admin, "ann", "", false); err != nil {
		t.Fatal(err)
	}
	s.browser().follow(path(s.client().asks()), "").shows(t, 403, "Your account is suspended", "Ask an administrator to restore your account")
	// If it were told that its key has expired, the client would need a new sign-in after the suspension.
	if out := c.register(nil); !strings.Contains(out.Error, "your account is suspended") || out.NodeKeyExpired || out.AuthURL != "" {
		t.Errorf("%+v", out)
	}
	if _, err := s.Users.Restore(t.Context(), admin, "ann", ""); err != nil {
		t.Fatal(err)
	}
	c.joins(nil)
}
