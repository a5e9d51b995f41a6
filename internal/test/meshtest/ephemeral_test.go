//go:build !race

package meshtest

import (
	"strings"
	"testing"
	"time"
)

func TestEphemeralNodeIsDeletedAfterItsAbsenceAndNotBefore(t *testing.T) {
	t.Parallel()
	// These are the shortest allowed values.
	const timeout, interval = time.Minute, time.Second
	s := Start(t, Config{Binary: fairlead, Set: map[string]string{
		"node.ephemeral.inactivity_timeout": timeout.String(), "node_update_check_interval": interval.String(),
	}})
	s.CLI("users", "create", "alice")
	crowd := NewCrowd(t, s.URL)
	watcher := join(t, crowd, s.PreAuthKey("alice"), 1)[0]
	nodes := map[string]*Node{}
	key := s.PreAuthKey("alice", "--reusable", "--ephemeral")
	for _, name := range []string{"late", "slow", "gone", "leaver"} {
		nodes[name] = crowd.Node(name)
		if err := nodes[name].Register(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	registered := time.Now()
	named := func(name string) func(*View) bool {
		return func(v *View) bool {
			for _, p := range v.Peers {
				if strings.HasPrefix(p.Name, name) {
					return true
				}
			}
			return false
		}
	}
	for _, name := range []string{"gone", "leaver"} {
		nodes[name].Connect()
		ctx := within(t, patience)
		if _, err := nodes[name].Await(ctx, func(v *View) bool { return v.Maps > 0 }); err != nil {
			t.Fatal(err)
		}
		if _, err := watcher.Await(ctx, named(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nodes["leaver"].Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Await(within(t, timeout/2), func(v *View) bool { return !named("leaver")(v) }); err != nil {
		t.Errorf("logout does not delete at once: %v", err)
	}
	nodes["gone"].Disconnect()
	left := time.Now()
	// The node slow opens its first stream just in time.
	if _, err := watcher.Await(within(t, patience), named("slow")); err != nil {
		t.Fatal(err)
	}
	watch(t, timeout-15*time.Second-time.Since(registered), time.Hour, []*Node{watcher})
	nodes["slow"].Connect()
	for name, since := range map[string]time.Time{"late": registered, "gone": left} {
		at, err := watcher.Await(within(t, 2*timeout), func(v *View) bool { return !named(name)(v) })
		if err != nil {
			t.Fatal(err)
		}
		if absent := at.Sub(since); absent < timeout {
			t.Errorf("%s was deleted after only %v of absence", name, absent)
		}
	}
	watch(t, 3*interval, time.Hour, []*Node{watcher})
	watcher.Look(func(v *View) {
		if !named("slow")(v) {
			t.Error("a node that is connected was deleted")
		}
	})
}
