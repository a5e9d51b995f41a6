//go:build !race

package e2e

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/meshtest"
)

func TestNodeKeepsItsIdentityWhateverTheClientDoes(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		n := startNetwork(t, meshtest.Config{})
		once, key := n.key(), n.key("--reusable")
		d := n.join(ctx, clienttest.Options{Version: version}, once, "same")
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
			{"the daemon restarts and is told its key again, which is used up", false, func() { restart(); n.up(ctx, d, once, "same") }},
			{"it goes down and up", false, func() { cli("down"); cli("up") }},
			{"it authenticates again", true, func() { n.up(ctx, d, key, "same", "--force-reauth") }},
			{"it expires and authenticates again", true, func() {
				n.change(ctx, http.MethodPost, "same/expire", "")
				awaitState(ctx, t, d, "NeedsLogin")
				n.up(ctx, d, key, "same")
			}},
			{"it logs out and in again", true, func() { cli("logout"); n.up(ctx, d, key, "same") }},
		} {
			step.do()
			awaitState(ctx, t, d, "Running")
			nodes := n.nodes(ctx)
			after := nodes["same"]
			if after.ID != before.ID || !cmp.Equal(after.IPAddresses, before.IPAddresses) || len(nodes) != 1 {
				t.Errorf("%s: the node was %+v, the nodes are %+v", step.name, before, nodes)
			}
			if (after.NodeKey != before.NodeKey) != step.newKey {
				t.Errorf("%s: the node key was %s and is %s", step.name, before.NodeKey, after.NodeKey)
			}
			if got := address(ctx, t, d).String(); got != before.IPAddresses[0] {
				t.Errorf("%s: the client's address is %s, not %s", step.name, got, before.IPAddresses[0])
			}
			before = after
		}
	})
}
