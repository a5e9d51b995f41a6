//go:build !race

package meshtest

import (
	"slices"
	"testing"
	"time"
)

func TestFrozenNodeIsShownOfflineAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	const nodes, noticed, least = 20, 2 * time.Minute, 10
	s := Start(t, Config{Binary: fairlead})
	s.CLI("users", "create", "alice")
	all := join(t, NewCrowd(t, s.URL), s.PreAuthKey("alice", "--reusable"), nodes)
	frozen, rest := all[0], all[1:]
	frozen.Freeze()
	began := time.Now()
	// Changes continue before and while the server gives up on the frozen node. If changes waited for that
	// node, the first would arrive only after the server has given up.
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	change := 0
	for seen := false; !seen; <-pace.C {
		if time.Since(began) > noticed {
			t.Fatalf("the frozen node is shown online for %v", time.Since(began))
		}
		change++
		i := change % len(rest)
		changed := rest[i]
		if err := changed.Report(t.Context(), endpoint(i, change)); err != nil {
			t.Fatal(err)
		}
		for _, n := range rest {
			if n == changed {
				continue
			}
			if _, err := n.Await(within(t, patience), sees(changed.ID(), func(p Peer) bool { return slices.Contains(p.Endpoints, endpoint(i, change)) })); err != nil {
				t.Fatal(err)
			}
		}
		rest[0].Look(func(v *View) { seen = isOffline(v.Peers[frozen.ID()]) })
	}
	t.Logf("the frozen node is shown offline after %v and %d changes", time.Since(began).Round(time.Millisecond), change)
	if change < least {
		t.Errorf("only %d changes reached the others while the node was frozen, want %d", change, least)
	}
	frozen.Thaw()
	awaitPeers(t, all, nodes-1)
	for _, n := range rest {
		if ends := n.Ends(); len(ends) > 0 {
			t.Errorf("streams of %s ended: %q", n.Hostname, ends)
		}
	}
}
