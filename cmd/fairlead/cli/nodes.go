package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) nodes() *cobra.Command {
	return group(&cobra.Command{
		Use:     "nodes",
		Short:   "List the devices of the network",
		Example: "  fairlead nodes list",
	}, t.nodesList())
}

func (t *tool) nodesList() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List nodes",
		Example: `  fairlead nodes list
  fairlead nodes list --user alice
  fairlead nodes list --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			list, err := decode[apiclient.NodeList](answer(client.ListNodes(cmd.Context(), &apiclient.ListNodesParams{User: ifSet(user)})))
			if err != nil {
				return err
			}
			const header = "ID, NAME, USER, ADDRESSES, ONLINE, LAST SEEN, EXPIRED, TAGS"
			return t.show(list.Nodes, table(header, list.Nodes, func(n apiclient.Node) []string {
				return []string{
					n.ID, n.GivenName, userName(n.User), strings.Join(n.IPAddresses, ","), yesNo(n.Online),
					optionalTimeText(n.LastSeen), yesNo(n.Expired), strings.Join(n.Tags, ","),
				}
			}))
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only nodes of this `user`, by name or id")
	complete(cmd, "user", t.completeUserFlag)
	return cmd
}
