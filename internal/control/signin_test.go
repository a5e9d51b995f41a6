package control_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestIdentityIsIssuerAndSubject(t *testing.T) {
	for want, p := range map[string]control.Person{
		"https://id.example/7":       {Issuer: "https://id.example", Subject: "7"},
		"https://id.example/realm/7": {Issuer: "https://id.example/realm/", Subject: "/7"},
	} {
		if got := p.ID(); got != want {
			t.Errorf("%+v: %s", p, got)
		}
	}
}

func TestNameOfAPersonIsDerivedFromTheIdentity(t *testing.T) {
	s := open(t)
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "taken"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    control.Person
		want string
	}{
		{control.Person{Username: "Ann", Email: "a@example.com"}, "ann"},
		{control.Person{Username: "josé müller"}, "jose-muller"},
		{control.Person{Username: "ann@example.com", Email: "Ann@example.com"}, "ann@example.com"},
		{control.Person{Username: "boss@example.com", Email: "a@example.com"}, "boss"}, // only the email address is verified
		{control.Person{Username: "boss@example.com"}, "boss"},
		{control.Person{Email: "Google@example.com"}, "google@example.com"},
		{control.Person{Username: "x", Email: "x@example.com"}, "x@example.com"}, // too short
		{control.Person{Username: "7", DisplayName: "Ann Example"}, "ann-example"},
		{control.Person{Username: "tagged-devices", DisplayName: "Ann Example"}, "ann-example"},
		{control.Person{Username: "李", DisplayName: "taken"}, "user-"},
		{control.Person{}, "user-"},
	} {
		c.p.Issuer, c.p.Subject = "https://id.example", "1"
		u, err := s.Logins.Preview(c.p)
		if err != nil || u.Name != c.want && (c.want != "user-" || !strings.HasPrefix(u.Name, c.want) || len(u.Name) != 21) {
			t.Errorf("%+v: %+v, %v; want %s", c.p, u, err, c.want)
		} else if err := control.CheckUserName(u.Name); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Logins.Preview(control.Person{Issuer: "https://id.example", Subject: "1", Username: "Taken"}); reason(err) != control.Conflict {
		t.Errorf("the name of another user: %v", err)
	}
}

func TestAuditLogNamesThePersonWhoSignedIn(t *testing.T) {
	s := open(t, func(c *ledger.Config) {
		c.Describe = func(_ *mesh.Snapshot, _ mesh.Time, e mesh.Event) (kind, id string, shape []byte) {
			return string(e.Kind()), "1", []byte(`{}`)
		}
	})
	d := arrive(t, s, 1)
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann", Email: "ann@example.com"}
	out, err := s.Logins.SignIn(t.Context(), mesh.Actor{Addr: "192.0.2.9", RequestID: "r"}, d.link, p, "first")
	if err != nil || out.Done || out.User.Name != "ann" {
		t.Fatalf("%+v, %v", out, err)
	}
	rows, err := s.history.Audit(t.Context(), history.AuditQuery{Actor: "user:ann@example.com", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || rows[0].Actor.ID != p.ID() || rows[0].Actor.Addr != "192.0.2.9" {
		t.Errorf("%+v", rows)
	}
	rev := s.ledger.World().Rev
	if out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, p, "first"); err != nil || !out.Done || out.User.Name != "ann" || s.ledger.World().Rev != rev {
		t.Errorf("a repeated confirmation: %+v, %v", out, err)
	}
	other := p
	other.Subject, other.Username, other.Email = "8", "bob", ""
	if out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, other, "second"); reason(err) != control.Conflict || s.ledger.World().Rev != rev {
		t.Errorf("a device that was approved for another person: %+v, %v", out, err)
	}
}

func TestAddressThatBelongsToAnotherUserNowIsNotTakenOver(t *testing.T) {
	s := open(t)
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann", Email: "ann@example.com"}
	if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, arrive(t, s, 1).link, p, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "boss", Email: "boss@example.com"}); err != nil {
		t.Fatal(err)
	}
	p.Email = "boss@example.com"
	out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, arrive(t, s, 2).link, p, "second")
	if err != nil || out.User.Name != "ann" || out.User.Email != "ann@example.com" {
		t.Errorf("%+v, %v", out.User, err)
	}
}

func TestSignInChecksTheTagsOfTheDevice(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:web": ["ann@example.com"]}}`)
	for i, c := range []struct {
		p    control.Person
		want control.Reason
	}{
		{control.Person{Subject: "7", Username: "bob"}, control.Conflict},
		{control.Person{Subject: "8", Username: "ann@example.com"}, control.Conflict}, // not a verified address
		{control.Person{Subject: "9", Username: "ann", Email: "ann@example.com"}, -1},
	} {
		c.p.Issuer = "https://id.example"
		d := arrive(t, s, uint64(i+1))
		d.ask.Tags = []string{"tag:web"}
		d.wait()
		until(t, func() bool { return len(s.Logins.Tags(d.ask.NodeKey)) > 0 })
		if out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, c.p, c.p.Subject); reason(err) != c.want {
			t.Errorf("%+v: %+v, %v", c.p, out, err)
		}
	}
}
