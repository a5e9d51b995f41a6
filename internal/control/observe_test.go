package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// measured returns the report of a node with this latency to its relay.
func measured(millis int) control.Measured {
	return control.Measured{NAT: &mesh.NAT{UDP: new(true)}, Latencies: []mesh.Latency{{Region: 1, Micros: int64(millis) * 1000}}}
}

func TestWhatOneReplicaObservesAllKnowAfterItsNextBeat(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 2)
		created, _, err := a.APIKeys.Create(t.Context(), admin, control.NewAPIKey{Access: mesh.Access{Role: mesh.RoleAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		start, before := mesh.TimeOf(time.Now()), a.ledger.World().Rev
		for i := range 60 { // for half an hour
			from := fmt.Sprintf("192.0.2.%d", i)
			a.Observations.Observe(1, measured(10+i))
			a.Observations.APIKeyUsed(created.ID, from)
			pass(5 * time.Second)
			if diff := cmp.Diff(a.Observations.Facts(1), b.Observations.Facts(1)); diff != "" || b.Observations.Facts(1).Latencies[0].Micros != int64(10+i)*1000 {
				t.Fatalf("after %d rounds the replicas know another distance (-a +b):\n%s", i+1, diff)
			}
			k, _ := b.ledger.World().APIKeys.Get(created.ID)
			if use := b.Observations.LastUse(k); use != a.Observations.LastUse(k) || use.From != from {
				t.Fatalf("after %d rounds the key was last used from %s, want %s", i+1, use.From, from)
			}
			pass(25 * time.Second)
		}
		if commits := a.ledger.World().Rev - before; commits < 3 || commits > 8 {
			t.Errorf("%d commits in half an hour", commits)
		}
		if f := b.Observations.Facts(2); f.At != 0 || f.Node != 2 {
			t.Errorf("of a silent node: %+v", f)
		}

		a.kill()
		b.kill()
		again := c.start(t, "c", "")
		k, _ := again.ledger.World().APIKeys.Get(created.ID)
		saved := again.Observations.Facts(1)
		for what, at := range map[string]mesh.Time{"facts": saved.At, "use": again.Observations.LastUse(k).At} {
			if at < start.Add(20*time.Minute) {
				t.Errorf("a restart lost all %s after %v", what, at.Time())
			}
		}
	})
}

// A node that moved has reported newer measurements to its new replica than the old one
// has.
func TestOlderObservationReplacesNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 1)
		pass(3 * time.Second)
		c.setAway(true, a)
		a.Observations.Observe(1, measured(1))
		pass(time.Second)
		b.Observations.Observe(1, measured(2))
		pass(20 * time.Second)
		c.setAway(false, a)
		pass(5 * time.Minute)
		for _, r := range []*replica{a, b} {
			if got := r.Observations.Facts(1).Latencies[0].Micros; got != 2000 {
				t.Errorf("%s shows %d µs", r.id, got)
			}
		}
		if facts, _, _ := a.Observations.Unsaved(store.MaxSeen); len(facts) > 0 {
			t.Errorf("%d superseded observations were not dropped", len(facts))
		}
	})
}

func TestWarningsFollowWhatTheClientSays(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		n, _ := r.ledger.World().Nodes.Get(1)
		warns := func(source, text string) {
			t.Helper()
			if err := r.Clients.SetWarning(t.Context(), n.MachineKey, n.NodeKey, source, text); err != nil {
				t.Fatal(err)
			}
		}
		check := func(want ...string) {
			t.Helper()
			var got []string
			for _, w := range r.Observations.Facts(1).Warnings {
				got = append(got, w.Source)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		}
		warns("dns", "no resolver")
		r.Observations.Observe(1, control.Measured{Flags: []string{"netstack", "warn-router-unhealthy"}})
		check("dns", "warn-router-unhealthy")
		r.Observations.Observe(1, control.Measured{})
		check("dns")
		warns("dns", "")
		check()
		warns("overall", "trouble")
		pass(6 * time.Second)
		err := r.Clients.Report(t.Context(), mesh.Actor{}, control.Report{MachineKey: n.MachineKey, NodeKey: n.NodeKey, DiscoKey: meshgen.DiscoKey(2)})
		if err != nil {
			t.Fatal(err)
		}
		check() // a new disco key means that the client was restarted
		if saved, _ := r.ledger.World().Facts.Get(1); saved == nil || len(saved.Warnings) > 0 {
			t.Errorf("committed with the disco key: %+v", saved)
		}
		if err := r.Clients.SetWarning(t.Context(), n.MachineKey, meshgen.NodeKey(99), "dns", "x"); err == nil {
			t.Error("a node that is not there warns")
		}
	})
}

