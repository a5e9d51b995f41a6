//go:build !race

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

func TestNodeKeepsItsIdentityWhateverTheClientDoes(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		n := startNetwork(t, meshtest.Config{})
		once, key := n.key(), n.key("--reusable")
		d := n.join(ctx, clienttest.Options{Version: version}, once, "same")
		// Without --reset, "up" requires all changed settings to be repeated. A client whose
		// settings change this quickly may not have stored the latest ones yet.
		again := func(key string, args ...string) {
			t.Helper()
			n.up(ctx, d, key, "same", append(args, "--reset")...)
		}
		cli := func(args ...string) {
			t.Helper()
			if stdout, stderr, code := d.CLI(ctx, args...); code != 0 {
				t.Fatalf("tailscale %v: code %d: %s%s", args, code, stdout, stderr)
			}
		}
		restart := func() {
			t.Helper()
			if err := d.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		before := n.nodes(ctx)["same"]
		for _, step := range []struct {
			name   string
			newKey bool
			do     func()
		}{
			{"the daemon restarts", false, restart},
			{"the daemon restarts and is told its key again, which is used up", false, func() { restart(); again(once) }},
			{"it goes down and up", false, func() { cli("down"); cli("up") }},
			{"it authenticates again", true, func() { again(key, "--force-reauth") }},
			{"it expires and authenticates again", true, func() {
				n.change(ctx, http.MethodPost, "same/expire", "")
				awaitState(ctx, t, d, "NeedsLogin")
				again(key)
			}},
			{"it logs out and in again", true, func() { cli("logout"); again(key) }},
		} {
			step.do()
			awaitState(ctx, t, d, "Running")
			nodes := n.nodes(ctx)
			if step.newKey { // a client keeps its old key for a moment
				eventually(ctx, t, func() error {
					if nodes = n.nodes(ctx); nodes["same"].NodeKey == before.NodeKey {
						return fmt.Errorf("%s: the node key is still %s", step.name, before.NodeKey)
					}
					return nil
				})
				awaitState(ctx, t, d, "Running")
			}
			after := nodes["same"]
			if after.ID != before.ID || !cmp.Equal(after.IPAddresses, before.IPAddresses) || len(nodes) != 1 {
				t.Errorf("%s: the node was %+v, the nodes are %+v", step.name, before, nodes)
			}
			if !step.newKey && after.NodeKey != before.NodeKey {
				t.Errorf("%s: the node key was %s and is %s", step.name, before.NodeKey, after.NodeKey)
			}
			if got := address(ctx, t, d).String(); got != before.IPAddresses[0] {
				t.Errorf("%s: the client's address is %s, not %s", step.name, got, before.IPAddresses[0])
			}
			before = after
		}
	})
}
