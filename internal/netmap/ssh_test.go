package netmap_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Clients open a second connection for a host other than the server's.
func TestNodesAskAboutSessionsWhereTheyHaveTheirMapFrom(t *testing.T) {
	for server, host := range map[string]string{
		"https://mesh.example.com":      "mesh.example.com",
		"http://mesh.example.com:8080/": "mesh.example.com:8080",
		"http://[fd00::1]:8080":         "[fd00::1]:8080",
		"":                              "unused",
	} {
		s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.PolicyPut{Policy: &mesh.Policy{
			Version: 1, Text: `{"ssh": [{"action": "check", "src": ["user1@"], "dst": ["user1@"], "users": ["root", "autogroup:nonroot"]}]}`,
		}})
		scene := netmap.SceneOf(policy.NewWorld(s, nil), nil)
		scene.Home = netmap.HomeOf(server)
		want := []netmap.SSHRule{{
			Principals: []netmap.Principal{{UserLogin: meshgen.User(1).Email}}, SSHUsers: map[string]string{"root": "root", "*": "="},
			Action: netmap.SSHAction{HoldAndDelegate: "https://" + host +
				"/machine/ssh/action/$SRC_NODE_ID/to/$DST_NODE_ID?ssh_user=$SSH_USER&local_user=$LOCAL_USER"},
		}}
		if diff := cmp.Diff(want, netmap.Full(scene, 1).SSHPolicy.Rules); diff != "" {
			t.Errorf("%s (-want +got):\n%s", server, diff)
		}
	}
}
