package control_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Nobody gets the user of somebody else by having the same name or email address at a provider, only by an administrator.
func TestAdministratorLinksAUserToAnAccount(t *testing.T) {
	s := open(t, func(c *ledger.Config) {
		c.Describe = func(_ *mesh.Snapshot, _ mesh.Time, e mesh.Event) (kind, id string, shape []byte) {
			return string(e.Kind()), "1", []byte(`{}`)
		}
	})
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann", Email: "ann@example.com", DisplayName: "Ann Example"}
	was, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Logins.Preview(p); reason(err) != control.Conflict || !control.Linkable(err) {
		t.Fatalf("without a link: %v", err)
	}
	u, err := s.Users.Link(t.Context(), mesh.Actor{Kind: mesh.ActorLocal, Name: "root"}, "ann", p.ID(), false, "")
	if err != nil || u.ID != was.ID || u.Provider != mesh.ProviderOIDC || u.ProviderID != "https://id.example/7" {
		t.Fatalf("%+v, %v", u, err)
	}
	rows, err := s.history.Audit(t.Context(), history.AuditQuery{Actor: "local:root", Limit: 10})
	if err != nil || len(rows) != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
	out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, arrive(t, s, 1).link, p, "first")
	if err != nil || out.User.ID != was.ID || out.User.Email != "ann@example.com" || out.User.DisplayName != "Ann Example" {
		t.Errorf("%+v, %v", out.User, err)
	}
	// The same person moves to another issuer.
	moved := p
	moved.Issuer, moved.Subject = "https://new.example/realm/", "9"
	if _, err := s.Logins.Preview(moved); reason(err) != control.Conflict {
		t.Errorf("another issuer: %v", err)
	}
	if _, err := s.Users.Link(t.Context(), admin, "ann", moved.ID(), false, ""); reason(err) != control.Conflict || !strings.Contains(err.Error(), "linked to https://id.example/7") {
		t.Errorf("without replace: %v", err)
	}
	if _, err := s.Users.Link(t.Context(), admin, "ann", moved.ID(), true, ""); err != nil {
		t.Error(err)
	}
	if u, err := s.Logins.Preview(moved); err != nil || u.ID != was.ID {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Logins.Preview(p); reason(err) != control.Conflict {
		t.Errorf("the replaced account: %v", err)
	}
	if u, err := s.Users.Unlink(t.Context(), admin, "ann", ""); err != nil || u.Provider != "" || u.ProviderID != "" {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Logins.Preview(moved); reason(err) != control.Conflict {
		t.Errorf("the removed account: %v", err)
	}
	rev := s.ledger.World().Rev
	if _, err := s.Users.Unlink(t.Context(), admin, "ann", ""); err != nil || s.ledger.World().Rev != rev {
		t.Errorf("unlinked twice: %v, revision %d after %d", err, s.ledger.World().Rev, rev)
	}
}

func TestAccountBelongsToOneUser(t *testing.T) {
	s := open(t)
	for _, name := range []string{"ann", "bob"} {
		if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Users.Link(t.Context(), admin, "ann", "https://id.example/auth0%7C1", false, ""); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"https://id.example/auth0%7C1", "https://id.example/auth0|1"} {
		if _, err := s.Users.Link(t.Context(), admin, "bob", account, true, ""); reason(err) != control.Conflict || !strings.Contains(err.Error(), `user "ann" is linked to this account`) {
			t.Errorf("%s: %v", account, err)
		}
	}
	for _, account := range []string{"", "7", "https://id.example", "https://id.example/", "https://id.example/7/", "ftp://id.example/7", " https://id.example/7", "https://id.example/" + strings.Repeat("7", 1024), "https://id.example/7\n"} {
		if _, err := s.Users.Link(t.Context(), admin, "bob", account, false, ""); reason(err) != control.Invalid {
			t.Errorf("%.40q: %v", account, err)
		}
	}
	if _, err := s.Users.Link(t.Context(), admin, "bob", "https://id.example/2", false, "stale"); reason(err) != control.Stale {
		t.Errorf("%v", err)
	}
}

// Headscale escapes what a URL cannot contain in the identifiers of users.
func TestAccountInTheFormOfHeadscaleIsFound(t *testing.T) {
	s := open(t)
	for name, account := range map[string]string{
		"ann": "https://tenant.auth0.example/auth0%7C5f7c8ec7", "bob": "https://id.example/realms/company/2a(b)", "cid": "https://id.example/other/7",
	} {
		if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Users.Link(t.Context(), admin, name, account, false, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ issuer, subject, want string }{
		{"https://tenant.auth0.example/", "auth0|5f7c8ec7", "ann"},
		{"https://tenant.auth0.example", "auth0%7C5f7c8ec7", "ann"}, // as it is stored
		{"https://tenant.auth0.example", "x/auth0|5f7c8ec7", "user-"},
		{"https://id.example/realms/company", "2a(b)", "bob"},
		{"https://id.example/realms", "../other/7", "user-"},
		{"https://id.example/realms", "..", "user-"},
		{"https://id.example/other", " 7", "user-"},
	} {
		u, err := s.Logins.Preview(control.Person{Issuer: c.issuer, Subject: c.subject})
		if err != nil || !strings.HasPrefix(u.Name, c.want) {
			t.Errorf("%+v: %+v, %v", c, u, err)
		}
	}
}
