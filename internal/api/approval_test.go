package api_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

func TestApprovalOfANodeIsShownFilteredAndAudited(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		f := populated(t, s)
		path := "/api/v1/node/" + f.node
		listed := func(filter string) int {
			return len(f.call("GET", "/api/v1/node?needsApproval="+filter, nil).ok()["nodes"].([]any))
		}
		waiting, all := listed("true"), listed("false")
		node := f.call("PUT", path+"/approval", object{"approved": false}).ok()["node"].(object)
		if node["needsApproval"] != true || listed("true") != waiting+1 || listed("false") != all-1 {
			t.Errorf("%v; %d nodes wait, %d do not", node, listed("true"), listed("false"))
		}
		if row := s.audit()[len(s.audit())-1]; !strings.Contains(string(row.Before), `"needsApproval":false`) || !strings.Contains(string(row.After), `"needsApproval":true`) {
			t.Errorf("the audit log has %s → %s", row.Before, row.After)
		}
		if a := f.call("PUT", path+"/approval", object{"aproved": false}); a.status != 400 {
			t.Errorf("a misspelt field is answered %d", a.status)
		}
		if node := f.call("PUT", path+"/approval", object{}).ok()["node"].(object); node["needsApproval"] != false {
			t.Errorf("the approved node is %v", node)
		}
	})
}

func TestOnlyCallersWhoMayApproveNodesCreatePreApprovedKeys(t *testing.T) {
	f := populated(t, sqlite(t))
	body := object{"user": f.user, "preApproved": true}
	if key := f.call("POST", "/api/v1/preauthkey", body).ok()["preAuthKey"].(object); key["preApproved"] != true {
		t.Errorf("the key is %v", key)
	}
	bearer := f.limited(mesh.RoleAdmin, "preauthkeys")
	if a := f.call("POST", "/api/v1/preauthkey", body, bearer); a.status != 403 {
		t.Errorf("a caller who may only manage keys is answered %d", a.status)
	}
	f.call("POST", "/api/v1/preauthkey", object{"user": f.user}, bearer).ok()
}

func TestPersonWhoWaitsForApprovalHasNoAccess(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.listen()
		v, token := s.signedIn(1)
		person := func(change func(*mesh.User)) {
			_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
				was, _ := w.Users.Get(v.User)
				u := *was
				change(&u)
				return []mesh.Event{mesh.UserPut{User: &u}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		person(func(u *mesh.User) { u.Role, u.NeedsApproval = mesh.RoleAdmin, true })
		for _, call := range []string{"GET /api/v1/node", "GET /api/v1/user", "POST /api/v1/user/" + v.User.String() + "/approve"} {
			method, path, _ := strings.Cut(call, " ")
			if a := s.call(method, path, nil, token); a.status != 403 {
				t.Errorf("%s of a person who waits is answered %d", call, a.status)
			}
		}
		if user := s.call("GET", "/api/v1/user/"+v.User.String(), nil).ok()["user"].(object); user["needsApproval"] != true || user["role"] != nil {
			t.Errorf("the user is shown as %v", user)
		}
		if user := s.call("POST", "/api/v1/user/"+v.User.String()+"/approve", nil).ok()["user"].(object); user["needsApproval"] != nil || user["role"] != "admin" {
			t.Errorf("the approved user is shown as %v", user)
		}
		s.call("GET", "/api/v1/node", nil, token).ok()
	})
}
