//go:build !race

package meshtest

import (
	"slices"
	"testing"
	"time"
)

func TestFrozenNodeIsShownOfflineAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	const nodes, noticed, prompt = 20, 20 * time.Second, time.Second
	s := Start(t, Config{Binary: fairlead})
	s.CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, s.URL), s.PreAuthKey("alice", "--reusable"), nodes)
	frozen, rest := all[0], all[1:]
	frozen.Freeze()
	began := time.Now()
	// Changes flow while nobody knows yet, and while the server gives up.
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	change := 0
	for seen := false; !seen; <-pace.C {
		if time.Since(began) > noticed {
			t.Fatalf("the frozen node is shown online for %v", time.Since(began))
		}
		change++
		i := change % len(rest)
		changed, since := rest[i], time.Now()
		if err := changed.Report(t.Context(), endpoint(i, change)); err != nil {
			t.Fatal(err)
		}
		for _, n := range rest {
			if n == changed {
				continue
			}
			at, err := n.Await(within(t, patience), sees(changed.ID(), func(p Peer) bool { return slices.Contains(p.Endpoints, endpoint(i, change)) }))
			if err != nil {
				t.Fatal(err)
			}
			if took := at.Sub(since); took > prompt {
				t.Errorf("a change took %v to reach %s while another node was frozen", took, n.Hostname)
			}
		}
		rest[0].Look(func(v *View) { seen = isOffline(v.Peers[frozen.ID()]) })
	}
	t.Logf("the frozen node is shown offline after %v and %d changes", time.Since(began).Round(time.Millisecond), change)
	frozen.Thaw()
	awaitPeers(t, all, nodes-1)
	for _, n := range rest {
		if ends := n.Ends(); len(ends) > 0 {
			t.Errorf("streams of %s ended: %q", n.Hostname, ends)
		}
	}
}
