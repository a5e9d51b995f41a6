package control_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func nets(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// announce reports the routes of a running client.
func announce(t *testing.T, s service, id mesh.NodeID, texts ...string) {
	t.Helper()
	n := s.node(t, id)
	err := s.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
		MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: &control.Host{Hostname: n.Hostname, RoutableIPs: nets(texts...)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// routes formats all routes: node, prefix and state.
func (s service) routes() string {
	var lines []string
	for _, r := range control.RoutesIn(s.ledger.World().Snapshot) {
		line := fmt.Sprintf("%d %s", r.Node.ID, r.Prefix)
		for word, holds := range map[string]bool{"announced": r.Announced(), "enabled": r.Enabled, "primary": r.Primary()} {
			if holds {
				line += " " + word[:1]
			}
		}
		fields := strings.Fields(line)
		slices.Sort(fields[2:])
		lines = append(lines, strings.Join(fields, " "))
	}
	return strings.Join(lines, ", ")
}

func (s service) wantRoutes(t *testing.T, when, want string) {
	t.Helper()
	if got := s.routes(); got != want {
		t.Errorf("%s:\n got %s\nwant %s", when, got, want)
	}
}

func (s service) routeID(t *testing.T, node mesh.NodeID, prefix string) mesh.RouteID {
	t.Helper()
	r, ok := s.node(t, node).Route(netip.MustParsePrefix(prefix))
	if !ok {
		t.Fatalf("node %s has no route %s", node, prefix)
	}
	return r.ID
}

// A route waits for approval, is used while it is announced, and keeps its ID and approval
// while it is not.
func TestRouteFromAnnouncementToDeletion(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}})
	announce(t, s, 1, "10.1.0.0/16", "192.168.7.0/24")
	s.wantRoutes(t, "announced", "1 10.1.0.0/16 a, 1 192.168.7.0/24 a")
	id := s.routeID(t, 1, "10.1.0.0/16")
	if r, err := s.Routes.Enable(t.Context(), admin, id, true, ""); err != nil || !r.Enabled || !r.Primary() {
		t.Fatalf("%+v, %v", r, err)
	}
	s.wantRoutes(t, "enabled", "1 10.1.0.0/16 a e p, 1 192.168.7.0/24 a")
	if err := s.Routes.Delete(t.Context(), admin, id, ""); reason(err) != control.Conflict {
		t.Errorf("a route that is announced is deleted: %v", err)
	}
	announce(t, s, 1, "192.168.7.0/24")
	s.wantRoutes(t, "withdrawn", "1 10.1.0.0/16 e, 1 192.168.7.0/24 a")
	announce(t, s, 1, "192.168.7.0/24", "10.1.0.0/16")
	s.wantRoutes(t, "back", "1 10.1.0.0/16 a e p, 1 192.168.7.0/24 a")
	if again := s.routeID(t, 1, "10.1.0.0/16"); again != id {
		t.Errorf("route %s became %s", id, again)
	}
	announce(t, s, 1)
	if err := s.Routes.Delete(t.Context(), admin, id, ""); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "deleted", "1 192.168.7.0/24")
	announce(t, s, 1, "10.1.0.0/16")
	if again := s.routeID(t, 1, "10.1.0.0/16"); again == id {
		t.Error("the id of a deleted route is given again")
	}
	if _, err := s.Routes.Enable(t.Context(), admin, 99, true, ""); reason(err) != control.NotFound {
		t.Errorf("%v", err)
	}
}

func TestRoutesToTheInternetGoTogether(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{}, mesh.Node{})
	announce(t, s, 1, "0.0.0.0/0", "::/0")
	if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, 1, "::/0"), true, ""); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "one enabled", "1 0.0.0.0/0 a e p, 1 ::/0 a e p")
	if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, 1, "0.0.0.0/0"), false, ""); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "one disabled", "1 0.0.0.0/0 a, 1 ::/0 a")
	if _, err := s.Routes.Approve(t.Context(), admin, "2", nets("0.0.0.0/0"), ""); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "approved before they are announced", "1 0.0.0.0/0 a, 1 ::/0 a, 2 0.0.0.0/0 e, 2 ::/0 e")
}

// Approving routes replaces the whole list of a node's approved routes.
func TestApprovedRoutesAreExactlyThese(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}})
	announce(t, s, 1, "10.1.0.0/16", "10.2.0.0/16")
	for _, c := range []struct {
		approve []netip.Prefix
		want    string
	}{
		{nets("10.1.0.0/16"), "1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a"},
		{nets("10.2.0.0/16", "10.3.0.0/16"), "1 10.1.0.0/16 a, 1 10.2.0.0/16 a e p, 1 10.3.0.0/16 e"},
		{nil, "1 10.1.0.0/16 a, 1 10.2.0.0/16 a, 1 10.3.0.0/16"},
	} {
		if _, err := s.Routes.Approve(t.Context(), admin, "1", c.approve, ""); err != nil {
			t.Fatal(err)
		}
		s.wantRoutes(t, fmt.Sprint(c.approve), c.want)
	}
	if _, err := s.Routes.Approve(t.Context(), admin, "1", nets("10.1.2.3/16"), ""); reason(err) != control.Invalid {
		t.Errorf("a prefix with host bits: %v", err)
	}
}

