//go:build !race

package mesh_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// TestFigureAllocation checks that 50,000 devices with the same name get their addresses
// and names within ten seconds. Searching from the beginning for each would take minutes.
func TestFigureAllocation(t *testing.T) {
	begin := time.Now()
	d := mesh.Empty().Edit()
	p4, p6 := prefix("100.64.0.0/10"), prefix("fd7a:115c:a1e0::/48")
	for id := mesh.NodeID(1); id <= 50_000; id++ {
		s := d.Snapshot()
		v4, err4 := s.NextAddr(p4, s.Counters.V4)
		v6, err6 := s.NextAddr(p6, s.Counters.V6)
		if err := errors.Join(err4, err6); err != nil {
			t.Fatal(err)
		}
		n := meshgen.Node(id, 1)
		n.IPv4, n.IPv6, n.Name = v4, v6, s.UniqueName("localhost", id)
		d.Apply(mesh.Revision(id), mesh.NodePut{Node: n}, mesh.AddressCursor{V4: v4, V6: v6})
	}
	took := time.Since(begin)
	if got := d.Snapshot().Counters.V4; got != addr("100.64.195.80") {
		t.Errorf("the last address is %v", got)
	}
	t.Logf("50,000 in %v", took)
	if took > 10*time.Second {
		t.Error("too slow")
	}
}
