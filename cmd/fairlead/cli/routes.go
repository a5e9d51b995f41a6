package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) routes() *cobra.Command {
	return group(&cobra.Command{
		Use:   "routes",
		Short: "Manage routes through nodes",
		Example: `  fairlead routes list
  fairlead routes enable --route-id 7`,
	}, t.routesList(), t.routesEnable(), t.routesDisable(), t.routesPrefer(), t.routesDelete(), t.routesHistory())
}

// routeRef is the route of a command: its argument, or --route-id.
type routeRef struct{ id uint64 }

func (r *routeRef) flag(cmd *cobra.Command, t *tool) {
	cmd.Flags().Uint64Var(&r.id, "route-id", 0, "`ID` of the route, instead of the argument")
	complete(cmd, "route-id", t.completeRoutes)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return t.completeRoutes(cmd, args, start)
	}
}

// takes accepts the route, unless --route-id is given.
func (r *routeRef) takes(cmd *cobra.Command, args []string) error {
	if r.id != 0 {
		return takes()(cmd, args)
	}
	if err := takes("route-id")(cmd, args); err != nil {
		return err
	}
	var err error
	if r.id, err = strconv.ParseUint(args[0], 10, 64); err != nil || r.id == 0 {
		return fmt.Errorf("invalid route ID %q; list routes with: fairlead routes list", args[0])
	}
	return nil
}

func (r *routeRef) String() string { return strconv.FormatUint(r.id, 10) }

