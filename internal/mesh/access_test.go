package mesh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestAccessAllowsWhatRoleAndScopesOpen(t *testing.T) {
	for _, c := range []struct {
		has   mesh.Access
		noun  mesh.Noun
		least mesh.Role
		want  bool
	}{
		{mesh.Access{}, mesh.NounNodes, mesh.RoleRead, false},
		{mesh.Access{Role: "owner"}, mesh.NounNodes, mesh.RoleRead, false},
		{mesh.Access{Role: mesh.RoleAdmin}, mesh.NounNodes, "", false},
		{mesh.Access{Role: mesh.RoleAdmin}, mesh.NounPolicy, mesh.RoleAdmin, true},
		{mesh.Access{Role: mesh.RoleOperator}, mesh.NounPolicy, mesh.RoleAdmin, false},
		{mesh.Access{Role: mesh.RoleRead}, mesh.NounNodes, mesh.RoleRead, true},
		{mesh.Access{Role: mesh.RoleRead}, mesh.NounNodes, mesh.RoleOperator, false},
		{mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"nodes"}}, mesh.NounNodes, mesh.RoleOperator, true},
		{mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"nodes"}}, mesh.NounUsers, mesh.RoleRead, false},
		{mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"nodes:read"}}, mesh.NounNodes, mesh.RoleRead, true},
		{mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"nodes:read"}}, mesh.NounNodes, mesh.RoleOperator, false},
	} {
		if got := c.has.Allows(c.noun, c.least); got != c.want {
			t.Errorf("%+v allows %q on %s: %v", c.has, c.least, c.noun, got)
		}
	}
}

// An access covers another only if it allows everything that the other does. Every access
// covers itself.
func TestAccessCoversWhatItAllows(t *testing.T) {
	var all []mesh.Access
	for _, role := range mesh.Roles() {
		for _, scopes := range [][]string{nil, {"nodes"}, {"nodes:read"}, {"nodes", "users:read"}, {"nodes:read", "users"}, {"users:read"}} {
			all = append(all, mesh.Access{Role: role, Scopes: scopes})
		}
	}
	for _, a := range all {
		for _, b := range all {
			want := true
			for _, n := range mesh.Nouns() {
				for _, role := range mesh.Roles() {
					want = want && (a.Allows(n, role) || !b.Allows(n, role))
				}
			}
			// Scopes of a read-only key may name more than the key can use.
			if got := a.Covers(b); got && !want {
				t.Errorf("%v covers %v and allows less", a, b)
			}
			if same := a.Role == b.Role && cmp.Equal(a.Scopes, b.Scopes); same && !a.Covers(b) {
				t.Errorf("%v does not cover itself", a)
			}
		}
	}
}

func TestScopesHaveOneForm(t *testing.T) {
	got, err := mesh.ParseScopes([]string{"users:read", "nodes", "nodes:read", "users:read"})
	if diff := cmp.Diff([]string{"nodes", "users:read"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", ":read", "nodes:write", "Nodes", "node"} {
		if _, err := mesh.ParseScopes([]string{bad}); err == nil {
			t.Errorf("%q is taken for a scope", bad)
		}
	}
}

// A replica of an older version writes keys without a role to the log. In the tables they
// are admin keys.
func TestKeyFromBeforeRolesIsAdmin(t *testing.T) {
	evs, err := mesh.DecodeEvents([]byte(`[{"k":"apikey.put","d":{"key":{"id":1,"prefix":"p","hash":"` +
		"0000000000000000000000000000000000000000000000000000000000000000" + `","expiry":1,"createdAt":1}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if k := evs[0].(mesh.APIKeyPut).Key; k.Role != mesh.RoleAdmin {
		t.Errorf("role %q", k.Role)
	}
}
