package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// A commit of another replica may be visible but not yet durable. A client that retries
// must not be told that its registration or logout has succeeded until a commit of this
// replica shows that it is durable.
func TestKnownClientIsAcknowledgedOnlyWhenItsChangeIsDurable(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 1)
		pass(time.Second)
		a.commit(t, mesh.UserPut{User: meshgen.User(2)}) // shows that node 1 is durable
		pass(time.Second)
		now := mesh.TimeOf(time.Now())
		joined, out, gone := meshgen.Node(2, 1), meshgen.Node(3, 1), meshgen.Node(4, 1)
		for _, n := range []*mesh.Node{joined, out, gone} {
			n.UpdatedAt = now
		}
		out.Expiry, out.KeyExpired = now, true
		b.commit(t, mesh.NodePut{Node: joined}, mesh.NodePut{Node: out})
		pass(2 * time.Second)

		join := func(n *mesh.Node, logout bool) (control.Joined, error) {
			j := control.Joining{Proven: true, MachineKey: n.MachineKey, NodeKey: n.NodeKey}
			if logout {
				j.Expiry = 1
			}
			return a.Joins.Join(t.Context(), mesh.Actor{}, j)
		}
		c.setAway(true, a)
		for what, try := range map[string]func() (control.Joined, error){
			"a registration":               func() (control.Joined, error) { return join(joined, false) },
			"a logout":                     func() (control.Joined, error) { return join(out, true) },
			"a logout of an ephemeral one": func() (control.Joined, error) { return join(gone, true) },
		} {
			if got, err := try(); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s that may not be durable is acknowledged: %+v, %v", what, got, err)
			}
		}
		durable, _ := a.ledger.World().Nodes.Get(1)
		if got, err := join(durable, false); err != nil || got.Node == nil {
			t.Errorf("a node that joined long ago is refused in an outage: %+v, %v", got, err)
		}
		c.setAway(false, a)
		before := c.commits()
		for range 3 {
			if got, err := join(joined, false); err != nil || got.Node == nil || got.KeyExpired {
				t.Errorf("the registration: %+v, %v", got, err)
			}
			for _, n := range []*mesh.Node{out, gone} {
				if got, err := join(n, true); err != nil || !got.KeyExpired {
					t.Errorf("the logout: %+v, %v", got, err)
				}
			}
		}
		if n := c.commits() - before; n != 1 {
			t.Errorf("%d transactions to find that three answers are durable, want 1", n)
		}
	})
}

// commits returns how many transactions were attempted.
func (c *cluster) commits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries
}
