package control_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sweep"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const approveAll = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}],
  "autoApprovers": {"routes": {"0.0.0.0/0": ["alice"], "::/0": ["alice"]}, "exitNode": ["alice"]}}`

// A device that advertises addresses of the mesh is served, and these routes are ignored,
// whoever approves them.
func TestRoutesOverTheMeshAreIgnored(t *testing.T) {
	s := withPolicy(t, approveAll)
	put(t, s, mesh.Node{}, mesh.Node{Owner: 1, Presence: mesh.Presence{Online: true}})
	announce(t, s, 2, "100.64.0.1/32", "100.64.0.2/32", "100.0.0.0/8", "fd7a:115c:a1e0::1/128", "100.100.100.100/32", "10.1.0.0/16", "0.0.0.0/0", "::/0")
	const want = "2 0.0.0.0/0 a e p, 2 10.1.0.0/16 a e p, 2 ::/0 a e p"
	s.wantRoutes(t, "advertised", want)
	warnings := s.Observations.Facts(2).Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "100.64.0.1/32") {
		t.Errorf("warnings: %v", warnings)
	}
	rev := s.ledger.World().Rev
	announce(t, s, 2, "100.64.0.1/32", "10.1.0.0/16", "0.0.0.0/0", "::/0")
	if now := s.ledger.World().Rev; now != rev {
		t.Errorf("the same routes again, but for ignored ones, are committed as revision %d after %d", now, rev)
	}
	announce(t, s, 2, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	if left := s.Observations.Facts(2).Warnings; len(left) > 0 {
		t.Errorf("warnings stay: %v", left)
	}
	for _, prefix := range []string{"100.64.0.1/32", "100.64.0.0/10", "fd00::/8", "0.0.0.0/1"} {
		_, err := s.Routes.Approve(t.Context(), admin, "2", nets("10.1.0.0/16", prefix), "")
		if reason(err) != control.Invalid || !strings.Contains(err.Error(), prefix+" cannot be a route: it overlaps") {
			t.Errorf("approval of %s: %v", prefix, err)
		}
	}
	s.wantRoutes(t, "at the end", want)
}

// The address of a node from before the prefix was changed is protected too.
func TestRouteToANodeOutsideThePrefixIsRefused(t *testing.T) {
	s := open(t, func(c *ledger.Config) { c.Reserved = mesh.ReservedFor(nets("100.99.0.0/16")...) })
	put(t, s, mesh.Node{}, mesh.Node{})
	announce(t, s, 2, "100.64.0.1/32", "100.64.0.77/32")
	s.wantRoutes(t, "advertised", "2 100.64.0.77/32 a")
	if _, err := s.Routes.Approve(t.Context(), admin, "2", nets("100.64.0.1/32"), ""); reason(err) != control.Invalid {
		t.Errorf("%v", err)
	}
}

// Nodes that were stored with routes over the mesh lose them at the first sweep, and
// nobody can enable these routes again.
func TestStoredRoutesOverTheMeshAreDisabled(t *testing.T) {
	s := open(t)
	routes := nets("10.1.0.0/16", "100.64.0.1/32")
	bad := mesh.Route{ID: 2, Prefix: routes[1], Enabled: true, Decided: true}
	put(t, s, mesh.Node{}, mesh.Node{
		RoutableIPs: routes, Routes: routes, AllRoutes: []mesh.Route{{ID: 1, Prefix: routes[0], Enabled: true}, bad},
	})
	s.wantRoutes(t, "stored", "2 10.1.0.0/16 a e p, 2 100.64.0.1/32 a e p")
	sweeper := sweep.New(sweep.Config{
		Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Interval: time.Hour, Inactivity: time.Hour,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() { _ = sweeper.Run(ctx) })
	defer sweeping.Wait()
	defer cancel()
	const want = "2 10.1.0.0/16 a e p, 2 100.64.0.1/32"
	waittest.Eventually(t, time.Minute, 10*time.Millisecond, func() error {
		if got := s.routes(); got != want {
			return errors.New(got)
		}
		return nil
	})
	if _, err := s.Routes.Enable(t.Context(), admin, 2, true, ""); reason(err) != control.Invalid {
		t.Errorf("enabled again: %v", err)
	}
	if _, err := s.Nodes.ChangeMany(t.Context(), admin, []int64{2}, control.NodesChange{Action: control.BulkApproveRoutes}); err != nil {
		t.Error(err)
	}
	s.wantRoutes(t, "after all routes were approved", want)
	if err := s.Routes.Delete(t.Context(), admin, 2, ""); err != nil {
		t.Error(err)
	}
}

func TestPolicyCannotApproveRoutesOverTheMesh(t *testing.T) {
	s := open(t)
	for prefix, refused := range map[string]bool{
		"100.64.0.0/10": true, "100.64.0.7/32": true, "100.0.0.0/8": true, "0.0.0.0/1": true, "fd7a:115c:a1e0::/48": true, "fc00::/7": true,
		"0.0.0.0/0": false, "::/0": false, "10.0.0.0/8": false, "fd7a:115c:a1e0:b1a::/64": false,
	} {
		text := "{\n  \"autoApprovers\": {\"routes\": {\"10.9.0.0/16\": [\"alice\"],\n    \"" + prefix + "\": [\"alice\"]}}}"
		_, err := s.Policies.Save(t.Context(), ada, draft(text))
		var bad *control.BadPolicy
		switch {
		case refused != errors.As(err, &bad):
			t.Errorf("%s: %v", prefix, err)
		case refused && (len(bad.Problems) != 1 || bad.Problems[0].Line != 3 || bad.Problems[0].Column != 5):
			t.Errorf("%s: %v", prefix, bad.Problems)
		case !refused && err != nil:
			t.Errorf("%s: %v", prefix, err)
		}
	}
}
