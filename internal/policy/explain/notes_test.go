package explain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func TestNotesNameWhatMeansNobody(t *testing.T) {
	tagged := meshgen.Node(2, 1)
	tagged.Owner, tagged.Tags = 0, []string{"tag:old", "tag:web"}
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: tagged})
	text := `{"tagOwners": {"tag:web": ["user1"]}, "groups": {"group:g": ["user1@", "cem@example.com"]},
		"hosts": {"office": "10.9.8.1/29"}, "acls": [{"action": "accept", "src": ["group:g", "USER1"], "dst": ["host-1:22", "tag:web:22"]}]}`
	want := []string{
		`line 2, column 23: host office is "10.9.8.1/29", which means the network 10.9.8.0/29: use that, or the address alone`,
		"unknown user cem@example.com",
		"unknown user host-1, but a node has this name: refer to nodes by tag, by address, or by an entry in hosts",
		"nodes have tag:old, which tagOwners does not define",
	}
	doc, problems := lang.Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, explain.Notes(policy.WorldOf(s, doc))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if notes := explain.Notes(policy.WorldOf(s, nil)); notes != nil {
		t.Errorf("no policy: %v", notes)
	}
}
