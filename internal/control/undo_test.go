package control_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A policy on trial that is reverted leaves no route behind that only its
// autoApprovers had enabled; what a person decided meanwhile stays.
func TestRevertWithdrawsRoutesApprovedOnTrial(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}}, mesh.Node{})
	save(t, s, draft(approving("192.168.0.0/16")))
	announce(t, s, 1, "192.168.1.0/24", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")
	before := "1 10.1.0.0/16 a, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p"
	s.wantRoutes(t, "before the trial", before)

	save(t, s, temporary(`{"acls": [], "autoApprovers": {"routes": {"10.0.0.0/8": ["alice"]}, "exitNode": ["alice"]}}`))
	announce(t, s, 2, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	announce(t, s, 2) // it stays approved while it is not announced
	enable(t, s, 1, "10.2.0.0/16", true)
	enable(t, s, 1, "10.3.0.0/16", false)
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p, "+
		"2 0.0.0.0/0 e, 2 10.1.0.0/16 e, 2 ::/0 e")

	rev := s.ledger.World().Rev
	if _, err := s.RevertPolicy(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "reverted", "1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p, "+
		"2 0.0.0.0/0, 2 10.1.0.0/16, 2 ::/0")
	if now := s.ledger.World().Rev; now != rev+1 {
		t.Errorf("%d commits, want one", now-rev)
	}
}

func TestUnconfirmedPolicyTakesItsRoutesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		s := service{a.Service, a.ledger}
		put(t, s, mesh.Node{})
		announce(t, s, 1, "10.1.0.0/16")
		save(t, s, temporary(approving("10.0.0.0/8")))
		s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p")
		pass(2 * time.Minute)
		s.wantRoutes(t, "after the time to confirm", "1 10.1.0.0/16 a")
	})
}

// A policy file takes the place of whatever is stored, also of a version on trial.
func TestPolicyFileInPlaceOfATrialWithdrawsItsRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		s := service{a.Service, a.ledger}
		put(t, s, mesh.Node{})
		announce(t, s, 1, "10.1.0.0/16", "10.2.0.0/16")
		save(t, s, control.PolicyDraft{Text: approving("10.0.0.0/8"), ConfirmWithin: time.Hour})
		a.kill()
		b := c.startWith(t, "b", "", policyAt(t, "", approving("10.2.0.0/16")))
		pass(3 * time.Second)
		service{b.Service, b.ledger}.wantRoutes(t, "replaced", "1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p")
	})
}

// An approval outlives the autoApprovers of a policy that was confirmed.
func TestConfirmedApprovalStaysWhenThePolicyNoLongerApproves(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	announce(t, s, 1, "10.1.0.0/16")
	save(t, s, temporary(approving("10.0.0.0/8")))
	if _, err := s.ConfirmPolicy(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	save(t, s, temporary(nobody))
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p")
	if _, err := s.ConfirmPolicy(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "confirmed", "1 10.1.0.0/16 a e p")
	if _, err := s.RollbackPolicy(t.Context(), admin, 1, control.PolicyDraft{}); err != nil {
		t.Fatal(err)
	}
	save(t, s, temporary(approving("192.168.0.0/16")))
	if _, err := s.RevertPolicy(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "after a trial that did not approve it", "1 10.1.0.0/16 a e p")
}

// Whoever becomes somebody else loses what only the policy had approved for the one
// that it was.
func TestNodeThatChangesHandsLosesApprovalsOfThePolicy(t *testing.T) {
	const text = `{"tagOwners": {"tag:router": [], "tag:web": []}, "autoApprovers": {"routes": {
		"10.0.0.0/8": ["tag:router", "alice"], "10.2.0.0/16": ["bob", "tag:web"]}, "exitNode": ["alice"]}}`
	tag := func(tags ...string) func(*testing.T, service) error {
		return func(t *testing.T, s service) error {
			_, err := s.TagNode(t.Context(), admin, "1", tags, "")
			return err
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, service) error
		want   string
	}{
		"moved": {func(t *testing.T, s service) error {
			_, err := s.MoveNode(t.Context(), admin, "1", "bob", "")
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"its owner renamed": {func(t *testing.T, s service) error {
			_, err := s.RenameUser(t.Context(), admin, "alice", "carol", "")
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"tagged": {tag("tag:web"), "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"tagged as a router": {
			tag("tag:router"), "1 0.0.0.0/0 a, 1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16 e, 1 ::/0 a",
		},
		"tagged with others": {func(t *testing.T, s service) error {
			_, err := s.ChangeNodes(t.Context(), admin, []int64{1}, control.NodesChange{Action: control.BulkSetTags, Tags: []string{"tag:web"}})
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"joined again with tags": {func(t *testing.T, s service) error {
			_, secret, err := s.CreatePreAuthKey(t.Context(), admin, control.NewPreAuthKey{User: "alice", Tags: []string{"tag:web"}})
			if err != nil {
				return err
			}
			n := s.node(t, 1)
			_, err = s.Join(t.Context(), mesh.Actor{}, control.Joining{
				MachineKey: n.MachineKey, NodeKey: meshgen.NodeKey(99), OldNodeKey: n.NodeKey, PreAuthKey: secret,
				Host: control.Host{Hostname: n.Hostname, RoutableIPs: n.RoutableIPs},
			})
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withPolicy(t, text)
			put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}})
			commit(t, s, mesh.UserPut{User: &mesh.User{ID: 2, Name: "bob"}})
			announce(t, s, 1, "10.4.0.0/16")
			announce(t, s, 1, "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "0.0.0.0/0", "::/0")
			enable(t, s, 1, "10.3.0.0/16", true)
			s.wantRoutes(t, "announced",
				"1 0.0.0.0/0 a e p, 1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16 e, 1 ::/0 a e p")
			if err := c.change(t, s); err != nil {
				t.Fatal(err)
			}
			s.wantRoutes(t, name, c.want)
		})
	}
}

// What a node becomes during a trial counts as the version before it sees it.
func TestApprovalOfARetaggedNodeIsUndoneWithTheTrial(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:a": [], "tag:b": []}, "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:a"]}}}`)
	put(t, s, mesh.Node{Tags: []string{"tag:a"}}, mesh.Node{Tags: []string{"tag:b"}})
	announce(t, s, 1, "10.1.0.0/16")
	announce(t, s, 2, "10.2.0.0/16")
	save(t, s, temporary(`{"tagOwners": {"tag:a": [], "tag:b": []}, "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:b"]}}}`))
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p, 2 10.2.0.0/16 a e p")
	for ref, tag := range map[string]string{"1": "tag:b", "2": "tag:a"} {
		if _, err := s.TagNode(t.Context(), admin, ref, []string{tag}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.wantRoutes(t, "tags swapped", "1 10.1.0.0/16 a e p, 2 10.2.0.0/16 a")
	if _, err := s.RevertPolicy(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "reverted", "1 10.1.0.0/16 a, 2 10.2.0.0/16 a e p")
}

func save(t *testing.T, s service, in control.PolicyDraft) {
	t.Helper()
	if _, err := s.SavePolicy(t.Context(), admin, in); err != nil {
		t.Fatal(err)
	}
}

func enable(t *testing.T, s service, node mesh.NodeID, prefix string, enabled bool) {
	t.Helper()
	if _, err := s.EnableRoute(t.Context(), admin, s.routeID(t, node, prefix), enabled, ""); err != nil {
		t.Fatal(err)
	}
}
