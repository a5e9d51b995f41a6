package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) noiseKey() *cobra.Command {
	return group(&cobra.Command{
		Use:   "noise-key",
		Short: "Replace the key by which clients recognize the server",
		Example: `  fairlead noise-key rotate
  fairlead noise-key status
  fairlead noise-key retire`,
	}, t.noiseKeyStatus(), t.noiseKeyRotate(), t.noiseKeyRetire())
}

func (t *tool) noiseKeyStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the Noise key, and which nodes still use the previous one",
		Long: `Show the public part of the key by which clients recognize the server. After
"fairlead noise-key rotate", also list the nodes that have not connected with
the new key yet. A client learns the new key when its daemon is restarted
("systemctl restart tailscaled" on Linux) or when its user signs in again.`,
		Example: `  fairlead noise-key status
  fairlead noise-key status --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return t.showNoiseKey(decode[apiclient.NoiseKeyStatus](answer(client.ShowNoiseKey(ctx))))
		}),
	}
}

func (t *tool) noiseKeyRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Create a new Noise key, and accept the previous one as well",
		Long: `Create a new key by which clients recognize the server, for example because
somebody else may have a copy of the old one. All replicas use it within a
second. Nodes stay connected: the server accepts both keys until you retire the
previous one.

A client learns the new key when its daemon is restarted or when its user signs
in again. "fairlead noise-key status" lists the nodes that have not done so.

The secrets from which login links are derived are replaced, too: people who are
signing in at this moment start again. Webhook secrets stay the same.`,
		Example: `  fairlead noise-key rotate`,
		Args:    takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return t.showNoiseKey(decode[apiclient.NoiseKeyStatus](answer(client.RotateNoiseKey(ctx))))
		}),
	}
}

func (t *tool) noiseKeyRetire() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "retire",
		Short: "Stop accepting the previous Noise key",
		Long: `Stop accepting the previous key, and close connections that use it. The command
refuses while nodes or replicas still need that key. With --force, these nodes
are offline until their daemons are restarted.`,
		Example: `  fairlead noise-key retire
  fairlead noise-key retire --force`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return t.showNoiseKey(decode[apiclient.NoiseKeyStatus](answer(client.RetireNoiseKey(ctx, apiclient.NoiseKeyRetirement{Force: &force}))))
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "retire it even if nodes or replicas still need it")
	return cmd
}

func (t *tool) showNoiseKey(s apiclient.NoiseKeyStatus, err error) error {
	if err != nil {
		return err
	}
	if s.PreviousKey == nil || s.RotatedAt == nil {
		return t.show(s, fmt.Sprintf("The server accepts only its current key: %s\n", s.PublicKey))
	}
	t.note("Current key:  %s\nPrevious key: %s, replaced at %s and still accepted", s.PublicKey, *s.PreviousKey, s.RotatedAt.Format(time.RFC3339))
	if len(s.Replicas) > 0 {
		t.note("These replicas do not have the new key; their health checks say why: %s", strings.Join(s.Replicas, ", "))
	}
	if len(s.Nodes) == 0 {
		return t.show(s, "All nodes use the new key. Retire the previous one with: fairlead noise-key retire\n")
	}
	t.note("%s not used the new key yet. Restart the Tailscale client there:", countHave(len(s.Nodes), "node"))
	shown := columns{names: "ID, NAME, STATE, LAST SEEN", spare: "LAST SEEN"}
	return showTable(t, s, shown, s.Nodes, func(n apiclient.NoiseKeyNode) []string {
		state, seen := "offline", "-"
		if n.Online {
			state = "online"
		}
		if n.LastSeen != nil {
			seen = n.LastSeen.Format(time.RFC3339)
		}
		return []string{n.ID, n.Name, state, seen}
	})
}

// countHave returns "1 node has" or "2 nodes have".
func countHave(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " has"
	}
	return count(n, thing) + " have"
}
