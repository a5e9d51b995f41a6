package api_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestOnlyAFullAdministratorLinksUsers(t *testing.T) {
	s := sqlite(t)
	s.person("ana", mesh.RoleAdmin)
	body := object{"providerId": "https://id.example.com/eve", "replace": true}
	const words = "Forbidden: changing the account of a user requires the role admin without scopes, because the account gets all the access of the user; the API key has admin and the scopes [users]"
	for _, c := range []struct {
		method string
		body   any
	}{{"PUT", body}, {"DELETE", nil}} {
		s.call(c.method, "/api/v1/user/ana/account", c.body, s.limited(mesh.RoleOperator)).fails(403, "Forbidden",
			"Forbidden: this operation requires the role admin; the API key has operator", "")
		s.call(c.method, "/api/v1/user/ana/account", c.body, s.limited(mesh.RoleAdmin, "users")).fails(403, "Forbidden", words, "")
	}
	if u := s.call("GET", "/api/v1/user/ana", nil).ok()["user"].(object); u["providerId"] != issuer+"ana" {
		t.Errorf("%v", u)
	}
}

func TestLastAdministratorStaysLinked(t *testing.T) {
	s := sqlite(t)
	s.person("ana", mesh.RoleAdmin)
	s.call("DELETE", "/api/v1/user/ana/account", nil).fails(409, "Conflict", lastAdmin, "")
	moved := s.call("PUT", "/api/v1/user/ana/account", object{"providerId": "https://new.example.com/ana", "replace": true}).ok()["user"].(object)
	if moved["providerId"] != "https://new.example.com/ana" || moved["role"] != "admin" {
		t.Errorf("%v", moved)
	}
	s.person("zoe", mesh.RoleAdmin)
	s.call("DELETE", "/api/v1/user/ana/account", nil).ok()
	s.direct(s.local, "DELETE", "/api/v1/user/zoe/account", nil, noKey).ok()
}

// A group of the same name at another provider is another group.
func TestLinkedUserLosesTheGroupsOfTheEarlierAccount(t *testing.T) {
	s := sqlite(t)
	s.put(mesh.UserPut{User: &mesh.User{ID: 1, Name: "ana", Provider: mesh.ProviderOIDC, ProviderID: issuer + "ana", Groups: []string{"staff"}, CreatedAt: s.ledger.Now()}})
	s.call("PUT", "/api/v1/user/ana/account", object{"providerId": issuer + "ana"}).ok()
	if u, _ := s.ledger.World().Users.Get(1); len(u.Groups) != 1 {
		t.Errorf("the same account: %+v", u)
	}
	s.call("PUT", "/api/v1/user/ana/account", object{"providerId": "https://new.example.com/ana", "replace": true}).ok()
	if u, _ := s.ledger.World().Users.Get(1); len(u.Groups) != 0 {
		t.Errorf("another account: %+v", u)
	}
}
