package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// drainLook is how often drain checks how many nodes are left. Replicas report their number every two seconds.
const drainLook = 2 * time.Second

func (t *tool) drain() *cobra.Command {
	var cancel, force bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Move the nodes of a replica to the others before maintenance",
		Long: `Move the nodes that are connected to a replica to the other replicas, and wait
until they have left. Then stop or upgrade the replica.

Run this on the machine of the replica, or use --server with the replica's own
URL: a load balancer would choose any replica. Draining makes the replica's
/ready fail, so that load balancers send no more nodes to it. After 5 seconds,
the replica disconnects up to 100 nodes per second. The nodes reconnect to
another replica immediately and are not shown as offline.

Draining ends when the replica restarts, or with --cancel. The other replicas
then return some nodes, unless the load balancer always chooses the same replica
for a node.`,
		Example: `  fairlead drain
  fairlead drain --timeout 10m
  fairlead drain --cancel`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			drain, err := decode[apiclient.Drain](answer(client.DrainReplica(ctx, apiclient.DrainRequest{Draining: !cancel, Force: &force})))
			if err != nil {
				return err
			}
			if cancel {
				return t.show(drain, fmt.Sprintf("Replica %s accepts nodes again\n", drain.Replica))
			}
			t.note("Draining replica %s", drain.Replica)
			ctx, stop := context.WithTimeout(ctx, timeout)
			defer stop()
			if err := t.waitForDrain(ctx, client, drain.Replica); err != nil {
				return err
			}
			return t.show(drain, fmt.Sprintf("No nodes are connected to replica %s. You can stop it now\n", drain.Replica))
		}),
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end draining: accept nodes again")
	cmd.Flags().BoolVar(&force, "force", false, "start even if no other replica can take the nodes")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait until the nodes have left")
	cmd.MarkFlagsMutuallyExclusive("cancel", "force")
	return cmd
}

// waitForDrain waits until a replica reports that it has no nodes.
func (t *tool) waitForDrain(ctx context.Context, client *apiclient.Client, replica string) error {
	last := -1
	for {
		state, err := decode[apiclient.ServerState](answer(client.ShowServer(ctx)))
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, r := range state.Replicas {
			switch {
			case r.ID != replica || !r.Draining: // its next report says that it is draining
			case r.Nodes == 0:
				return nil
			case r.Nodes != last:
				last = r.Nodes
				t.note("%s left", count(r.Nodes, "node"))
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("nodes are still connected, and the replica keeps draining; if their number does not fall, check that the load balancer uses /ready")
		case <-time.After(drainLook):
		}
	}
}
