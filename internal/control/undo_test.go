package control_test

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// Reverting a policy on trial disables routes that only its autoApprovers had enabled. What
// a person decided in the meantime stays.
func TestRevertWithdrawsRoutesApprovedOnTrial(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}}, mesh.Node{})
	save(t, s, draft(approving("192.168.0.0/16")))
	announce(t, s, 1, "192.168.1.0/24", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")
	before := "1 10.1.0.0/16 a, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p"
	s.wantRoutes(t, "before the trial", before)

	save(t, s, temporary(`{"acls": [], "autoApprovers": {"routes": {"10.0.0.0/8": ["alice"]}, "exitNode": ["alice"]}}`))
	announce(t, s, 2, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	announce(t, s, 2) // the routes of node 2 stay approved while it does not announce them
	enable(t, s, 1, "10.2.0.0/16", true)
	enable(t, s, 1, "10.3.0.0/16", false)
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p, "+
		"2 0.0.0.0/0 e, 2 10.1.0.0/16 e, 2 ::/0 e")

	rev := s.ledger.World().Rev
	if _, err := s.Policies.Revert(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "reverted", "1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a, 1 192.168.1.0/24 a e p, "+
		"2 0.0.0.0/0, 2 10.1.0.0/16, 2 ::/0")
	if now := s.ledger.World().Rev; now != rev+1 {
		t.Errorf("%d commits, want one", now-rev)
	}
}

func TestUnconfirmedPolicyTakesItsRoutesAlong(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		s := service{Service: a.Service, ledger: a.ledger}
		put(t, s, mesh.Node{})
		announce(t, s, 1, "10.1.0.0/16")
		save(t, s, temporary(approving("10.0.0.0/8")))
		s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p")
		pass(2 * time.Minute)
		s.wantRoutes(t, "after the time to confirm", "1 10.1.0.0/16 a")
	})
}

// A policy file replaces whatever is stored, even a version on trial.
func TestPolicyFileInPlaceOfATrialWithdrawsItsRoutes(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		s := service{Service: a.Service, ledger: a.ledger}
		put(t, s, mesh.Node{})
		announce(t, s, 1, "10.1.0.0/16", "10.2.0.0/16")
		save(t, s, control.PolicyDraft{Text: approving("10.0.0.0/8"), ConfirmWithin: time.Hour})
		a.kill()
		b := c.startWith(t, "b", "", policyAt(t, "", approving("10.2.0.0/16")))
		pass(3 * time.Second)
		service{Service: b.Service, ledger: b.ledger}.wantRoutes(t, "replaced", "1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p")
	})
}

