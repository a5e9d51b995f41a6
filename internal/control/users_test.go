package control_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

// Devices identify a user by e-mail address or, if there is none, by name.
func TestNobodyIsKnownAsSomebodyElse(t *testing.T) {
	s := open(t)
	for _, u := range []control.NewUser{{Name: "ann", Email: "ann@example.com"}, {Name: "bob"}, {Name: "carl@example.com", Email: "Carl@example.com"}} {
		if _, err := s.Users.Create(t.Context(), ada, u); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		user control.NewUser
		want control.Reason
	}{
		{control.NewUser{Name: "Ann@example.com"}, control.Conflict},
		{control.NewUser{Name: "eve", Email: "ANN@example.com"}, control.Conflict},
		{control.NewUser{Name: "eve", Email: "bob"}, control.Conflict},
		{control.NewUser{Name: "eve", Email: "tagged-devices"}, control.Invalid},
	} {
		_, err := s.Users.Create(t.Context(), ada, c.user)
		wantReason(t, err, c.want)
	}
	_, err := s.Users.Rename(t.Context(), ada, "bob", "ann@example.com", "")
	wantReason(t, err, control.Conflict)
	if _, err := s.Users.Rename(t.Context(), ada, "ann", "ann@example.com", ""); err != nil {
		t.Error(err)
	}
}
