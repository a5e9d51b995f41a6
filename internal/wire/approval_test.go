package wire_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

func TestUnapprovedMachineIsToldAtEachRegistration(t *testing.T) {
	s, _ := open(t, options{approval: true})
	s.user("alice")
	c := s.client()
	key := s.key(control.NewPreAuthKey{User: "alice"})
	for range 2 { // the second time with a node key that is known
		if out := c.register(withKey(key)); out.MachineAuthorized || out.Error != "" || out.AuthURL != "" || out.Login.LoginName != "alice" {
			t.Fatalf("%+v", out)
		}
	}
	if _, err := s.Nodes.SetApproval(t.Context(), admin, "1", true, ""); err != nil {
		t.Fatal(err)
	}
	if out := c.register(withKey(key)); !out.MachineAuthorized {
		t.Errorf("%+v", out)
	}
}
