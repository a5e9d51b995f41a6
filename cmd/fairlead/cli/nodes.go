package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) nodes() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "nodes",
		Short: "Manage nodes",
		Example: `  fairlead nodes list
  fairlead nodes expire alices-laptop`,
	}, t.nodesList(), t.nodesShow(), t.nodesTag(), t.nodesApprove(), t.nodesApproveRoutes(), t.nodesExpire(), t.nodesDelete(), t.nodesPresence(), t.nodesEnrol())
	for _, e := range t.nodeEdits() {
		cmd.AddCommand(t.nodeEdit(e))
	}
	return cmd
}

// nodeForms describes the forms in which commands accept a node.
const nodeForms = `Identify a node by name, ID or address. A number is always an ID.`

// nodeRef is the node of a command: its first argument, or --identifier.
type nodeRef struct{ identifier uint64 }

func (n *nodeRef) flag(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&n.identifier, "identifier", 0, "`ID` of the node, instead of the argument")
	complete(cmd, "identifier", cobra.NoFileCompletions)
}

// followedBy accepts the node, unless --identifier is given, and the arguments that more accepts.
func (n *nodeRef) followedBy(more cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n.identifier == 0 {
			first := min(1, len(args))
			if err := takes("node")(cmd, args[:first]); err != nil {
				return err
			}
			args = args[first:]
		}
		return more(cmd, args)
	}
}

// from returns the node and the arguments that follow it.
func (n *nodeRef) from(args []string) (ref string, more []string) {
	if n.identifier != 0 {
		return strconv.FormatUint(n.identifier, 10), args
	}
	return args[0], args[1:]
}

