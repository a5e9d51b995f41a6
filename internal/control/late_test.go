package control_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// A node that changes all the time causes few commits, is never refused, does not hold
// up others, and its last words are committed.
func TestNodeThatReportsAllTheTimeCommitsAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		put(t, s, mesh.Node{}, mesh.Node{})
		report := func(id mesh.NodeID, i int) {
			t.Helper()
			n := s.node(t, id)
			err := s.Report(t.Context(), mesh.Actor{}, control.Report{
				MachineKey: n.MachineKey, NodeKey: n.NodeKey, Host: &control.Host{Hostname: fmt.Sprintf("name-%d", i)},
				Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i+1))},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var saving sync.WaitGroup
		saving.Go(func() { _ = s.SaveReports(ctx) })
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
		pass(time.Hour)
		if now := s.ledger.World().Rev; now != rev {
			t.Errorf("%d commits although nothing changes", now-rev)
		}
	})
}

// What waits is committed before the server stops; what a node took back is not.
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
	if err := s.SaveAllReports(t.Context()); err != nil || s.ledger.World().Rev != rev {
		t.Errorf("a change that was taken back is committed: %v", err)
	}
	announce(t, s, 1, "10.77.0.0/16")
	if err := s.SaveAllReports(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.node(t, 1).RoutableIPs; !slices.Equal(got, nets("10.77.0.0/16")) {
		t.Errorf("routes %v", got)
	}
}
