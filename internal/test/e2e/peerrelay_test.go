//go:build !race

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// A client relays through a peer only if its own filter says that it may look for a relay there.
func TestClientFindsTheRelaysThatThePolicyGrants(t *testing.T) {
	ctx := within(t, patience)
	n := startNetwork(t, meshtest.Config{})
	n.save(ctx, `{"tagOwners": {"tag:relay": []}, "acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}`)
	laptop := n.join(ctx, clienttest.Options{}, n.key(), "laptop")
	relay := n.join(ctx, clienttest.Options{}, n.CLI("preauthkeys", "create", "--tags", "tag:relay"), "relay")
	await(ctx, t, laptop, seesOnline("relay"))
	found := func() (string, error) {
		stdout, stderr, code := laptop.CLI(ctx, "debug", "peer-relay-servers")
		if code != 0 {
			return "", fmt.Errorf("exit status %d: %s", code, stderr)
		}
		return stdout, nil
	}
	at := address(ctx, t, relay).String()
	if list, err := found(); err != nil || strings.Contains(list, at) {
		t.Fatalf("relays without a grant (%v): %s", err, list)
	}
	n.save(ctx, `{"tagOwners": {"tag:relay": []}, "acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}],
		"grants": [{"src": ["alice"], "dst": ["tag:relay"], "app": {"tailscale.com/cap/relay": []}}]}`)
	eventually(ctx, t, func() error {
		list, err := found()
		if err == nil && !strings.Contains(list, at) {
			err = fmt.Errorf("the client does not consider %s: %s", at, list)
		}
		return err
	})
}
