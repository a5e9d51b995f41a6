package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestGroupsOfAPersonGetTheirNamesInThePolicy(t *testing.T) {
	long := strings.Repeat("x", 129)
	names, dropped := control.GroupNames([]string{"staff", "/eng/dev", "/staff", "VPN  Users", "a:b", "all@example.com", "", "a,b", "*", long, "tab\x00", "été"})
	if diff := cmp.Diff([]string{"VPN-Users", "eng/dev", "staff", "été"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a:b", "all@example.com", "", "a,b", "*", long, "tab\x00"}, dropped); diff != "" {
		t.Error(diff)
	}
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf("g%03d", i))
	}
	if names, dropped := control.GroupNames(many); len(names) != 500 || len(dropped) != 100 || dropped[0] != "g500" {
		t.Errorf("%d names, %d dropped", len(names), len(dropped))
	}
}

func TestGroupsAreThoseOfTheLastSignIn(t *testing.T) {
	s := open(t)
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann", Groups: []string{"staff", "dev", "not valid:"}}
	signIn := func(n uint64) *mesh.User {
		t.Helper()
		out, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, arrive(t, s, n).link, p, fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		if stored, _ := s.ledger.World().Users.Get(out.User.ID); !cmp.Equal(stored.Groups, out.User.Groups) {
			t.Errorf("stored %v, returned %v", stored.Groups, out.User.Groups)
		}
		return out.User
	}
	if got := signIn(1).Groups; !cmp.Equal(got, []string{"dev", "staff"}) {
		t.Errorf("first sign-in: %q", got)
	}
	p.Groups, p.GroupsUnknown = nil, true
	if got := signIn(2).Groups; !cmp.Equal(got, []string{"dev", "staff"}) {
		t.Errorf("unknown groups: %q", got)
	}
	p.GroupsUnknown = false
	if got := signIn(3).Groups; len(got) > 0 {
		t.Errorf("no groups any more: %q", got)
	}
}

func TestPolicyWithGroupsOfTheProvider(t *testing.T) {
	s := open(t)
	const text = `{"tagOwners": {"tag:web": ["group:dev"]}, "acls": [{"action": "accept", "src": ["group:dev"], "dst": ["tag:web:80"]}]}`
	if _, err := s.Policies.Save(t.Context(), admin, control.PolicyDraft{Text: text}); err == nil || !strings.Contains(err.Error(), "group:dev is not defined") {
		t.Errorf("without a provider: %v", err)
	}
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann", Groups: []string{"dev"}}
	if _, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, p); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Policies.Save(t.Context(), admin, control.PolicyDraft{Text: text}); err != nil {
		t.Error(err)
	}
	both := `{"groups": {"group:dev": []}}`
	if _, err := s.Policies.Save(t.Context(), admin, control.PolicyDraft{Text: both}); err == nil || !strings.Contains(err.Error(), "also has a group with this name") {
		t.Errorf("a group in both: %v", err)
	}
	if _, _, err := s.Policies.Preview(control.PolicyChange{Text: &both}); err == nil {
		t.Error("the preview accepts what cannot be saved")
	}
	d := arrive(t, s, 1)
	d.ask.Tags = []string{"tag:web"}
	d.wait()
	until(t, func() bool { return len(s.Logins.Tags(d.ask.NodeKey)) > 0 })
	other := p
	other.Subject, other.Username, other.Groups = "8", "bob", []string{"qa"}
	if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, other, "1"); reason(err) != control.Conflict {
		t.Errorf("a tag of another group: %v", err)
	}
	if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, p, "2"); err != nil {
		t.Error(err)
	}
}

func TestMembershipApprovesAndWithdrawsRoutes(t *testing.T) {
	s := open(t)
	p := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann"}
	save := func(groups ...string) {
		t.Helper()
		p.Groups = groups
		if _, err := s.Logins.SaveUser(t.Context(), mesh.Actor{}, p); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}})
	commit(t, s, mesh.UserPut{User: &mesh.User{ID: 1, Name: "ann", Provider: mesh.ProviderOIDC, ProviderID: p.ID()}})
	commit(t, s, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: `{"autoApprovers": {"routes": {"10.0.0.0/8": ["group:net"]}}}`, Source: "api"}})
	announce(t, s, 1, "10.1.0.0/16")
	s.wantRoutes(t, "announced", "1 10.1.0.0/16 a")
	rev := s.ledger.World().Rev
	save("net")
	if s.ledger.World().Rev != rev+1 {
		t.Error("more than one commit")
	}
	s.wantRoutes(t, "member", "1 10.1.0.0/16 a e p")
	save("other")
	s.wantRoutes(t, "left", "1 10.1.0.0/16 a")
	rev = s.ledger.World().Rev
	save("other")
	if s.ledger.World().Rev != rev {
		t.Error("the same groups are committed again")
	}
}