func TestPolicyApprovesRoutesThatNobodyDecidedAbout(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:router": []}, "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:router"], "192.168.0.0/16": ["alice"]}, "exitNode": ["tag:router"]}}`)
	put(t, s, mesh.Node{Tags: []string{"tag:router"}, Presence: mesh.Presence{Online: true}}, mesh.Node{})
	announce(t, s, 1, "10.1.0.0/16", "192.168.1.0/24", "0.0.0.0/0", "::/0")
	announce(t, s, 2, "10.2.0.0/16", "192.168.1.0/24", "0.0.0.0/0", "::/0", "192.0.0.0/8")
	s.wantRoutes(t, "announced",
		"1 0.0.0.0/0 a e p, 1 10.1.0.0/16 a e p, 1 192.168.1.0/24 a, 1 ::/0 a e p, "+
			"2 0.0.0.0/0 a, 2 10.2.0.0/16 a, 2 192.0.0.0/8 a, 2 192.168.1.0/24 a e p, 2 ::/0 a")
	if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, 1, "10.1.0.0/16"), false, ""); err != nil {
		t.Fatal(err)
	}
	announce(t, s, 1)
	announce(t, s, 1, "10.1.0.0/16")
	if r, _ := s.node(t, 1).Route(netip.MustParsePrefix("10.1.0.0/16")); r.Enabled {
		t.Error("the policy enables what a person disabled")
	}
}

func TestPreferredRouterIsAskedFirst(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}}, mesh.Node{Presence: mesh.Presence{Online: true}}, mesh.Node{Presence: mesh.Presence{Online: true}})
	for id := range mesh.NodeID(3) {
		announce(t, s, id+1, "10.1.0.0/16")
		if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, id+1, "10.1.0.0/16"), true, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Routes.Prefer(t.Context(), admin, s.routeID(t, 3, "10.1.0.0/16"), 10, ""); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "who leads stays", "1 10.1.0.0/16 a e p, 2 10.1.0.0/16 a e, 3 10.1.0.0/16 a e")
	commit(t, s, mesh.Offline{ID: 1, At: 2})
	s.wantRoutes(t, "who led is gone", "1 10.1.0.0/16 a e, 2 10.1.0.0/16 a e, 3 10.1.0.0/16 a e p")
	if _, err := s.Routes.Prefer(t.Context(), admin, s.routeID(t, 3, "10.1.0.0/16"), 1001, ""); reason(err) != control.Invalid {
		t.Errorf("%v", err)
	}
}

// approving returns a policy that approves a prefix for alice, who owns all nodes.
func approving(prefix string) string {
	return `{"acls": [], "autoApprovers": {"routes": {"` + prefix + `": ["alice"]}}}`
}

func TestSavedPolicyApprovesRoutesThatWait(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Presence: mesh.Presence{Online: true}}, mesh.Node{})
	announce(t, s, 1, "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")
	announce(t, s, 2, "10.1.0.0/16")
	if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, 1, "10.2.0.0/16"), false, ""); err != nil {
		t.Fatal(err)
	}
	before := s.ledger.World().Rev
	if _, err := s.Policies.Save(t.Context(), admin, draft(approving("10.0.0.0/14"))); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "saved", "1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a e p, 2 10.1.0.0/16 a e")
	if rev := s.ledger.World().Rev; rev != before+1 {
		t.Errorf("%d commits, want one", rev-before)
	}
	if _, err := s.Policies.Save(t.Context(), admin, draft(nobody)); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "what was approved stays", "1 10.1.0.0/16 a e p, 1 10.2.0.0/16 a, 1 10.3.0.0/16 a e p, 2 10.1.0.0/16 a e")
}

func TestPolicyThatComesBackApprovesRoutesThatWait(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	if _, err := s.Policies.Save(t.Context(), admin, draft(approving("10.0.0.0/8"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Policies.Save(t.Context(), admin, temporary(nobody)); err != nil {
		t.Fatal(err)
	}
	announce(t, s, 1, "10.1.0.0/16")
	s.wantRoutes(t, "while another policy is tried", "1 10.1.0.0/16 a")
	if _, err := s.Policies.Revert(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	s.wantRoutes(t, "reverted", "1 10.1.0.0/16 a e p")
}

func TestPolicyFileApprovesRoutesThatWait(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		file := policyAt(t, "", nobody)
		a := c.startWith(t, "a", "", file)
		s := service{Service: a.Service, ledger: a.ledger}
		put(t, s, mesh.Node{})
		announce(t, s, 1, "10.1.0.0/16")
		policyAt(t, file, approving("10.1.0.0/16"))
		pass(3 * time.Second)
		s.wantRoutes(t, "read", "1 10.1.0.0/16 a e p")
	})
}
