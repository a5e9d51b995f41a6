package wire_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
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

func TestPageTellsThePersonThatTheDeviceWaitsForApproval(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: ann()})
	s, _ := open(t, options{wire: withProviders(providerOf(t, i, nil)), approval: true})
	c := s.client()
	link := c.asks()
	answered := c.waits(link)
	b := s.browser()
	confirm := b.get(b.follow(path(link), "/oidc/confirm/").location)
	end := b.press(confirm, "Origin", publicURL, "Sec-Fetch-Site", "same-origin")
	if out := <-answered; out.MachineAuthorized || out.Login.LoginName != "ann" {
		t.Errorf("%+v", out)
	}
	b.get(end.location).shows(t, 200, "This device is waiting for approval", "when an administrator approves it")
	if _, err := s.Nodes.SetApproval(t.Context(), admin, "1", true, ""); err != nil {
		t.Fatal(err)
	}
	b.get(end.location).shows(t, 200, "This device has joined")
}
