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
