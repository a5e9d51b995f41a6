package meshtest

import (
	"testing"
	"time"
)

func TestSecondStreamTakesOverAndEndOfTheFirstMarksNobodyOffline(t *testing.T) {
	t.Parallel()
	t.Run("same replica", func(t *testing.T) {
		t.Parallel()
		s := Start(t, Config{Binary: fairlead})
		testTakeover(t, s, s)
	})
	t.Run("another replica", func(t *testing.T) {
		t.Parallel()
		r := startReplicas(t, pg, 2, nil)
		testTakeover(t, r.servers[0], r.servers[1])
	})
}

func testTakeover(t *testing.T, from, to *Server) {
	from.CLI("users", "create", "alice")
	nodes := join(t, NewCrowd(t, from.URL), from.PreAuthKey("alice", "--reusable"), 2)
	first, watcher := nodes[0], nodes[1]

	first.Freeze() // the first client does not notice that it is replaced, and does not reconnect
	second := NewCrowd(t, to.URL).Twin(first)
	second.Connect()
	ctx := within(t, patience)
	if _, err := second.Await(ctx, func(v *View) bool { return v.Maps > 0 }); err != nil {
		t.Fatal(err)
	}
	first.Disconnect()
	// This is longer than the server waits before it reports a node offline.
	watch(t, 4*time.Second, 0, []*Node{watcher})
	second.Disconnect()
	if _, err := watcher.Await(ctx, sees(first.ID(), isOffline)); err != nil {
		t.Error(err)
	}
}
