package netmap_test

import (
	"encoding/json"
	"testing"
	"time"

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
func TestClientsAreToldWhyTheyHaveNoAccessOrWillLoseIt(t *testing.T) {
	for name, change := range map[string]func(*mesh.Node){
		"another expiry":    func(n *mesh.Node) { n.Expiry, n.ExpiryNotice = meshgen.Start.Add(time.Hour), meshgen.Start },
		"no expiry":         func(n *mesh.Node) { n.ExpiryNotice = meshgen.Start },
		"an expired key":    func(n *mesh.Node) { n.Expiry, n.ExpiryNotice, n.KeyExpired = meshgen.Start, meshgen.Start, true },
		"expiry much later": func(n *mesh.Node) { n.Expiry = meshgen.Start },
	} {
		if m := told(t, change); m.Health != nil || m.DisplayMessages != nil {
			t.Errorf("%s: %v, %v", name, m.Health, m.DisplayMessages)
		}
	}
	if m := told(t, func(*mesh.Node) {}); m.Health != nil || m.DisplayMessages != nil {
		t.Errorf("a node with access is told %v, %v", m.Health, m.DisplayMessages)
	}
	for id, change := range map[tailcfg.DisplayMessageID]func(*mesh.Node){
		"needs-approval":    func(n *mesh.Node) { n.NeedsApproval = true },
		"account-suspended": func(n *mesh.Node) { n.SuspendedAt = meshgen.Start },
		"sign-in-expires":   func(n *mesh.Node) { n.Expiry, n.ExpiryNotice = meshgen.Start, meshgen.Start },
	} {
		m := told(t, change)
		message := m.DisplayMessages[id]
		if m.Health != nil || len(m.DisplayMessages) != 1 || message == nil || message.ImpactsConnectivity == (id == "sign-in-expires") || message.Severity == "" {
			t.Fatalf("%s: %v, %v", id, m.Health, m.DisplayMessages)
		}
		old := told(t, func(n *mesh.Node) { change(n); n.CapVersion = 116 })
		if want := message.Title + ". " + message.Text; old.DisplayMessages != nil || len(old.Health) != 1 || old.Health[0] != want {
			t.Errorf("%s: an older client is told %v, %v", id, old.Health, old.DisplayMessages)
		}
	}
}
