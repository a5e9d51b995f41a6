//go:build !race

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// TestClientsSwitchToANewNoiseKeyWhenTheyRestart is the drill "A leaked Noise key" of docs/recovery.md with clients of all
// versions: each keeps working with the old key until its daemon restarts, and nobody is disconnected.
func TestClientsSwitchToANewNoiseKeyWhenTheyRestart(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	n := startNetwork(t, meshtest.Config{})
	type client struct {
		*clienttest.Daemon
		name string
	}
	var clients []*client
	for i, version := range versions() {
		name := fmt.Sprintf("client-%d", i)
		clients = append(clients, &client{n.join(ctx, clienttest.Options{Version: version}, n.key(), name), name})
	}
	// mustFollow renames all clients, and waits until each knows its new name.
	mustFollow := func(suffix string) {
		t.Helper()
		for i, c := range clients {
			renamed := fmt.Sprintf("client-%d-%s", i, suffix)
			n.CLI("nodes", "rename", c.name, renamed)
			c.name = renamed
			await(ctx, t, c.Daemon, func(s *ipnstate.Status) bool { return strings.HasPrefix(s.Self.DNSName, renamed+".") })
		}
	}
	waiting := func() (names []string) {
		t.Helper()
		var status struct{ Nodes []struct{ Name string } }
		if err := json.Unmarshal([]byte(n.CLI("noise-key", "status", "--output", "json")), &status); err != nil {
			t.Fatal(err)
		}
		for _, node := range status.Nodes {
			names = append(names, node.Name)
		}
		return names
	}

	n.CLI("noise-key", "rotate")
	mustFollow("rotated")
	n.Stop()
	n.Resume()
	mustFollow("reconnected")
	for i, c := range clients {
		if !slices.Contains(waiting(), c.name) {
			t.Errorf("%s uses the new key without a restart", c.name)
		}
		if out, err := n.TryCLI(ctx, "noise-key", "retire"); err == nil {
			t.Fatalf("the old key is retired while %d clients need it: %s", len(clients)-i, out)
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, func() error {
			if names := waiting(); len(names) != len(clients)-i-1 || slices.Contains(names, c.name) {
				return fmt.Errorf("after the restart of %s, %q are waiting", c.name, names)
			}
			return nil
		})
	}
	n.CLI("noise-key", "retire")
	n.Stop()
	n.Resume()
	mustFollow("retired")
}
