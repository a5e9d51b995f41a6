package control

import (
	"net/netip"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// joinsAsked decides a join on a server that requires approval.
func (d door) joinsAsked(t *testing.T, j Joining) *mesh.Node {
	t.Helper()
	s := &Joins{core: &core{prefixV4: netip.MustParsePrefix("100.64.0.0/10"), prefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"), nodeApproval: true}}
	j.Proven, j.Host = true, Host{Hostname: "router", RoutableIPs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}.bounded()
	v, _, err := s.decideJoin(d.world, joinNow, j, s.addresses(0))
	if err != nil || v.node == nil {
		t.Fatalf("%+v: %+v, %v", j, v, err)
	}
	return v.node
}

// apply changes the snapshot.
func (d *door) apply(evs ...mesh.Event) {
	s, _ := mesh.Apply(d.world.Snapshot, d.world.Rev+1, evs...)
	d.world = policy.NewWorld(s, nil)
}

func TestNewNodesNeedApprovalUnlessAnAdministratorGaveIt(t *testing.T) {
	d := newDoor()
	for id, k := range map[mesh.KeyID]string{1: "user1", 5: "tags", 6: "tags of user2"} {
		key, _ := d.world.PreAuthKeys.Get(id)
		asked := d.joinsAsked(t, Joining{MachineKey: meshgen.MachineKey(20), NodeKey: meshgen.NodeKey(20), PreAuthKey: d.keys[k]})
		approved := *key
		approved.PreApproved = true
		with := newDoorWith(d, &approved)
		given := with.joinsAsked(t, Joining{MachineKey: meshgen.MachineKey(20), NodeKey: meshgen.NodeKey(20), PreAuthKey: d.keys[k]})
		if !asked.NeedsApproval || given.NeedsApproval {
			t.Errorf("%s: a node needs approval: %t; with a pre-approved key: %t", k, asked.NeedsApproval, given.NeedsApproval)
		}
	}
	if n := d.joinsAsked(t, Joining{MachineKey: meshgen.MachineKey(10), NodeKey: meshgen.NodeKey(10)}); n.NeedsApproval {
		t.Error("a device that an administrator approved needs approval again")
	}
	signedIn := mesh.Login{ID: 9, MachineKey: meshgen.MachineKey(21), NodeKey: meshgen.NodeKey(21), User: 2, Method: mesh.RegisterOIDC, Until: joinNow + 1}
	d.apply(mesh.LoginPut{Login: &signedIn})
	if n := d.joinsAsked(t, Joining{MachineKey: signedIn.MachineKey, NodeKey: signedIn.NodeKey}); !n.NeedsApproval {
		t.Error("a device whose owner signed in needs no approval")
	}
}

func newDoorWith(d door, k *mesh.PreAuthKey) door {
	d.apply(mesh.PreAuthKeyPut{Key: k})
	return d
}

func TestApprovalIsKeptWhenANodeAuthenticatesAgain(t *testing.T) {
	d := newDoor()
	again := Joining{MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(30), OldNodeKey: meshgen.NodeKey(1), PreAuthKey: d.keys["user1"]}
	if n := d.joinsAsked(t, again); n.ID != 1 || n.NeedsApproval {
		t.Errorf("node %s, which was approved, needs approval: %t", n.ID, n.NeedsApproval)
	}
	waiting := *meshgen.Node(1, 1)
	waiting.MachineKey, waiting.NeedsApproval = meshgen.MachineKey(1), true
	d.apply(mesh.NodePut{Node: &waiting})
	if n := d.joinsAsked(t, again); n.ID != 1 || !n.NeedsApproval {
		t.Errorf("node %s, which was waiting, needs approval: %t", n.ID, n.NeedsApproval)
	}
	byAdmin := Joining{MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(13)}
	if n := d.joinsAsked(t, byAdmin); n.ID != 1 || n.NeedsApproval {
		t.Errorf("node %s, which an administrator let join again, needs approval: %t", n.ID, n.NeedsApproval)
	}
	// A server that no longer requires approval does not give it.
	s := &Joins{core: &core{prefixV4: netip.MustParsePrefix("100.64.0.0/10"), prefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48")}}
	again.Proven, again.Host = true, Host{Hostname: "laptop"}.bounded()
	if v, _, err := s.decideJoin(d.world, joinNow, again, s.addresses(0)); err != nil || !v.node.NeedsApproval {
		t.Errorf("%+v, %v", v.node, err)
	}
}
