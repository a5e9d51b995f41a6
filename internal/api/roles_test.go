package api_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const issuer = "https://id.example.com/"

// put stores objects as a use case would.
func (s *service) put(evs ...mesh.Event) {
	s.t.Helper()
	if _, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		s.t.Fatal(err)
	}
}

// person adds a user who signs in with a provider, and returns the id.
func (s *service) person(name string, role mesh.Role) mesh.UserID {
	s.t.Helper()
	u := &mesh.User{
		ID: s.ledger.World().Counters.User + 1, Name: name, Provider: mesh.ProviderOIDC, ProviderID: issuer + name, Role: role, CreatedAt: s.ledger.Now(),
	}
	s.put(mesh.UserPut{User: u})
	return u.ID
}

func (s *service) role(user string) (current, assigned any) {
	s.t.Helper()
	u := s.call("GET", "/api/v1/user/"+user, nil).ok()["user"].(object)
	return u["role"], u["assignedRole"]
}

func TestAdministratorAssignsRoles(t *testing.T) {
	s := sqlite(t)
	s.person("ana", "")
	s.call("POST", "/api/v1/user", object{"name": "bob"}).ok()
	is := func(user string, current, assigned any) {
		t.Helper()
		if c, a := s.role(user); c != current || a != assigned {
			t.Errorf("%s has the role %v, assigned %v; want %v, %v", user, c, a, current, assigned)
		}
	}
	is("ana", "member", nil)
	is("bob", nil, nil)
	for _, c := range []struct{ user, role, current string }{
		{"ana", "operator", "operator"},
		{"ana", "auditor", "read"},
		{"ana", "owner", "admin"},
		{"bob", "read", "read"},
	} {
		s.call("PUT", "/api/v1/user/"+c.user+"/role", object{"role": c.role}).ok()
		is(c.user, c.current, c.current)
	}
	s.person("zoe", mesh.RoleAdmin)
	s.call("PUT", "/api/v1/user/ana/role", object{"role": "default"}).ok()
	is("ana", "member", nil)
	s.call("PUT", "/api/v1/user/ana/role", object{"role": "boss"}).fails(400, "Bad Request",
		`unknown role "boss": use member, read, operator or admin, or default to remove the assignment`, "role")
	rows := s.audit()
	if last := rows[len(rows)-1]; last.Object != "1" || last.Verb != "changed" || !strings.Contains(string(last.Before), `"assignedRole":"admin"`) || strings.Contains(string(last.After), "assignedRole") {
		t.Errorf("audited: %s %s %s from %s to %s", last.Verb, last.Kind, last.Object, last.Before, last.After)
	}
}

func TestOnlyAFullAdministratorAssignsRoles(t *testing.T) {
	s := sqlite(t)
	s.person("ana", "")
	body := object{"role": "admin"}
	s.call("PUT", "/api/v1/user/ana/role", body, s.limited(mesh.RoleOperator)).fails(403, "Forbidden",
		"Forbidden: this operation requires the role admin; the API key has operator", "")
	s.call("PUT", "/api/v1/user/ana/role", body, s.limited(mesh.RoleAdmin, "users")).fails(403, "Forbidden",
		"Forbidden: assigning roles requires the role admin without scopes, because a role applies to everything; the API key has admin and the scopes [users]", "")
	if current, _ := s.role("ana"); current != "member" {
		t.Errorf("ana is %v", current)
	}
}

const lastAdmin = "the last administrator cannot be demoted, suspended or deleted: give another person the role admin first (fairlead users set-role NAME admin), or use the local socket of the server"

