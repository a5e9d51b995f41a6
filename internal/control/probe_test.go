package control_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/probe"
)

// watch is a prober and the requests it sent.
type watch struct {
	*probe.Prober
	asked map[mesh.NodeID]string
	now   time.Time
}

// twoRouters returns a mesh of nodes 1 and 2 with the same prefix, and node 3 with another.
// All have their stream on this replica.
func twoRouters(t *testing.T) (service, *watch) {
	s := open(t)
	put(t, s, mesh.Node{}, mesh.Node{}, mesh.Node{})
	self := string(s.ledger.Cluster().Self().ID)
	for id, route := range map[mesh.NodeID]string{1: "10.1.0.0/16", 2: "10.1.0.0/16", 3: "10.3.0.0/16"} {
		announce(t, s, id, route)
		if _, err := s.Routes.Enable(t.Context(), admin, s.routeID(t, id, route), true, ""); err != nil {
			t.Fatal(err)
		}
	}
	for id := range mesh.NodeID(3) {
		commit(t, s, mesh.Online{ID: id + 1, Replica: self, Conn: 1, At: 1})
	}
	w := &watch{asked: map[mesh.NodeID]string{}, now: time.Now()}
	w.Prober = probe.New(probe.Config{
		Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Interval: 5 * time.Second, Timeout: 3 * time.Second,
		Ask: func(id mesh.NodeID, token string) bool {
			w.asked[id] = token
			return true
		},
	})
	return s, w
}

// pass advances the time. The nodes in answer respond immediately.
func (w *watch) pass(t *testing.T, d time.Duration, answer ...mesh.NodeID) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(500 * time.Millisecond) {
		w.Look(t.Context(), w.now)
		for _, id := range answer {
			w.Answered(w.asked[id], meshgen.MachineKey(uint64(id-1)))
		}
	}
	w.Look(t.Context(), w.now)
}

func TestSilentRouterIsReplacedInTime(t *testing.T) {
	s, w := twoRouters(t)
	w.pass(t, 20*time.Second, 1, 2)
	s.wantRoutes(t, "both answer", "1 10.1.0.0/16 a e p, 2 10.1.0.0/16 a e, 3 10.3.0.0/16 a e p")
	if w.asked[3] != "" {
		t.Error("a router is asked that nobody could replace")
	}
	updated := s.node(t, 1).UpdatedAt
	w.pass(t, 12*time.Second, 2)
	if silent := s.node(t, 1); !silent.Unhealthy || silent.UpdatedAt != updated {
		t.Errorf("unhealthy: %t; it was updated at %v, and now at %v", silent.Unhealthy, updated, silent.UpdatedAt)
	}
	s.wantRoutes(t, "12 s after the first fell silent", "1 10.1.0.0/16 a e, 2 10.1.0.0/16 a e p, 3 10.3.0.0/16 a e p")
	w.pass(t, 10*time.Second, 1, 2)
	if s.node(t, 1).Unhealthy {
		t.Error("it answers again and is not taken for well")
	}
	s.wantRoutes(t, "back", "1 10.1.0.0/16 a e, 2 10.1.0.0/16 a e p, 3 10.3.0.0/16 a e p")
}

func TestOneLostAnswerMovesNothing(t *testing.T) {
	s, w := twoRouters(t)
	w.pass(t, 5*time.Second, 1, 2)
	w.pass(t, 4500*time.Millisecond, 2)
	w.pass(t, 10*time.Second, 1, 2)
	s.wantRoutes(t, "one answer was lost", "1 10.1.0.0/16 a e p, 2 10.1.0.0/16 a e, 3 10.3.0.0/16 a e p")
}

func TestOnlyTheRouterItselfCanAnswer(t *testing.T) {
	s, w := twoRouters(t)
	for range 40 {
		w.Look(t.Context(), w.now)
		w.Answered(w.asked[1], meshgen.MachineKey(1))
		w.Answered("something", meshgen.MachineKey(0))
		w.Answered(w.asked[2], meshgen.MachineKey(1))
		w.now = w.now.Add(500 * time.Millisecond)
	}
	s.wantRoutes(t, "another machine said its token", "1 10.1.0.0/16 a e, 2 10.1.0.0/16 a e p, 3 10.3.0.0/16 a e p")
}

func TestRouterIsHealthyIfRoutersAreNotProbed(t *testing.T) {
	s, w := twoRouters(t)
	w.pass(t, 20*time.Second, 2)
	if n, _ := s.ledger.World().Nodes.Get(1); !n.Unhealthy {
		t.Fatal("the silent router counts as healthy")
	}
	off := probe.New(probe.Config{
		Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Timeout: 3 * time.Second,
		Ask: func(id mesh.NodeID, _ string) bool {
			t.Errorf("router %d was probed", id)
			return true
		},
	})
	off.Look(t.Context(), w.now)
	if n, _ := s.ledger.World().Nodes.Get(1); n.Unhealthy {
		t.Error("the router stays unhealthy, and nothing will find it healthy again")
	}
	off.Look(t.Context(), w.now.Add(time.Minute))
}
