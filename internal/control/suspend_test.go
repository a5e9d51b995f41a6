package control_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// person is somebody who has signed in and added a device.
func person(t *testing.T, s service) (p control.Person, d *device) {
	t.Helper()
	p = control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann"}
	d = arrive(t, s, 1)
	if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, p, "first"); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Joins.Join(t.Context(), mesh.Actor{}, d.ask); err != nil || out.Node == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	return p, d
}

func TestSuspendedUserHasNoWayInUntilRestored(t *testing.T) {
	s := open(t)
	p, d := person(t, s)
	_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "ann", Reusable: true})
	if err != nil {
		t.Fatal(err)
	}
	tagged := meshgen.Node(50, 0)
	tagged.Tags, tagged.CreatedBy = []string{"tag:a"}, 1
	commit(t, s, mesh.NodePut{Node: tagged})
	approved := arrive(t, s, 2)
	if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, approved.link, p, "second"); err != nil {
		t.Fatal(err)
	}
	before := *s.node(t, 1)
	waiting := arrive(t, s, 3)
	next := uint64(60)
	join := func(j control.Joining) error {
		next++
		if j.NodeKey.IsZero() {
			j.MachineKey, j.NodeKey = meshgen.MachineKey(next), meshgen.NodeKey(next)
		}
		_, err := s.Joins.Join(t.Context(), mesh.Actor{Addr: "192.0.2.7"}, j)
		return err
	}
	ways := map[string]func() error{
		"a pre-auth key":                   func() error { return join(control.Joining{Proven: true, PreAuthKey: key}) },
		"a pre-auth key without a proof":   func() error { return join(control.Joining{PreAuthKey: key}) },
		"the known node":                   func() error { return join(d.ask) },
		"a device approved before":         func() error { return join(approved.ask) },
		"the page that confirms a sign-in": func() error { _, err := s.Logins.Preview(p); return err },
		"a sign-in": func() error {
			next++
			_, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, arrive(t, s, next).link, p, meshgen.NodeKey(next).String())
			return err
		},
	}
	if out, err := s.Users.Suspend(t.Context(), admin, "ann", "", false); err != nil || out.User.SuspendedBy != mesh.SuspendedByAdmin || out.Deleted != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	rev := s.ledger.World().Rev
	for name, try := range ways {
		if err := try(); reason(err) != control.Suspended {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := s.Logins.Approve(t.Context(), admin, "ann", waiting.link); reason(err) != control.Conflict {
		t.Errorf("an approval: %v", err)
	}
	if _, _, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "ann"}); reason(err) != control.Conflict {
		t.Errorf("a new pre-auth key: %v", err)
	}
	if s.Clients.Known(d.ask.NodeKey) {
		t.Error("a relay admits the node")
	}
	if out, err := s.Users.Suspend(t.Context(), admin, "ann", "", false); err != nil || out.User.SuspendedAt == 0 || s.ledger.World().Rev != rev {
		t.Errorf("again: %+v, %v; revision %v, was %v", out, err, s.ledger.World().Rev, rev)
	}
	if n := s.node(t, 50); n.Suspended() {
		t.Error("the tagged node has lost its access")
	}
	if u, err := s.Users.Restore(t.Context(), admin, "ann", ""); err != nil || u.Suspended() || u.SuspendedBy != "" {
		t.Fatalf("%+v, %v", u, err)
	}
	if diff := cmp.Diff(before.Expiry, s.node(t, 1).Expiry); diff != "" || s.node(t, 1).CutOff() || !s.Clients.Known(d.ask.NodeKey) {
		t.Errorf("the node is not as before: %+v", s.node(t, 1))
	}
	for name, try := range ways {
		if err := try(); err != nil {
			t.Errorf("restored, %s: %v", name, err)
		}
	}
}

func TestSuspensionDeletesTaggedNodesOnRequest(t *testing.T) {
	s := open(t)
	person(t, s)
	for id, by := range map[mesh.NodeID]mesh.UserID{50: 1, 51: 1, 52: 2} {
		n := meshgen.Node(id, 0)
		n.Tags, n.CreatedBy = []string{"tag:a"}, by
		commit(t, s, mesh.NodePut{Node: n})
	}
	commit(t, s, mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: "p", Access: mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"users"}}}})
	limited := mesh.Actor{Kind: mesh.ActorKey, ID: "1"}
	if _, err := s.Users.Suspend(t.Context(), limited, "ann", "", true); reason(err) != control.Forbidden {
		t.Errorf("without the scope nodes: %v", err)
	}
	if _, err := s.Users.Suspend(t.Context(), limited, "ann", "", false); err != nil {
		t.Error(err)
	}
	if out, err := s.Users.Suspend(t.Context(), admin, "ann", "", true); err != nil || out.Deleted != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if got := s.ledger.World().Nodes.Len(); got != 2 {
		t.Errorf("%d nodes are left", got)
	}
}

func TestLastAdministratorCannotBeSuspended(t *testing.T) {
	s := open(t)
	boss := &mesh.User{ID: 1, Name: "boss", Provider: mesh.ProviderOIDC, ProviderID: "https://id.example/1", Role: mesh.RoleAdmin}
	second := &mesh.User{ID: 2, Name: "second", Provider: mesh.ProviderOIDC, ProviderID: "https://id.example/2", Role: mesh.RoleAdmin}
	commit(t, s, mesh.UserPut{User: boss}, mesh.UserPut{User: second})
	commit(t, s, mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: "p", Access: mesh.Access{Role: mesh.RoleOperator}}})
	if _, err := s.Users.Suspend(t.Context(), mesh.Actor{Kind: mesh.ActorKey, ID: "1"}, "boss", "", false); reason(err) != control.Forbidden {
		t.Errorf("an operator suspends an administrator: %v", err)
	}
	if _, err := s.Users.Suspend(t.Context(), admin, "boss", "", false); err != nil {
		t.Errorf("one of two: %v", err)
	}
	if _, err := s.Users.Suspend(t.Context(), admin, "second", "", false); reason(err) != control.Conflict {
		t.Errorf("the last one: %v", err)
	}
	if _, err := s.Users.Suspend(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "second", "", false); err != nil {
		t.Errorf("on the local socket: %v", err)
	}
}
