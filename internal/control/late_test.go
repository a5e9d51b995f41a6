package control_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// A node that changes all the time causes few commits, is never refused, does not block
// others, and its last report is committed.
func TestNodeThatReportsAllTheTimeCommitsAtItsPace(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		put(t, s, mesh.Node{}, mesh.Node{})
		report := func(id mesh.NodeID, i int) {
			t.Helper()
			n := s.node(t, id)
			err := s.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
				MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: &control.Host{Hostname: fmt.Sprintf("name-%d", i)},
				Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i+1))},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var saving sync.WaitGroup
		saving.Go(func() { _ = s.Clients.SaveReports(ctx) })
		defer saving.Wait()
		defer cancel()
		begin := s.ledger.World().Rev
		const minutes, perSecond = 10, 10
		for i := range minutes * 60 * perSecond {
			report(1, i)
			pass(time.Second / perSecond)
		}
		last := minutes*60*perSecond - 1
		commits := int(s.ledger.World().Rev - begin)
		t.Logf("%d reports in %d minutes: %d commits", last+1, minutes, commits)
		if limit := 60 + minutes*60 + 30 + minutes/5; commits > limit || commits < minutes*60 {
			t.Errorf("%d commits, want at most %d", commits, limit)
		}
		report(2, 7)
		if got := s.node(t, 2).Hostname; got != "name-7" {
			t.Errorf("another node is called %q", got)
		}
		pass(2 * time.Second)
		if got := s.node(t, 1).Net.Endpoints; len(got) != 1 || int(got[0].Port()) != last+1 {
			t.Errorf("endpoints %v, want port %d", got, last+1)
		}
		pass(5 * time.Minute)
		if got, want := s.node(t, 1).Hostname, fmt.Sprintf("name-%d", last); got != want {
			t.Errorf("hostname %q, want %q", got, want)
		}
		rev := s.ledger.World().Rev
		pass(10 * time.Minute)
		if now := s.ledger.World().Rev; now != rev {
			t.Errorf("%d commits although nothing changes", now-rev)
		}
	})
}

// Waiting reports are committed before the server stops, unless the node has withdrawn
// them.
func TestReportsThatWaitAreCommittedAtTheEnd(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{})
	for i := range 40 {
		announce(t, s, 1, fmt.Sprintf("10.%d.0.0/16", i))
	}
	committed := s.node(t, 1).RoutableIPs
	if slices.Equal(committed, nets("10.39.0.0/16")) {
		t.Fatal("nothing waits")
	}
	rev := s.ledger.World().Rev
	announce(t, s, 1, committed[0].String())
	if err := s.Clients.SaveAllReports(t.Context()); err != nil || s.ledger.World().Rev != rev {
		t.Errorf("a change that was taken back is committed: %v", err)
	}
	announce(t, s, 1, "10.77.0.0/16")
	if err := s.Clients.SaveAllReports(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.node(t, 1).RoutableIPs; !slices.Equal(got, nets("10.77.0.0/16")) {
		t.Errorf("routes %v", got)
	}
}

// A report that was accepted is not lost if the database is unavailable when it is due, and
// waits no longer than the outage.
func TestLateReportsOutliveAnOutage(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		n, _ := r.ledger.World().Nodes.Get(1)
		report := func(host *control.Host, port uint16) error {
			return r.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
				MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: host,
				Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port)},
			})
		}
		for i := range 31 {
			if err := report(&control.Host{Hostname: fmt.Sprintf("name-%d", i)}, 1); err != nil {
				t.Fatal(err)
			}
		}
		pass(5 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var saving sync.WaitGroup
		defer saving.Wait()
		defer cancel()
		c.setAway(true, r)
		if err := report(nil, 2); err == nil {
			t.Fatal("the database is not away")
		}
		saving.Go(func() { _ = r.Clients.SaveReports(ctx) })
		pass(time.Minute)
		c.setAway(false, r)
		pass(10 * time.Second)
		if n, _ := r.ledger.World().Nodes.Get(1); n.Hostname != "name-30" || n.Net.Endpoints[0].Port() != 2 {
			t.Errorf("%q at %v", n.Hostname, n.Net.Endpoints)
		}
	})
}

// A commit contains what the node has reported by then: an older report never follows a
// newer one.
func TestCommitTakesTheNewestReport(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		n, _ := r.ledger.World().Nodes.Get(1)
		report := func(i int) {
			err := r.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
				MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: &control.Host{Hostname: fmt.Sprintf("name-%d", i)},
			})
			if err != nil {
				t.Error(err)
			}
		}
		for i := range 31 {
			report(i)
		}
		pass(5 * time.Minute)
		var newer sync.WaitGroup
		c.mu.Lock()
		c.while = func() {
			newer.Go(func() { report(32) })
			<-time.After(time.Millisecond) // gives the newer report time to arrive
		}
		c.mu.Unlock()
		report(31)
		newer.Wait()
		if n, _ := r.ledger.World().Nodes.Get(1); n.Hostname != "name-32" {
			t.Errorf("hostname %q", n.Hostname)
		}
	})
}

// Routes are committed faster than the rest of a node's description, and not together with
// it.
func TestRoutesDoNotWaitForTheHostname(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		put(t, s, mesh.Node{})
		ctx, cancel := context.WithCancel(t.Context())
		var saving sync.WaitGroup
		saving.Go(func() { _ = s.Clients.SaveReports(ctx) })
		defer saving.Wait()
		defer cancel()
		n := s.node(t, 1)
		for i := range 40 {
			err := s.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
				MachineKey: n.MachineKey, NodeKey: n.NodeKey,
				Host: &control.Host{Hostname: fmt.Sprintf("name-%d", i), RoutableIPs: nets(fmt.Sprintf("10.%d.0.0/16", i))},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		pass(11 * time.Second)
		if got := s.node(t, 1); got.Hostname != "name-29" || !slices.Equal(got.RoutableIPs, nets("10.39.0.0/16")) {
			t.Errorf("soon: %q with %v", got.Hostname, got.RoutableIPs)
		}
		pass(5 * time.Minute)
		if got := s.node(t, 1).Hostname; got != "name-39" {
			t.Errorf("later: %q", got)
		}
	})
}