func (t *tool) routesList() *cobra.Command {
	var node, prefix string
	var enabled, disabled, primary bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List routes",
		Long: `List routes. A route is one prefix of one node.

Nodes can use a route that is enabled and advertised. If several nodes have the
same prefix, one of them is primary: peers use that one, and another takes over
when it goes offline.`,
		Example: `  fairlead routes list
  fairlead routes list --disabled
  fairlead routes list --prefix 192.168.7.0/24
  fairlead routes list --node web-1 --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := either(enabled, disabled, "--enabled and --disabled")
			if err != nil {
				return err
			}
			params := apiclient.ListRoutesParams{Node: ifSet(node), Prefix: ifSet(prefix), Enabled: wanted}
			if primary {
				params.Primary = &primary
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			routes, err := allPages(func(limit *int, cursor *string) ([]apiclient.Route, *string, error) {
				params.Limit, params.Cursor = limit, cursor
				list, err := decode[apiclient.RouteList](answer(client.ListRoutes(cmd.Context(), &params)))
				return list.Routes, list.Next, err
			})
			if err != nil {
				return err
			}
			shown := columns{names: "ID, NODE, PREFIX, STATUS, APPROVED BY, ADVERTISED, PRIMARY, PREFERENCE", spare: "PREFERENCE, APPROVED BY, ADVERTISED, PRIMARY"}
			return showList(t, shown, routes, func(r apiclient.Route) []string {
				return []string{r.ID, r.Node.GivenName, r.Prefix, routeStatus(r), approver(r), yesNo(r.Advertised), yesNo(r.IsPrimary), strconv.Itoa(r.Preference)}
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "only routes of this `node`, by name, ID or address")
	cmd.Flags().StringVar(&prefix, "prefix", "", "only routes to this `network`")
	cmd.Flags().BoolVar(&enabled, "enabled", false, "only enabled routes")
	cmd.Flags().BoolVar(&disabled, "disabled", false, "only disabled routes, such as those waiting for approval")
	cmd.Flags().BoolVar(&primary, "primary", false, "only routes that peers are using")
	complete(cmd, "node", t.completeNodes)
	complete(cmd, "prefix", cobra.NoFileCompletions)
	return t.watchable(cmd)
}

func routeStatus(r apiclient.Route) string {
	if r.Enabled {
		return "enabled"
	}
	return "disabled"
}

// approver returns who approved a route: an administrator, or a version of the
// policy.
func approver(r apiclient.Route) string {
	if r.PolicyVersion != "" {
		return fmt.Sprintf("%s version %s", r.ApprovedBy, r.PolicyVersion)
	}
	return cmp.Or(string(r.ApprovedBy), "-")
}

// routeText returns the name of a route for use in a sentence.
func routeText(r apiclient.Route) string {
	return fmt.Sprintf("route %s to %s through %s", r.ID, r.Prefix, r.Node.GivenName)
}

// showRoute prints the route that an operation returns.
func (t *tool) showRoute(call func(*apiclient.Client) ([]byte, error), text func(apiclient.Route) string) error {
	return showResult(t, call, func(r apiclient.RouteResult) apiclient.Route { return r.Route }, text)
}

func (t *tool) routesEnable() *cobra.Command {
	var route routeRef
	cmd := &cobra.Command{
		Use:   "enable <route-id>",
		Short: "Enable a route",
		Long: `Enable a route, so that nodes can use it if the policy allows them to. An exit
node advertises 0.0.0.0/0 and ::/0; enabling one of them enables both.`,
		Example: `  fairlead routes enable 7
  fairlead routes enable --route-id 7`,
		Args: route.takes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.showRoute(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.EnableRoute(cmd.Context(), route.String(), nil))
			}, func(r apiclient.Route) string { return "Enabled " + routeText(r) + "\n" })
		},
	}
	route.flag(cmd, t)
	return cmd
}

func (t *tool) routesDisable() *cobra.Command {
	var route routeRef
	var force *bool
	cmd := &cobra.Command{
		Use:   "disable <route-id>",
		Short: "Disable a route",
		Long: `Disable a route, so that no node can use it, even if autoApprovers in the policy
would approve it. An exit node advertises 0.0.0.0/0 and ::/0; disabling one of
them disables both.`,
		Example: `  fairlead routes disable 7
  fairlead routes disable --route-id 7`,
		Args: route.takes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.confirmRoute(cmd, *force || !t.Terminal, route, "Disable %s? No node can use it any more."); err != nil {
				return err
			}
			return t.showRoute(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.DisableRoute(cmd.Context(), route.String(), nil))
			}, func(r apiclient.Route) string { return "Disabled " + routeText(r) + "\n" })
		},
	}
	route.flag(cmd, t)
	force = skippable(cmd)
	return cmd
}

// confirmRoute asks a question that names a route.
func (t *tool) confirmRoute(cmd *cobra.Command, force bool, route routeRef, question string) error {
	if force {
		return nil
	}
	client, err := t.connect()
	if err != nil {
		return err
	}
	list, err := decode[apiclient.RouteList](answer(client.ListRoutes(cmd.Context(), nil)))
	if err != nil {
		return err
	}
	which := "route " + route.String()
	for _, r := range list.Routes {
		if r.ID == route.String() {
			which = printable(routeText(r))
		}
	}
	return t.confirm(force, fmt.Sprintf(question, which))
}

func (t *tool) routesPrefer() *cobra.Command {
	var route routeRef
	var preference int
	cmd := &cobra.Command{
		Use:   "prefer <route-id> --preference <number>",
		Short: "Set the failover priority of a router",
		Long: `Set the failover priority of a router. If several nodes have the same prefix and
the primary goes offline, the reachable node with the highest preference takes
over. Preferences range from -1000 to 1000; the default is 0. The current
primary does not change.`,
		Example: `  fairlead routes prefer 7 --preference 10
  fairlead routes prefer --route-id 8 --preference -10`,
		Args: route.takes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("preference") {
				return wrongUsage("missing flag --preference")
			}
			return t.showRoute(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.ChangeRoute(cmd.Context(), route.String(), nil, apiclient.RouteChange{Preference: preference}))
			}, func(r apiclient.Route) string {
				return fmt.Sprintf("Route %s to %s through %s now has preference %d\n", r.ID, r.Prefix, r.Node.GivenName, r.Preference)
			})
		},
	}
	route.flag(cmd, t)
	cmd.Flags().IntVar(&preference, "preference", 0, "`number` from -1000 to 1000; the highest takes over first")
	complete(cmd, "preference", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) routesDelete() *cobra.Command {
	var route routeRef
	var force *bool
	cmd := &cobra.Command{
		Use:   "delete <route-id>",
		Short: "Delete a route that is no longer advertised",
		Long: `Delete a route that its node no longer advertises, along with its approval. If
the node advertises the prefix again, it becomes a new route.`,
		Example: `  fairlead routes delete 7
  fairlead routes delete --route-id 7`,
		Args: route.takes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.confirmRoute(cmd, *force, route, "Delete %s and its approval?"); err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			return t.done("Deleted route %s", route.String())(answer(client.DeleteRoute(cmd.Context(), route.String(), nil)))
		},
	}
	route.flag(cmd, t)
	force = confirmable(cmd)
	return cmd
}

func (t *tool) nodesApproveRoutes() *cobra.Command {
	var nodes nodeSet
	var routes []string
	var all bool
	cmd := &cobra.Command{
		Use:   "approve-routes <node>... (--routes <network> | --all)",
		Short: "Set the enabled routes of a node",
		Long: `Enable exactly these routes of a node, including routes that it does not
advertise yet, and disable all others. --routes "" disables all routes. For an
exit node, either of 0.0.0.0/0 and ::/0 stands for both.

With --all, enable all routes that the nodes advertise.

` + nodeForms,
		Example: `  fairlead nodes approve-routes web-1 --routes 192.168.7.0/24,10.1.0.0/16
  fairlead nodes approve-routes web-1 --routes 0.0.0.0/0
  fairlead nodes approve-routes web-1 --routes ""
  fairlead nodes approve-routes --tag tag:router --all`,
		Args:              nodes.takes,
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, one := nodes.one()
			switch given := cmd.Flags().Changed("routes"); {
			case given && all:
				return wrongUsage("use only one of --routes and --all")
			case all:
				return t.changeNodes(cmd.Context(), &nodes, true, nodesWork{
					change: apiclient.NodesChange{Action: apiclient.NodesChangeActionApproveRoutes}, done: "Enabled all advertised routes of %s",
				})
			case !given:
				return wrongUsage("missing flag: use --routes or --all")
			case !one:
				return wrongUsage("--routes takes only one node; use --all for several")
			}
			return t.showNode(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.ApproveRoutes(cmd.Context(), ref, nil, apiclient.NodeRoutesChange{Routes: append([]string{}, routes...)}))
			}, func(n apiclient.Node) string {
				return fmt.Sprintf("Enabled routes of node %s: %s\n", n.GivenName, cmp.Or(strings.Join(n.ApprovedRoutes, ", "), "none"))
			})
		},
	}
	nodes.flags(t, cmd)
	cmd.Flags().BoolVar(&all, "all", false, "enable all routes that the nodes advertise")
	cmd.Flags().StringSliceVar(&routes, "routes", nil, "`networks` to enable; repeat the flag or separate several with commas")
	complete(cmd, "routes", cobra.NoFileCompletions)
	return cmd
}

// completeRoutes completes with the ids of routes.
func (t *tool) completeRoutes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		list, _ := decode[apiclient.RouteList](answer(client.ListRoutes(ctx, nil)))
		for _, r := range list.Routes {
			ids = append(ids, r.ID+"\t"+cell(r.Prefix+" through "+r.Node.GivenName))
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}
