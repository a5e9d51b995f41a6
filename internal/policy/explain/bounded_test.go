//go:build !race

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
)

// However many kinds of nodes a policy distinguishes, a preview ends, and says if it is
// incomplete.
func TestPreviewOfVeryManyClassesIsBounded(t *testing.T) {
	const users = 3000
	var b strings.Builder
	b.WriteString(`{"acls": [`)
	for u := range users {
		fmt.Fprintf(&b, `{"action": "accept", "src": ["user%d"], "dst": ["*:%d"]},`, u+1, u+1)
	}
	b.WriteString(`]}`)
	d := mesh.Empty().Edit()
	for u := range users {
		d.Apply(1, mesh.UserPut{User: meshgen.User(mesh.UserID(u + 1))}, mesh.NodePut{Node: meshgen.Node(mesh.NodeID(u+1), mesh.UserID(u+1))})
	}
	s := d.Freeze()
	began := time.Now()
	effect := explain.Preview(policy.WorldOf(s, nil), seen(t, s, b.String()), nil)
	took := time.Since(began)
	t.Logf("%d classes: %v", users, took)
	if !effect.Truncated || effect.Changed == 0 || took > 20*time.Second {
		t.Errorf("truncated %v, %d changed, after %v", effect.Truncated, effect.Changed, took)
	}
}