// Nodes that report as much as possible do not make heartbeats too large.
func TestObservationsAreBounded(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes = 300
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, nodes)
		var much control.Measured
		for i := range 100 {
			much.Latencies = append(much.Latencies, mesh.Latency{Region: 1 + i, Micros: int64(1e6 - i)})
			much.Flags = append(much.Flags, fmt.Sprintf("warn-%d-%s", i, strings.Repeat("é", 1000)))
		}
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.Observations.Observe(id, much)
		}
		f := r.Observations.Facts(1)
		if len(f.Latencies) != 64 || f.Latencies[0].Region != 37 || len(f.Warnings) != 16 {
			t.Errorf("%d latencies from region %d on, %d warnings", len(f.Latencies), f.Latencies[0].Region, len(f.Warnings))
		}
		for _, w := range f.Warnings {
			if len(w.Source) > 64 || len(w.Text) > 512 {
				t.Errorf("%d and %d bytes", len(w.Source), len(w.Text))
			}
		}
		var report store.Report
		report.Facts, report.Uses, report.SessionUses = r.Observations.Unsaved(store.MaxSeen)
		if text, err := json.Marshal(report); err != nil || len(text) > store.MaxSeen+300 || len(report.Facts) == 0 {
			t.Errorf("a report of %d bytes about %d nodes (%v)", len(text), len(report.Facts), err)
		}
		pass(6 * time.Second)
		if events, commands := c.count(t, mesh.KindNodeFacts); events != nodes || commands != (nodes+255)/256 {
			t.Errorf("saved by %d events in %d commands", events, commands)
		}
	})
}

// A node that reports as much as possible, in characters that take two bytes when encoded,
// is published, and does not prevent others from being published.
func TestANodeThatSaysMuchKeepsNobodyQuiet(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 20)
		for id := mesh.NodeID(1); id <= 20; id++ {
			a.Observations.Observe(id, measured(1))
		}
		pass(6 * time.Second) // from now on, only the heartbeat contains the observations
		for id := mesh.NodeID(3); id <= 20; id++ {
			a.Observations.Observe(id, measured(2))
		}
		var much control.Measured
		for i := range 100 {
			much.Latencies = append(much.Latencies, mesh.Latency{Region: 1 + i, Micros: int64(1e6 - i)})
			much.Flags = append(much.Flags, fmt.Sprintf("warn-%d-%s", i, strings.Repeat("\"<&", 1000)))
		}
		for id := mesh.NodeID(1); id <= 2; id++ {
			pass(time.Millisecond)
			a.Observations.Observe(id, much)
			n, _ := a.ledger.World().Nodes.Get(id)
			for i := range 16 {
				if err := a.Clients.SetWarning(t.Context(), n.MachineKey, n.NodeKey, fmt.Sprint(i), strings.Repeat(`"`, 1000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass(5 * time.Second)
		if heard := len(b.Observations.Facts(2).Warnings); heard != 16 {
			t.Errorf("%d warnings of the node that says much", heard)
		}
		for id := mesh.NodeID(3); id <= 20; id++ {
			if got := b.Observations.Facts(id).Latencies[0].Micros; got != 2000 {
				t.Errorf("node %d is %d µs away", id, got)
			}
		}
	})
}

func TestTheEndOfAWarningOutlivesARestart(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *replica){
		"seconds after it": func(_ *testing.T, r *replica) {
			pass(6 * time.Second)
			r.kill()
		},
		"at once, in order": func(t *testing.T, r *replica) {
			if err := r.Observations.SaveAll(t.Context()); err != nil {
				t.Error(err)
			}
			r.kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				c := newCluster(t)
				a := c.start(t, "a", "")
				a.addNodes(t, 1)
				a.Observations.Observe(1, control.Measured{Flags: []string{"warn-router-unhealthy"}})
				pass(6 * time.Second)
				if saved, _ := a.ledger.World().Facts.Get(1); saved == nil || len(saved.Warnings) != 1 {
					t.Fatalf("committed: %+v", saved)
				}
				a.Observations.Observe(1, control.Measured{})
				stop(t, a)
				if f := c.start(t, "b", "").Observations.Facts(1); len(f.Warnings) > 0 {
					t.Errorf("after the restart it warns of %v", f.Warnings)
				}
			})
		})
	}
}
