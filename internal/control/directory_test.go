package control_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestFirstSignInOfAPushedUser(t *testing.T) {
	for name, c := range map[string]struct {
		person control.Person
		same   bool // as the user who was pushed; otherwise the sign-in is refused or gets another user
	}{
		"by subject":             {control.Person{Subject: "ext-1", Username: "other", Directory: true}, true},
		"by verified address":    {control.Person{Subject: "7", Email: "Ann@example.com", Directory: true}, true},
		"address not verified":   {control.Person{Subject: "7", Username: "ann@example.com", Directory: true}, false},
		"another provider":       {control.Person{Subject: "ext-1", Email: "ann@example.com"}, false},
		"another person":         {control.Person{Subject: "8", Email: "bob@example.com", Directory: true}, false},
		"no address, no subject": {control.Person{Subject: "9", Username: "carol", Directory: true}, false},
	} {
		s := open(t)
		pushed, err := s.Directory.CreateUser(t.Context(), admin, control.DirectoryUser{ExternalID: "ext-1", UserName: "ann@example.com", Email: "ann@example.com", DisplayName: "Ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Directory.PutGroup(t.Context(), admin, 0, func(g *control.DirectoryGroup) error {
			g.DisplayName, g.Members = "dev", []mesh.UserID{pushed.ID}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		c.person.Issuer, c.person.Groups = "https://id.example", []string{"claimed"}
		u, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, c.person)
		if got := err == nil && u.ID == pushed.ID; got != c.same {
			t.Errorf("%s: %+v, %v", name, u, err)
			continue
		}
		if !c.same {
			continue
		}
		if u.Name != "ann@example.com" || u.Provider != mesh.ProviderOIDC || u.ProviderID != c.person.ID() || !cmp.Equal(u.Groups, []string{"claimed", "dev"}) {
			t.Errorf("%s: %+v", name, u)
		}
		other := c.person
		other.Subject = "somebody-else"
		if taken, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, other); err == nil && taken.ID == pushed.ID {
			t.Errorf("%s: a second account takes over the user", name)
		}
	}
}

// An assigned role must not be handed to whoever has the address at the provider.
func TestPushedUserWithARoleIsNotTakenOver(t *testing.T) {
	s := open(t)
	pushed, err := s.Directory.CreateUser(t.Context(), admin, control.DirectoryUser{ExternalID: "ext-1", UserName: "ann@example.com", Email: "ann@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	chosen := *pushed
	chosen.Role = mesh.RoleAdmin
	commit(t, s, mesh.UserPut{User: &chosen})
	p := control.Person{Issuer: "https://id.example", Subject: "ext-1", Email: "ann@example.com", Directory: true}
	if u, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, p); err == nil {
		t.Errorf("signed in as %+v", u)
	}
	chosen.Role = ""
	commit(t, s, mesh.UserPut{User: chosen.Suspend(mesh.SuspendedByAdmin, 1)})
	if u, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, p); err == nil {
		t.Errorf("a suspended user signed in: %+v", u)
	}
}

// Okta sends active: true with every change of a profile.
func TestProviderDoesNotEndASuspensionByAnAdministrator(t *testing.T) {
	s := open(t)
	u, err := s.Directory.CreateUser(t.Context(), admin, control.DirectoryUser{UserName: "ann@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, mesh.UserPut{User: u.Suspend(mesh.SuspendedByAdmin, 1)})
	yes := true
	after, err := s.Directory.ChangeUser(t.Context(), admin, u.ID, func(in *control.DirectoryUser) error {
		in.Active = &yes
		return nil
	})
	if err != nil || !after.Suspended() {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestMembershipIsOneCommit(t *testing.T) {
	s := open(t)
	var ids []mesh.UserID
	for _, name := range []string{"ann@example.com", "bob@example.com", "carol@example.com"} {
		u, err := s.Directory.CreateUser(t.Context(), admin, control.DirectoryUser{UserName: name})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, u.ID)
	}
	put := func(id mesh.GroupID, name string, members ...mesh.UserID) *mesh.Group {
		t.Helper()
		rev := s.ledger.World().Rev
		g, err := s.Directory.PutGroup(t.Context(), admin, id, func(g *control.DirectoryGroup) error {
			g.DisplayName, g.Members = name, members
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if now := s.ledger.World().Rev; now > rev+1 {
			t.Errorf("%d commits", now-rev)
		}
		return g
	}
	groups := func() (all [][]string) {
		for _, id := range ids {
			u, _ := s.ledger.World().Users.Get(id)
			all = append(all, u.Groups)
		}
		return all
	}
	g := put(0, "dev", ids[1], ids[0], ids[1])
	if diff := cmp.Diff([][]string{{"dev"}, {"dev"}, nil}, groups()); diff != "" {
		t.Error(diff)
	}
	put(g.ID, "qa", ids[1], ids[2])
	if diff := cmp.Diff([][]string{nil, {"qa"}, {"qa"}}, groups()); diff != "" {
		t.Error(diff)
	}
	rev := s.ledger.World().Rev
	put(g.ID, "qa", ids[2], ids[1])
	if s.ledger.World().Rev != rev {
		t.Error("nothing changed, and was committed")
	}
	if err := s.Directory.DeleteUser(t.Context(), admin, ids[1]); err != nil {
		t.Fatal(err)
	}
	put(g.ID, "qa", ids[2], ids[0])
	if err := s.Directory.DeleteGroup(t.Context(), admin, g.ID); err != nil {
		t.Fatal(err)
	}
	ids = []mesh.UserID{ids[0], ids[2]}
	if diff := cmp.Diff([][]string{nil, nil}, groups()); diff != "" {
		t.Error(diff)
	}
}
