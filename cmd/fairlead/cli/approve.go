package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) nodesApprove() *cobra.Command {
	var (
		nodes    nodeSet
		withdraw bool
		force    *bool
	)
	cmd := &cobra.Command{
		Use:   "approve (<node>... | --user | --tag)",
		Short: "Approve nodes that wait for approval",
		Long: `Approve nodes that wait for approval. Their devices get access immediately,
without another login. New nodes wait if node.approval_required is set.

With --withdraw, nodes lose access until you approve them again. They keep their
names and addresses.

` + nodeForms,
		Example: `  fairlead nodes list --needs-approval
  fairlead nodes approve alices-laptop
  fairlead nodes approve --user alice
  fairlead nodes approve alices-laptop --withdraw`,
		Args:              nodes.takes,
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, one := nodes.one()
			if !one {
				return t.changeNodes(cmd.Context(), &nodes, *force, approvalWork(withdraw))
			}
			return t.showNode(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.SetNodeApproval(cmd.Context(), ref, nil, apiclient.SetNodeApprovalJSONRequestBody{Approved: new(!withdraw)}))
			}, func(n apiclient.Node) string {
				if n.NeedsApproval {
					return fmt.Sprintf("Withdrew the approval of node %s\n", n.GivenName)
				}
				return fmt.Sprintf("Approved node %s\n", n.GivenName)
			})
		},
	}
	nodes.flags(t, cmd)
	cmd.Flags().BoolVar(&withdraw, "withdraw", false, "withdraw the approval instead")
	force = confirmableUnlessNamed(cmd)
	return cmd
}

// approvalWork returns the change that approves nodes, or withdraws their approval.
func approvalWork(withdraw bool) nodesWork {
	if withdraw {
		return nodesWork{
			change:   apiclient.NodesChange{Action: apiclient.NodesChangeActionWithdrawApproval},
			question: "Withdraw the approval of %s? They lose access immediately.", done: "Withdrew the approval of %s",
			skips: func(n apiclient.Node) bool { return n.NeedsApproval }, skipped: "%d had no approval",
		}
	}
	return nodesWork{
		change:   apiclient.NodesChange{Action: apiclient.NodesChangeActionApprove},
		question: "Approve %s?", done: "Approved %s",
		skips: func(n apiclient.Node) bool { return !n.NeedsApproval }, skipped: "%d had been approved already",
	}
}