func TestLastAdministratorStays(t *testing.T) {
	s := sqlite(t)
	ana := s.person("ana", mesh.RoleAdmin)
	s.call("POST", "/api/v1/user", object{"name": "bob"}).ok()
	s.call("PUT", "/api/v1/user/bob/role", object{"role": "admin"}).ok() // bob cannot sign in
	refused := func() {
		t.Helper()
		s.call("PUT", "/api/v1/user/ana/role", object{"role": "operator"}).fails(409, "Conflict", lastAdmin, "")
		s.call("PUT", "/api/v1/user/ana/role", object{"role": "default"}).fails(409, "Conflict", lastAdmin, "")
		s.call("DELETE", "/api/v1/user/ana", nil).fails(409, "Conflict", lastAdmin, "")
	}
	refused()
	zoe := s.person("zoe", mesh.RoleAdmin)
	many := object{"ids": []string{ana.String(), zoe.String()}, "action": "delete"}
	for range 2 { // the second response is a replay
		results := s.call("POST", "/api/v1/user/bulk", many, "Idempotency-Key: both").ok()["results"].([]any)
		first, second := results[0].(object), results[1].(object)
		if first["ok"] != true || second["ok"] != false || second["error"].(object)["message"] != lastAdmin {
			t.Fatalf("deleting both administrators: %v", results)
		}
	}
	s.call("DELETE", "/api/v1/user/zoe", nil).fails(409, "Conflict", lastAdmin, "")
	// On the server itself, nobody can lock themselves out.
	s.direct(s.local, "PUT", "/api/v1/user/zoe/role", object{"role": "read"}, noKey).ok()
	s.call("DELETE", "/api/v1/user/zoe", nil).ok()
}

func TestNobodyDeletesAUserWithAHigherRole(t *testing.T) {
	s := sqlite(t)
	s.person("ana", mesh.RoleAdmin)
	s.person("zoe", mesh.RoleAdmin)
	olaf, operator := s.person("olaf", mesh.RoleOperator), s.limited(mesh.RoleOperator)
	const words = "Forbidden: user ana has the role admin, which is higher than that of the caller (operator)"
	s.call("DELETE", "/api/v1/user/ana", nil, operator).fails(403, "Forbidden", words, "")
	s.call("POST", "/api/v1/user/bulk", object{"ids": []string{olaf.String(), "1"}, "action": "delete"}, operator).fails(403, "Forbidden", words, "")
	s.call("DELETE", "/api/v1/user/olaf", nil, operator).ok()
}

func TestNobodyRestoresAUserWithAHigherRole(t *testing.T) {
	s := sqlite(t)
	s.person("ana", mesh.RoleAdmin)
	s.person("zoe", mesh.RoleAdmin)
	s.person("bob", "")
	s.call("POST", "/api/v1/user/ana/suspend", nil).ok()
	s.call("POST", "/api/v1/user/bob/suspend", nil).ok()
	for _, key := range []string{s.limited(mesh.RoleOperator), s.limited(mesh.RoleAdmin, "users")} {
		if a := s.call("POST", "/api/v1/user/ana/restore", nil, key); a.status != 403 {
			t.Errorf("%d: %s", a.status, a.body)
		}
	}
	s.call("POST", "/api/v1/user/bob/restore", nil, s.limited(mesh.RoleOperator)).ok()
	s.call("POST", "/api/v1/user/ana/restore", nil).ok()
}

func TestGroupsGiveRoles(t *testing.T) {
	s := sqlite(t, config{control: func(c *control.Config) {
		c.Roles = mesh.RoleRules{{Issuer: issuer, Group: "it", Role: mesh.RoleAdmin}}
	}})
	s.put(mesh.UserPut{User: &mesh.User{ID: 1, Name: "ana", Provider: mesh.ProviderOIDC, ProviderID: issuer + "ana", Groups: []string{"it"}}})
	if current, assigned := s.role("ana"); current != "admin" || assigned != nil {
		t.Errorf("ana has the role %v, assigned %v", current, assigned)
	}
	group := func() any { return s.call("GET", "/api/v1/user/ana", nil).ok()["user"].(object)["roleGroup"] }
	if got := group(); got != "it" {
		t.Errorf("the role comes from the group %v", got)
	}
	// Whoever is an administrator by a group may be the last one, too.
	s.call("PUT", "/api/v1/user/ana/role", object{"role": "member"}).fails(409, "Conflict", lastAdmin, "")
	s.call("PUT", "/api/v1/user/ana/role", object{"role": "admin"}).ok()
	if got := group(); got != nil {
		t.Errorf("an assigned role comes from the group %v", got)
	}
	s.call("PUT", "/api/v1/user/ana/role", object{"role": "default"}).ok()
}
