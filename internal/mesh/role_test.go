package mesh_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestRoleComesFromTheAssignmentOrTheGroups(t *testing.T) {
	rules := mesh.RoleRules{
		{Issuer: "https://id.example.com/", Group: "staff", Role: mesh.RoleRead},
		{Issuer: "https://id.example.com/", Group: "it", Role: mesh.RoleAdmin},
		{Issuer: "https://id.example.com/", Group: "ops", Role: mesh.RoleOperator},
		{Issuer: "https://other.example.com", Group: "members", Role: mesh.RoleAdmin},
	}
	at := func(id string, role mesh.Role) *mesh.User {
		return &mesh.User{ID: 1, Provider: mesh.ProviderOIDC, ProviderID: id, Role: role}
	}
	for _, c := range []struct {
		user   *mesh.User
		groups []string
		want   mesh.Role
	}{
		{&mesh.User{ID: 1}, nil, ""},
		{&mesh.User{ID: 1, ProviderID: "https://id.example.com/ana"}, []string{"it"}, ""},
		{&mesh.User{ID: 1, Role: mesh.RoleOperator}, nil, mesh.RoleOperator},
		{at("https://id.example.com/ana", ""), nil, mesh.RoleMember},
		{at("https://id.example.com/ana", ""), []string{"nobody", "members"}, mesh.RoleMember},
		{at("https://id.example.com/ana", ""), []string{"ops", "staff"}, mesh.RoleOperator},
		{at("https://id.example.com/ana", ""), []string{"it", "ops", "staff"}, mesh.RoleAdmin},
		{at("https://id.example.com/ana", mesh.RoleMember), []string{"it"}, mesh.RoleMember},
		{at("https://id.example.com/ana", mesh.RoleAdmin), nil, mesh.RoleAdmin},
		// A group of another provider, or of one whose issuer begins alike, gives nothing.
		{at("https://other.example.com/ana", ""), []string{"it"}, mesh.RoleMember},
		{at("https://id.example.com.evil.example/ana", ""), []string{"it"}, mesh.RoleMember},
		{at("https://id.example.com/partner/ana", ""), []string{"it"}, mesh.RoleMember},
	} {
		c.user.Groups = c.groups
		if got := rules.Of(c.user); got != c.want {
			t.Errorf("%s with the assigned role %q in %v is %q, want %q", c.user.ProviderID, c.user.Role, c.groups, got, c.want)
		}
	}
}

func TestGroupThatGivesARoleIsKnown(t *testing.T) {
	rules := mesh.RoleRules{
		{Issuer: "https://id.example.com", Group: "audit", Role: mesh.RoleRead},
		{Issuer: "https://id.example.com", Group: "it", Role: mesh.RoleAdmin},
		{Issuer: "https://id.example.com", Group: "board", Role: mesh.RoleAdmin},
	}
	for _, c := range []struct {
		groups   []string
		assigned mesh.Role
		want     string
	}{
		{nil, "", ""},
		{[]string{"staff"}, "", ""},
		{[]string{"audit"}, "", "audit"},
		{[]string{"audit", "board"}, "", "board"},
		{[]string{"board", "it"}, "", "it"},
		{[]string{"it"}, mesh.RoleAdmin, ""},
	} {
		u := &mesh.User{ID: 1, Provider: mesh.ProviderOIDC, ProviderID: "https://id.example.com/ana", Groups: c.groups, Role: c.assigned}
		if _, got := rules.Source(u); got != c.want {
			t.Errorf("in %v with the assigned role %q: group %q, want %q", c.groups, c.assigned, got, c.want)
		}
	}
}

func TestMemberIsBelowRead(t *testing.T) {
	member := mesh.Access{Role: mesh.RoleMember}
	for _, n := range mesh.Nouns() {
		for _, role := range mesh.Roles() {
			if member.Allows(n, role) {
				t.Errorf("a member has the role %s on %s", role, n)
			}
		}
	}
	if member.Covers(mesh.Access{Role: mesh.RoleRead}) || !(mesh.Access{Role: mesh.RoleRead}).Covers(member) {
		t.Error("read must cover member, and not the other way round")
	}
	if _, err := mesh.ParseRole("member"); err == nil {
		t.Error("member is a role of API keys")
	}
}

func TestRolesHaveTheNamesOfTailscaleToo(t *testing.T) {
	for text, want := range map[string]mesh.Role{
		"member": mesh.RoleMember, "read": mesh.RoleRead, "operator": mesh.RoleOperator, "admin": mesh.RoleAdmin,
		"owner": mesh.RoleAdmin, "network-admin": mesh.RoleOperator, "it-admin": mesh.RoleOperator, "auditor": mesh.RoleRead,
	} {
		if got, err := mesh.ParsePersonRole(text); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := mesh.ParsePersonRole("boss"); err == nil || err.Error() != `unknown role "boss": use member, read, operator or admin` {
		t.Errorf("error: %v", err)
	}
}
