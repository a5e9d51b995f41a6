package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// pusher is an identity provider that pushes users and groups.
type pusher struct {
	*service
	token string
}

func newPusher(t *testing.T, s *service) *pusher {
	t.Helper()
	_, token, err := s.control.APIKeys.Create(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, control.NewAPIKey{Access: mesh.Access{Role: mesh.RoleAdmin, Scopes: []string{"scim"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &pusher{s, token}
}

// call sends a request and returns the response, which must have the status.
func (p *pusher) call(t *testing.T, method, path, body string, status int) map[string]any {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/scim/v2"+strings.ReplaceAll(path, " ", "%20"), strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/scim+json; charset=utf-8")
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	if w.Code != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	out := map[string]any{}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Header().Get("Content-Type") != "application/scim+json" {
			t.Fatalf("%s %s: %v, %s", method, path, err, w.Header())
		}
	}
	return out
}

func (p *pusher) user(t *testing.T, name string) *mesh.User {
	t.Helper()
	u, ok := p.ledger.World().Users.ByName(name)
	if !ok {
		t.Fatalf("no user %s", name)
	}
	return u
}

func total(list map[string]any) int { return int(list["totalResults"].(float64)) }

// The test of a connection, then assignment of a person and a group, a change of the profile, and the end.
func TestOktaPushesUsersAndGroups(t *testing.T) {
	engines(t, func(t *testing.T, s *service) { pushLikeOkta(t, newPusher(t, s)) })
}

func pushLikeOkta(t *testing.T, p *pusher) {
	t.Helper()
	if out := p.call(t, "GET", "/Users?startIndex=1&count=2", "", 200); total(out) != 0 || len(out["Resources"].([]any)) != 0 {
		t.Errorf("%v", out)
	}
	p.call(t, "GET", "/Groups?startIndex=1&count=100", "", 200)
	p.call(t, "GET", "/ServiceProviderConfig", "", 200)
	if out := p.call(t, "GET", `/Users?filter=userName eq "ann@example.com"&startIndex=1&count=100`, "", 200); total(out) != 0 {
		t.Errorf("%v", out)
	}
	const ann = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"ann@example.com","name":{"givenName":"Ann","familyName":"Example"},
		"emails":[{"primary":true,"value":"ann@example.com","type":"work"}],"displayName":"Ann Example","locale":"en-US","externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"x","active":true}`
	made := p.call(t, "POST", "/Users", ann, 201)
	id := made["id"].(string)
	if made["userName"] != "ann@example.com" || made["active"] != true || made["externalId"] != "00ujl29u0le5T6Aj10h7" ||
		made["meta"].(map[string]any)["location"] != "https://mesh.example.com/scim/v2/Users/"+id {
		t.Errorf("%v", made)
	}
	u := p.user(t, "ann@example.com")
	if u.DisplayName != "Ann Example" || u.Email != "ann@example.com" || u.Provider != "" {
		t.Errorf("%+v", u)
	}
	if out := p.call(t, "POST", "/Users", ann, 409); out["scimType"] != "uniqueness" {
		t.Errorf("%v", out)
	}
	if out := p.call(t, "GET", `/Users?filter=externalId eq "00ujl29u0le5T6Aj10h7"`, "", 200); total(out) != 1 {
		t.Errorf("%v", out)
	}
	group := p.call(t, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"VPN Users","members":[{"value":"`+id+`","display":"ann@example.com"}]}`, 201)
	if got := p.user(t, "ann@example.com").Groups; !cmp.Equal(got, []string{"VPN-Users"}) {
		t.Errorf("%q", got)
	}
	groupID := group["id"].(string)
	rev := p.ledger.World().Rev
	// Okta renames a group with its id in the value.
	p.call(t, "PATCH", "/Groups/"+groupID, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"id":"`+groupID+`","displayName":"dev"}}]}`, 204)
	if got := p.user(t, "ann@example.com").Groups; !cmp.Equal(got, []string{"dev"}) || p.ledger.World().Rev != rev+1 {
		t.Errorf("%q in %d commits", got, p.ledger.World().Rev-rev)
	}
	p.call(t, "PATCH", "/Groups/"+groupID, `{"Operations":[{"op":"remove","path":"members[value eq \"`+id+`\"]"}]}`, 204)
	p.call(t, "PATCH", "/Groups/"+groupID, `{"Operations":[{"op":"add","path":"members","value":[{"value":"`+id+`","display":"ann@example.com"}]}]}`, 204)
	if out := p.call(t, "GET", "/Groups/"+groupID, "", 200); len(out["members"].([]any)) != 1 {
		t.Errorf("%v", out)
	}
	// The whole object, without active: nobody is suspended.
	p.call(t, "PUT", "/Users/"+id, `{"userName":"ann@example.com","name":{"givenName":"Ann","familyName":"Married"},"emails":[{"primary":true,"value":"ann@example.com"}]}`, 200)
	if u := p.user(t, "ann@example.com"); u.Suspended() || u.DisplayName != "Ann Married" || u.DirectoryID != "00ujl29u0le5T6Aj10h7" {
		t.Errorf("%+v", u)
	}
	off := p.call(t, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"active":false}}]}`, 200)
	if u := p.user(t, "ann@example.com"); !u.Suspended() || u.SuspendedBy != mesh.SuspendedBySCIM || off["active"] != false {
		t.Errorf("%+v, %v", u, off)
	}
	if out := p.call(t, "GET", "/Users/"+id, "", 200); out["active"] != false {
		t.Errorf("a suspended user is not readable: %v", out)
	}
	p.call(t, "PATCH", "/Users/"+id, `{"Operations":[{"op":"replace","value":{"active":true}}]}`, 200)
	if p.user(t, "ann@example.com").Suspended() {
		t.Error("not restored")
	}
	p.call(t, "DELETE", "/Groups/"+groupID, "", 204)
	p.call(t, "GET", "/Groups/"+groupID, "", 404)
	if got := p.user(t, "ann@example.com").Groups; len(got) != 0 {
		t.Errorf("groups after the deletion: %q", got)
	}
}

func TestEntraPushesUsersAndGroups(t *testing.T) {
	p := newPusher(t, start(t, openSQLite(t)))
	p.call(t, "GET", `/Users?filter=userName eq "7f0b1c9e-not-there"`, "", 200)
	made := p.call(t, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
		"externalId":"bob","userName":"Bob@Example.com","active":true,"emails":[{"primary":true,"type":"work","value":"bob@example.com"}],
		"meta":{"resourceType":"User"},"name":{"formatted":"Bob Example","familyName":"Example","givenName":"Bob"},"roles":[]}`, 201)
	id := made["id"].(string)
	if out := p.call(t, "GET", `/Users?filter=userName eq "bob@example.com"`, "", 200); total(out) != 1 {
		t.Errorf("names are case-sensitive: %v", out)
	}
	if out := p.call(t, "GET", `/Users?filter=emails[type eq "work"].value eq "BOB@example.com"`, "", 200); total(out) != 1 {
		t.Errorf("by address: %v", out)
	}
	// Operations in upper case, and paths with conditions.
	p.call(t, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[
		{"op":"Replace","path":"emails[type eq \"work\"].value","value":"robert@example.com"},
		{"op":"Replace","path":"name.familyName","value":"Married"},
		{"op":"Add","path":"displayName","value":"Robert"},
		{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department","value":"IT"}]}`, 200)
	bob := p.user(t, "bob@example.com")
	if bob.Email != "robert@example.com" || bob.DisplayName != "Robert" {
		t.Errorf("%+v", bob)
	}
	if out := p.call(t, "GET", `/Groups?excludedAttributes=members&filter=displayName eq "dev"`, "", 200); total(out) != 0 {
		t.Errorf("%v", out)
	}
	group := p.call(t, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"externalId":"8aa1a0c0","displayName":"dev","meta":{"resourceType":"Group"}}`, 201)["id"].(string)
	p.call(t, "PATCH", "/Groups/"+group, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"Add","path":"members","value":[{"$ref":null,"value":"`+id+`"}]}]}`, 204)
	if out := p.call(t, "GET", "/Groups/"+group+"?excludedAttributes=members", "", 200); out["members"] != nil {
		t.Errorf("%v", out)
	}
	if got := p.user(t, "bob@example.com").Groups; !cmp.Equal(got, []string{"dev"}) {
		t.Errorf("%q", got)
	}
	p.call(t, "PATCH", "/Groups/"+group, `{"Operations":[{"op":"Remove","path":"members","value":[{"$ref":null,"value":"`+id+`"}]}]}`, 204)
	if got := p.user(t, "bob@example.com").Groups; len(got) != 0 {
		t.Errorf("%q", got)
	}
	// A boolean as a string.
	p.call(t, "PATCH", "/Users/"+id, `{"Operations":[{"op":"Replace","path":"active","value":"False"}]}`, 200)
	if !p.user(t, "bob@example.com").Suspended() {
		t.Error("not suspended")
	}
	p.call(t, "PATCH", "/Users/"+id, `{"Operations":[{"op":"Replace","path":"active","value":"True"}]}`, 200)
	if p.user(t, "bob@example.com").Suspended() {
		t.Error("not restored")
	}
	p.call(t, "DELETE", "/Users/"+id, "", 204)
	p.call(t, "GET", "/Users/"+id, "", 404)
	p.call(t, "DELETE", "/Users/"+id, "", 404)
}

func TestSCIMRefusesWhatItCannotDo(t *testing.T) {
	p := newPusher(t, start(t, openSQLite(t)))
	id := p.call(t, "POST", "/Users", `{"userName":"ann@example.com"}`, 201)["id"].(string)
	group := p.call(t, "POST", "/Groups", `{"displayName":"dev"}`, 201)["id"].(string)
	for _, c := range []struct {
		method, path, body string
		status             int
		kind               any
	}{
		{"GET", `/Users?filter=userName co "a"`, "", 400, "invalidFilter"},
		{"GET", `/Users?filter=userName eq "a" and active eq true`, "", 400, "invalidFilter"},
		{"GET", `/Users?count=many`, "", 400, "invalidValue"},
		{"GET", "/Users/x", "", 404, nil},
		{"GET", "/Groups/0", "", 404, nil},
		{"GET", "/Me", "", 404, nil},
		{"POST", "/Users", `{"displayName":"Nameless"}`, 400, "invalidValue"},
		{"POST", "/Users", `[]`, 400, "invalidSyntax"},
		{"POST", "/Users", `{"userName":"other@example.com","emails":[{"value":"ANN@example.com"}]}`, 409, "uniqueness"},
		{"POST", "/Users", `{"userName":"` + strings.Repeat("x", 300) + `"}`, 400, "invalidValue"},
		{"POST", "/Users", `"` + strings.Repeat("x", 5<<20) + `"`, 413, nil},
		{"PATCH", "/Users/" + id, `{"Operations":[]}`, 400, "invalidSyntax"},
		{"PATCH", "/Users/" + id, `{"Operations":[{"op":"move","path":"active"}]}`, 400, "invalidSyntax"},
		{"PATCH", "/Users/" + id, `{"Operations":[{"op":"remove","path":"active"}]}`, 400, "invalidValue"},
		{"PATCH", "/Users/" + id, `{"Operations":[{"op":"replace","value":7}]}`, 400, "noTarget"},
		{"POST", "/Groups", `{"displayName":"dev"}`, 409, "uniqueness"},
		{"POST", "/Groups", `{"displayName":"all@example.com"}`, 400, "invalidValue"},
		{"PATCH", "/Groups/" + group, `{"Operations":[{"op":"add","path":"members","value":[{"value":"999"}]}]}`, 400, "invalidValue"},
		{"PATCH", "/Groups/" + group, `{"Operations":[{"op":"add","path":"members[type eq \"x\"]"}]}`, 400, "invalidPath"},
	} {
		rev := p.ledger.World().Rev
		out := p.call(t, c.method, c.path, c.body, c.status)
		if out["scimType"] != c.kind || out["status"] != fmt.Sprint(c.status) || out["detail"] == "" || p.ledger.World().Rev != rev {
			t.Errorf("%s %s %.80s: %v", c.method, c.path, c.body, out)
		}
	}
	if p.user(t, "ann@example.com").Suspended() {
		t.Error("suspended by a refused request")
	}
}

// A conflict would let providers look for another user. They show an error, and retry until there is another administrator.
func TestSCIMIsToldThatTheLastAdministratorStays(t *testing.T) {
	p := newPusher(t, sqlite(t))
	id := p.person("boss", mesh.RoleAdmin).String()
	disable := `{"Operations":[{"op":"replace","value":{"active":false}}]}`
	for range 2 {
		out := p.call(t, "PATCH", "/Users/"+id, disable, 403)
		if out["scimType"] != nil || !strings.Contains(out["detail"].(string), "give another person the role admin first") {
			t.Errorf("%v", out)
		}
		p.call(t, "DELETE", "/Users/"+id, "", 403)
	}
	const warning = "the identity provider wants to disable the last administrator, who keeps all access until another person has the role admin"
	if lines := p.log.lines(t, warning); len(lines) != 4 {
		t.Errorf("logged %v", lines)
	}
	p.person("zoe", mesh.RoleAdmin)
	p.call(t, "PATCH", "/Users/"+id, disable, 200)
}

func TestSCIMNeedsAKeyForIt(t *testing.T) {
	s := start(t, openSQLite(t))
	for _, c := range []struct {
		access mesh.Access
		status int
	}{
		{mesh.Access{Role: mesh.RoleAdmin}, 200},
		{mesh.Access{Role: mesh.RoleAdmin, Scopes: []string{"scim"}}, 200},
		{mesh.Access{Role: mesh.RoleOperator}, 403},
		{mesh.Access{Role: mesh.RoleAdmin, Scopes: []string{"users"}}, 403},
		{mesh.Access{Role: mesh.RoleAdmin, Scopes: []string{"scim:read"}}, 403},
	} {
		_, token, err := s.control.APIKeys.Create(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, control.NewAPIKey{Access: c.access})
		if err != nil {
			t.Fatal(err)
		}
		(&pusher{s, token}).call(t, "GET", "/Users", "", c.status)
	}
	for _, authorization := range []string{"", "Bearer flk_x_y", "Basic x"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/scim/v2/Users", strings.NewReader(`{"userName":"eve"}`))
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized || s.ledger.World().Users.Len() != 0 {
			t.Errorf("%q: %d", authorization, w.Code)
		}
	}
}

func TestSCIMListsHavePages(t *testing.T) {
	p := newPusher(t, start(t, openSQLite(t)))
	for i := range 5 {
		p.call(t, "POST", "/Users", fmt.Sprintf(`{"userName":"user%d@example.com"}`, i), 201)
	}
	seen := map[any]bool{}
	for first := 1; first <= 5; first += 2 {
		out := p.call(t, "GET", fmt.Sprintf("/Users?startIndex=%d&count=2", first), "", 200)
		if total(out) != 5 {
			t.Errorf("%v", out)
		}
		for _, u := range out["Resources"].([]any) {
			seen[u.(map[string]any)["id"]] = true
		}
	}
	if len(seen) != 5 {
		t.Errorf("%v", seen)
	}
	if out := p.call(t, "GET", "/Users?startIndex=9&count=0", "", 200); len(out["Resources"].([]any)) != 0 {
		t.Errorf("%v", out)
	}
}
