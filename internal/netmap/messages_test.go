package netmap_test

import (
	"encoding/json"
	"testing"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// told returns the full map of a node as its client reads it.
func told(t *testing.T, change func(*mesh.Node)) (m tailcfg.MapResponse) {
	t.Helper()
	n := meshgen.Node(1, 1)
	n.CapVersion = 117
	change(n)
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: n}, mesh.NodePut{Node: meshgen.Node(2, 1)})
	text, err := json.Marshal(netmap.Full(netmap.SceneOf(policy.NewWorld(s, nil), nil), 1))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Nodes with access are sent nothing. TestUpdateFollowsFull and the other tests of law 1 check that messages come and
// go with their reason.
func TestClientsAreToldWhyTheyHaveNoAccess(t *testing.T) {
	if m := told(t, func(*mesh.Node) {}); m.Health != nil || m.DisplayMessages != nil {
		t.Errorf("a node with access is told %v, %v", m.Health, m.DisplayMessages)
	}
	for id, change := range map[tailcfg.DisplayMessageID]func(*mesh.Node){
		"needs-approval":    func(n *mesh.Node) { n.NeedsApproval = true },
		"account-suspended": func(n *mesh.Node) { n.SuspendedAt = meshgen.Start },
	} {
		m := told(t, change)
		message := m.DisplayMessages[id]
		if m.Health != nil || len(m.DisplayMessages) != 1 || message == nil || !message.ImpactsConnectivity || message.Severity == "" {
			t.Fatalf("%s: %v, %v", id, m.Health, m.DisplayMessages)
		}
		old := told(t, func(n *mesh.Node) { change(n); n.CapVersion = 116 })
		if want := message.Title + ". " + message.Text; old.DisplayMessages != nil || len(old.Health) != 1 || old.Health[0] != want {
			t.Errorf("%s: an older client is told %v, %v", id, old.Health, old.DisplayMessages)
		}
	}
}
