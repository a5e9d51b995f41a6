package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) routesHistory() *cobra.Command {
	var route routeRef
	var limit int
	var prefix string
	cmd := &cobra.Command{
		Use:   "history <route-id>",
		Short: "Show which nodes served a network, and when",
		Long: `Show which nodes were the primary router of a network, newest first.
Specify one of its routes, or use --prefix if it no longer has any. Exit nodes
all serve at the same time, so 0.0.0.0/0 and ::/0 have no history.`,
		Example: `  fairlead routes history 7
  fairlead routes history --route-id 7 --output json
  fairlead routes history --prefix 192.168.7.0/24`,
		Args: func(cmd *cobra.Command, args []string) error {
			if prefix != "" && route.id == 0 {
				return takes()(cmd, args)
			}
			return route.takes(cmd, args)
		},
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			ask := func() (*http.Response, error) {
				if prefix != "" {
					return client.ShowNetworkHistory(ctx, &apiclient.ShowNetworkHistoryParams{Prefix: prefix, Limit: &limit})
				}
				return client.ShowRouteHistory(ctx, route.String(), &apiclient.ShowRouteHistoryParams{Limit: &limit})
			}
			history, err := decode[apiclient.RouteHistory](answer(ask()))
			if err != nil {
				return err
			}
			return showList(t, columns{names: "NODE, ID, FROM, UNTIL"}, history.Terms, func(term apiclient.RouteTerm) []string {
				until := "now"
				if term.Until != nil {
					until = timeText(*term.Until)
				}
				return []string{term.NodeName, term.NodeID, timeText(term.From), until}
			})
		}),
	}
	route.flag(cmd, t)
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum `number` of entries, up to 1000")
	cmd.Flags().StringVar(&prefix, "prefix", "", "`network`, instead of a route")
	complete(cmd, "prefix", cobra.NoFileCompletions)
	cmd.MarkFlagsMutuallyExclusive("prefix", "route-id")
	complete(cmd, "limit", cobra.NoFileCompletions)
	return t.watchable(cmd)
}
