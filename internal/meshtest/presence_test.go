package meshtest

import (
	"testing"
	"time"
)

func TestSecondStreamTakesOverAndEndOfTheFirstMarksNobodyOffline(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Binary: fairlead})
	s.CLI("users", "create", "alice")
	nodes := join(t, NewCrowd(t, s.URL), s.PreAuthKey("alice", "--reusable"), 2)
	first, watcher := nodes[0], nodes[1]

	first.Freeze() // it does not notice that it is replaced, and does not come back
	second := first.Twin()
	second.Connect()
	ctx := within(t, patience)
	if _, err := second.Await(ctx, func(v *View) bool { return v.Maps > 0 }); err != nil {
		t.Fatal(err)
	}
	first.Disconnect()
	// Longer than the server waits before it tells that a node is gone.
	probe := time.After(4 * time.Second)
	<-probe
	watcher.Look(func(v *View) {
		if all := v.Absences(); len(all) != 0 {
			t.Errorf("the node was shown offline: %v", all)
		}
	})
	second.Disconnect()
	if _, err := watcher.Await(ctx, sees(first.ID(), isOffline)); err != nil {
		t.Error(err)
	}
}
