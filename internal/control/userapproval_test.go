package control_test

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// askingUsers returns a service that lets people who sign in for the first time wait.
func askingUsers(t *testing.T, nodeApproval bool) service {
	t.Helper()
	s := open(t)
	s.Service = control.New(control.Config{
		Ledger: s.ledger, History: s.history, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		PrefixV4: netip.MustParsePrefix("100.64.0.0/10"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"),
		Logins: sealer, ServerURL: "https://mesh.example.com", UserApproval: true, NodeApproval: nodeApproval,
	})
	return s
}

func TestDevicesOfAPersonWaitUntilThePersonIsApproved(t *testing.T) {
	for _, nodeApproval := range []bool{false, true} {
		s := askingUsers(t, nodeApproval)
		ann := control.Person{Issuer: "https://id.example", Subject: "7", Username: "ann"}
		join := func(n uint64) *mesh.Node {
			t.Helper()
			d := arrive(t, s, n)
			if _, err := s.Logins.SignIn(t.Context(), mesh.Actor{}, d.link, ann, d.link); err != nil {
				t.Fatal(err)
			}
			joined, err := s.Joins.Join(t.Context(), mesh.Actor{}, d.ask)
			if err != nil || joined.Node == nil {
				t.Fatalf("%+v, %v", joined, err)
			}
			return joined.Node
		}
		first := join(1)
		user, _ := s.ledger.World().Users.ByName("ann")
		if !user.NeedsApproval || !first.NeedsApproval || s.Users.Access(user).Role != "" {
			t.Fatalf("the user is %+v with the role %q, the node waits: %t", user, s.Users.Access(user).Role, first.NeedsApproval)
		}
		if join(2); s.ledger.World().Users.Len() != 1 {
			t.Error("a second sign-in creates another user")
		}
		if user, _ = s.ledger.World().Users.ByName("ann"); !user.NeedsApproval {
			t.Error("a second sign-in approves the user")
		}

		approved, err := s.Users.Approve(t.Context(), admin, "ann", "")
		if err != nil || approved.NeedsApproval || s.Users.Access(approved).Role != mesh.RoleMember {
			t.Fatalf("%+v with the role %q, %v", approved, s.Users.Access(approved).Role, err)
		}
		for _, id := range []mesh.NodeID{1, 2} {
			if n := s.node(t, id); n.NeedsApproval != nodeApproval {
				t.Errorf("every node needs approval: %t; node %s waits: %t", nodeApproval, id, n.NeedsApproval)
			}
		}
		if n := join(3); n.NeedsApproval != nodeApproval {
			t.Errorf("every node needs approval: %t; a new node of an approved user waits: %t", nodeApproval, n.NeedsApproval)
		}
		rev := s.ledger.World().Rev
		if _, err := s.Users.Approve(t.Context(), admin, "ann", ""); err != nil || s.ledger.World().Rev != rev {
			t.Errorf("a second approval is revision %d after %d, %v", s.ledger.World().Rev, rev, err)
		}
	}
}

func TestUsersThatAnAdministratorCreatesNeedNoApproval(t *testing.T) {
	s := askingUsers(t, false)
	u, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "boss"})
	if err != nil || u.NeedsApproval {
		t.Errorf("%+v, %v", u, err)
	}
}
