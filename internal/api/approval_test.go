package api_test

import (
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
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