func (t *tool) nodesList() *cobra.Command {
	var user, tag, route, os, search, key string
	var online, offline, waiting bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List nodes",
		Long: `List nodes. The table shows the first address of each node. --output wide shows
more columns, and --output json shows everything.

If you use several filters, a node must match all of them.`,
		Example: `  fairlead nodes list
  fairlead nodes list --user alice --offline
  fairlead nodes list --needs-approval
  fairlead nodes list --search laptop
  fairlead nodes list --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := either(online, offline, "--online and --offline")
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			nodes, err := allPages(func(limit *int, cursor *string) ([]apiclient.Node, *string, error) {
				list, err := decode[apiclient.NodeList](answer(client.ListNodes(cmd.Context(), &apiclient.ListNodesParams{
					User: ifSet(user), Tag: ifSet(tag), Online: wanted, Route: ifSet(route), OS: ifSet(os), Search: ifSet(search), PreAuthKey: ifSet(key), NeedsApproval: ifSet(waiting), Limit: limit, Cursor: cursor,
				})))
				return list.Nodes, list.Next, err
			})
			if err != nil {
				return err
			}
			return t.showNodes(nodes)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&user, "user", "", "only nodes of this `user`, by name or ID")
	flags.StringVar(&tag, "tag", "", "only nodes with this `tag`, such as tag:web")
	flags.BoolVar(&online, "online", false, "only nodes that are connected")
	flags.BoolVar(&offline, "offline", false, "only nodes that are not connected")
	flags.BoolVar(&waiting, "needs-approval", false, "only nodes that wait for approval")
	flags.StringVar(&route, "route", "", "only nodes with a route to this `network`, enabled or not")
	flags.StringVar(&os, "os", "", "only nodes with this operating `system`, such as linux")
	flags.StringVar(&search, "search", "", "only nodes with this `text` in their name, hostname, address, tags or user")
	flags.StringVar(&key, "preauthkey", "", "only nodes that joined with this pre-auth `key`, by ID or prefix")
	complete(cmd, "user", t.completeUserFlag)
	complete(cmd, "tag", t.completeTags)
	for _, name := range []string{"route", "os", "search", "preauthkey"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return t.watchable(cmd)
}

func (t *tool) showNodes(nodes []apiclient.Node) error {
	shown := columns{
		names: "ID, NAME, USER, ADDRESS, STATE, LAST SEEN, TAGS, IPV6, SYSTEM, CLIENT, EXPIRY",
		wide:  "IPV6, SYSTEM, CLIENT, EXPIRY",
		spare: "TAGS, LAST SEEN, USER",
	}
	return showList(t, shown, nodes, func(n apiclient.Node) []string {
		var first, second string
		for i, address := range []*string{&first, &second} {
			if i < len(n.IPAddresses) {
				*address = n.IPAddresses[i]
			}
		}
		return []string{
			n.ID, n.GivenName, userName(n.User), first, nodeState(n), lastSeen(n), strings.Join(n.Tags, ","),
			second, strings.TrimSpace(n.OS + " " + n.Arch), n.ClientVersion, optionalTimeText(n.Expiry),
		}
	})
}

// nodeState returns the state of a node in one word. A node whose key has expired is "expired",
// and one that needs approval is "waiting", whether it is connected or not.
func nodeState(n apiclient.Node) string {
	switch {
	case n.Expired:
		return "expired"
	case n.NeedsApproval:
		return "waiting"
	case n.Online:
		return "online"
	}
	return "offline"
}

func lastSeen(n apiclient.Node) string {
	if n.Online {
		return "now"
	}
	return timeText(n.LastSeen)
}

func (t *tool) nodesShow() *cobra.Command {
	var node nodeRef
	cmd := &cobra.Command{
		Use:   "show <node>",
		Short: "Show a node",
		Long:  "Show a node.\n\n" + nodeForms,
		Example: `  fairlead nodes show alices-laptop
  fairlead nodes show 100.64.0.7 --output yaml`,
		Args:              node.followedBy(takes()),
		ValidArgsFunction: t.completeNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, _ := node.from(args)
			return t.showNode(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.ShowNode(cmd.Context(), ref))
			}, t.nodeDetails)
		},
	}
	node.flag(cmd)
	return cmd
}

// showNode prints the node that an operation returns.
func (t *tool) showNode(call func(*apiclient.Client) ([]byte, error), text func(apiclient.Node) string) error {
	return showResult(t, call, func(r apiclient.NodeResult) apiclient.Node { return r.Node }, text)
}

func (t *tool) nodeDetails(n apiclient.Node) string {
	expiry := "never"
	if n.Expiry != nil {
		expiry = timeText(*n.Expiry)
	}
	rows := [][]string{
		{"ID", n.ID},
		{"Name", n.GivenName},
		{"Hostname", n.Hostname},
		{"User", userName(n.User)},
		{"Tags", strings.Join(n.Tags, ", ")},
		{"Addresses", strings.Join(n.IPAddresses, ", ")},
		{"State", nodeState(n)},
		{"Online", yesNo(n.Online)},
		{"Last seen", lastSeen(n)},
		{"Expiry", expiry},
		{"Approved", yesNo(!n.NeedsApproval)},
		{"Ephemeral", yesNo(n.Ephemeral)},
		{"System", system(n)},
		{"Client", n.ClientVersion},
		{"Joined", timeText(n.CreatedAt)},
		{"Updated", timeText(n.UpdatedAt)},
		{"Created by", userName(n.CreatedBy)},
		{"Advertised routes", strings.Join(n.AvailableRoutes, ", ")},
		{"Enabled routes", strings.Join(n.ApprovedRoutes, ", ")},
		{"Routes in use", strings.Join(n.SubnetRoutes, ", ")},
		{"Machine key", n.MachineKey},
		{"Node key", n.NodeKey},
	}
	for _, e := range t.nodeEdits() {
		if e.row != nil {
			rows = append(rows, e.row(n))
		}
	}
	return details(append(rows, hostDetails(n.Host)...))
}

// details formats names and values, one pair per line.
func details(rows [][]string) string {
	_, text, _ := strings.Cut(table("", rows, func(row []string) []string { return row }), "\n")
	return text
}

func (t *tool) nodesTag() *cobra.Command {
	var (
		nodes             nodeSet
		tags, add, remove []string
		force             *bool
	)
	cmd := &cobra.Command{
		Use:   "tag <node>... (--tags | --add | --remove) <tag:name>",
		Short: "Set the tags of nodes",
		Long: `Set the tags of nodes, replacing their current tags or owner. A tagged node does
not expire by default, and it cannot be moved back to a user without joining
again. --add and --remove keep the other tags of a node. The last tag of a node
cannot be removed.

If there is a policy, its tagOwners must define the tags.

` + nodeForms,
		Example: `  fairlead nodes tag web-1 --tags tag:server
  fairlead nodes tag 7 --tags tag:server,tag:web
  fairlead nodes tag web-1 web-2 --add tag:blue
  fairlead nodes tag --tag tag:web --remove tag:blue`,
		Args:              nodes.takes,
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			work, err := tagWork(tags, add, remove)
			if err != nil {
				return err
			}
			ref, one := nodes.one()
			if !one || len(tags) == 0 {
				return t.changeNodes(cmd.Context(), &nodes, *force || one, work)
			}
			return t.showNode(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.TagNode(cmd.Context(), ref, nil, apiclient.NodeTagsChange{Tags: tags}))
			}, func(n apiclient.Node) string {
				return fmt.Sprintf("Set the tags of node %s to %s\n", n.GivenName, strings.Join(n.Tags, ", "))
			})
		},
	}
	nodes.flags(t, cmd)
	cmd.Flags().StringSliceVar(&tags, "tags", nil, "replace all tags with `tag:name`; repeat the flag or separate several with commas")
	cmd.Flags().StringSliceVar(&add, "add", nil, "add `tag:name` to the tags of a node")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "remove `tag:name` from the tags of a node")
	for _, name := range []string{"tags", "add", "remove"} {
		complete(cmd, name, t.completeTags)
	}
	force = confirmableUnlessNamed(cmd)
	return cmd
}

// tagWork returns the change that one of the flags --tags, --add and --remove asks for.
func tagWork(tags, add, remove []string) (work nodesWork, err error) {
	given := 0
	for _, c := range []struct {
		tags           []string
		action         apiclient.NodesChangeAction
		question, done string
	}{
		{tags, apiclient.NodesChangeActionSetTags, "Set the tags of %%s to %s, replacing their current tags or owner?", "Set the tags of %%s to %s"},
		{add, apiclient.NodesChangeActionAddTags, "Add %[1]s to %%s? Tagged nodes no longer belong to a user.", "Added %[1]s to %%s"},
		{remove, apiclient.NodesChangeActionRemoveTags, "Remove %[1]s from %%s?", "Removed %[1]s from %%s"},
	} {
		if len(c.tags) == 0 {
			continue
		}
		given++
		names := strings.ReplaceAll(strings.Join(c.tags, ", "), "%", "%%")
		work = nodesWork{change: apiclient.NodesChange{Action: c.action, Tags: c.tags}, question: fmt.Sprintf(c.question, names), done: fmt.Sprintf(c.done, names)}
	}
	switch given {
	case 0:
		return work, wrongUsage("missing flag: use --tags, --add or --remove")
	case 1:
		return work, nil
	}
	return work, wrongUsage("use only one of --tags, --add and --remove")
}

func (t *tool) nodesDelete() *cobra.Command {
	var (
		nodes nodeSet
		force *bool
	)
	cmd := &cobra.Command{
		Use:   "delete (<node>... | --user | --tag)",
		Short: "Delete nodes",
		Long: `Delete nodes. They lose access immediately. Their devices can join again as new
nodes, with a new pre-auth key or after approval.

` + nodeForms,
		Example: `  fairlead nodes delete alices-laptop
  fairlead nodes delete --identifier 7,8,9
  fairlead nodes delete --tag tag:ci`,
		Args:              nodes.takes,
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, one := nodes.one()
			if !one {
				return t.changeNodes(cmd.Context(), &nodes, *force, nodesWork{
					change:   apiclient.NodesChange{Action: apiclient.NodesChangeActionDelete},
					question: "Delete %s? They lose access immediately.", done: "Deleted %s",
				})
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			if !*force {
				found, err := decode[apiclient.NodeResult](answer(client.ShowNode(cmd.Context(), ref)))
				if err != nil {
					return err
				}
				n := found.Node
				if err := t.confirm(*force, fmt.Sprintf("Delete node %s (ID %s) of %s? It loses access immediately.", n.GivenName, n.ID, userName(n.User))); err != nil {
					return err
				}
			}
			return t.done("Deleted node %s", ref)(answer(client.DeleteNode(cmd.Context(), ref, nil)))
		},
	}
	nodes.flags(t, cmd)
	force = confirmable(cmd)
	return cmd
}

// completeNode completes the first argument with the names of nodes.
func (t *tool) completeNode(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeNodes(cmd, nil, "")
}

// completeNodes completes every argument with the names of nodes.
func (t *tool) completeNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		list, _ := decode[apiclient.NodeList](answer(client.ListNodes(ctx, nil)))
		for _, n := range list.Nodes {
			names = append(names, n.GivenName)
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