// An approval outlives the autoApprovers of a policy that was confirmed.
func TestConfirmedApprovalStaysWhenThePolicyNoLongerApproves(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	announce(t, s, 1, "10.1.0.0/16")
	save(t, s, temporary(approving("10.0.0.0/8")))
	if _, err := s.Policies.Confirm(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	save(t, s, temporary(nobody))
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p")
	if _, err := s.Policies.Confirm(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "confirmed", "1 10.1.0.0/16 a e p")
	if _, err := s.Policies.Rollback(t.Context(), admin, 1, control.PolicyDraft{}); err != nil {
		t.Fatal(err)
	}
	save(t, s, temporary(approving("192.168.0.0/16")))
	if _, err := s.Policies.Revert(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "after a trial that did not approve it", "1 10.1.0.0/16 a e p")
}

// A node that changes its owner or tags loses what the policy had approved only for the
// previous ones.
func TestNodeThatChangesHandsLosesApprovalsOfThePolicy(t *testing.T) {
	const text = `{"tagOwners": {"tag:router": [], "tag:web": []}, "autoApprovers": {"routes": {
		"10.0.0.0/8": ["tag:router", "alice"], "10.2.0.0/16": ["bob", "tag:web"]}, "exitNode": ["alice"]}}`
	tag := func(tags ...string) func(*testing.T, service) error {
		return func(t *testing.T, s service) error {
			_, err := s.Nodes.Tag(t.Context(), admin, "1", tags, "")
			return err
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, service) error
		want   string
	}{
		"moved": {func(t *testing.T, s service) error {
			_, err := s.Nodes.Move(t.Context(), admin, "1", "bob", "")
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"its owner renamed": {func(t *testing.T, s service) error {
			_, err := s.Users.Rename(t.Context(), admin, "alice", "carol", "")
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"tagged": {tag("tag:web"), "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"tagged as a router": {
			tag("tag:router"), "1 0.0.0.0/0 a, 1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16 e, 1 ::/0 a",
		},
		"tagged with others": {func(t *testing.T, s service) error {
			_, err := s.Nodes.ChangeMany(t.Context(), admin, []int64{1}, control.NodesChange{Action: control.BulkSetTags, Tags: []string{"tag:web"}})
			return err
		}, "1 0.0.0.0/0 a, 1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 a e p, 1 10.4.0.0/16, 1 ::/0 a"},
		"joined again with tags": {func(t *testing.T, s service) error {
			_, secret, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Tags: []string{"tag:web"}})
			if err != nil {
				return err
			}
			n := s.node(t, 1)
			_, err = s.Joins.Join(t.Context(), mesh.Actor{}, control.Joining{
				Proven:     true,
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

// Changes to a node during a trial are judged by the version before it.
func TestApprovalOfARetaggedNodeIsUndoneWithTheTrial(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:a": [], "tag:b": []}, "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:a"]}}}`)
	put(t, s, mesh.Node{Tags: []string{"tag:a"}}, mesh.Node{Tags: []string{"tag:b"}})
	announce(t, s, 1, "10.1.0.0/16")
	announce(t, s, 2, "10.2.0.0/16")
	save(t, s, temporary(`{"tagOwners": {"tag:a": [], "tag:b": []}, "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:b"]}}}`))
	s.wantRoutes(t, "on trial", "1 10.1.0.0/16 a e p, 2 10.2.0.0/16 a e p")
	for ref, tag := range map[string]string{"1": "tag:b", "2": "tag:a"} {
		if _, err := s.Nodes.Tag(t.Context(), admin, ref, []string{tag}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.wantRoutes(t, "tags swapped", "1 10.1.0.0/16 a e p, 2 10.2.0.0/16 a")
	if _, err := s.Policies.Revert(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "reverted", "1 10.1.0.0/16 a, 2 10.2.0.0/16 a e p")
}

// A revert could not remove a tag, so a device gets no tag that only a policy on trial lets
// it request. A person's decisions, such as the tags of a pre-auth key, apply during a
// trial as well.
func TestDeviceGetsNoTagThatOnlyATrialAllows(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:old": ["alice"], "tag:key": []}}`)
	put(t, s)
	save(t, s, temporary(`{"tagOwners": {"tag:old": ["alice"], "tag:new": ["alice", "tag:key"], "tag:key": []}}`))
	machine := uint64(0)
	joining := func(of []string, asked ...string) control.Joining {
		_, secret, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Tags: of})
		if err != nil {
			t.Fatal(err)
		}
		machine++
		return control.Joining{
			Proven:     true,
			MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(machine), PreAuthKey: secret,
			Tags: asked, Host: control.Host{Hostname: "host"},
		}
	}
	join := func(j control.Joining) error {
		_, err := s.Joins.Join(t.Context(), mesh.Actor{}, j)
		return err
	}
	register := func(j control.Joining) error {
		j.Proven = false
		return join(j)
	}
	const refusal = "tag not allowed: only policy version 2 allows tag:new, and it is not confirmed yet; confirm it (fairlead policy confirm 2), then retry"
	for name, do := range map[string]func(control.Joining) error{"join": join, "register": register} {
		for _, j := range []control.Joining{joining(nil, "tag:new"), joining(nil, "tag:old", "tag:new"), joining([]string{"tag:key"}, "tag:new")} {
			if err := do(j); reason(err) != control.Denied || err.Error() != refusal {
				t.Errorf("%s with %v: %v", name, j.Tags, err)
			}
		}
		for _, j := range []control.Joining{joining(nil, "tag:old"), joining([]string{"tag:new"}), joining([]string{"tag:new"}, "tag:old", "tag:new")} {
			if err := do(j); err != nil {
				t.Errorf("%s with %v: %v", name, j.Tags, err)
			}
		}
	}
	d := arrive(t, s, 99)
	d.ask.Tags = []string{"tag:new"}
	d.wait()
	if _, _, err := s.Logins.Approve(t.Context(), admin, "alice", d.code()); reason(err) != control.Conflict || err.Error() != refusal {
		t.Errorf("approved: %v", err)
	}

	denied := joining(nil, "tag:new")
	if err := join(denied); reason(err) != control.Denied {
		t.Fatal(err)
	}
	if _, err := s.Policies.Confirm(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	if err := join(denied); err != nil {
		t.Errorf("after the policy was confirmed: %v", err)
	}
	if _, node, err := s.Logins.Approve(t.Context(), admin, "alice", d.code()); err != nil || node == nil {
		t.Errorf("approved after the policy was confirmed: %v, %v", node, err)
	}
}

func save(t *testing.T, s service, in control.PolicyDraft) {
	t.Helper()
	if _, err := s.Policies.Save(t.Context(), admin, in); err != nil {
		t.Fatal(err)
	}
}

func enable(t *testing.T, s service, node mesh.NodeID, prefix string, enabled bool) {
	t.Helper()
	if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, node, prefix), enabled, ""); err != nil {
		t.Fatal(err)
	}
}
