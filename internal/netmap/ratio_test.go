//go:build !race

package netmap_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// The cost of a port in a filter does not depend on the number of ports. The tolerance is
// large, because data that no longer fits into the CPU caches costs a few times as much.
func TestRatioFilterGrowsWithItsPorts(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(1, 1)})
	n, _ := s.Nodes.Get(1)
	scene := func(ports int) *netmap.Scene {
		var b strings.Builder
		for i := range ports {
			fmt.Fprintf(&b, ",%d", 3+2*i) // not adjacent: adjacent ports would become one range
		}
		doc, problems := lang.Parse([]byte(`{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:1` + b.String() + `"]}]}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return netmap.SceneOf(policy.WorldOf(s, doc), nil)
	}
	const few, many = 2_000, 32_000
	small, large := scene(few), scene(many)
	best := map[*netmap.Scene]time.Duration{small: time.Hour, large: time.Hour}
	for range 10 {
		for s := range best {
			began := time.Now()
			netmap.Filters(s, n)
			best[s] = min(best[s], time.Since(began))
		}
	}
	one, other := best[small]/few, best[large]/many
	t.Logf("%v for each of 2,000 ports, %v for each of 32,000", one, other)
	if other > 6*one {
		t.Errorf("a port costs %.1f times as much among many", float64(other)/float64(one))
	}
}
