package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// nodeEdit is a command that changes one node, given by its first argument or --identifier.
type nodeEdit struct {
	use, short, long, example string
	// flags adds flags besides --identifier; nil adds none.
	flags func(*cobra.Command)
	// args validates the arguments after the node, and the flags.
	args cobra.PositionalArgs
	// call requests the change, and done describes the result.
	call func(ctx context.Context, client *apiclient.Client, node string, args []string) ([]byte, error)
	done func(node string, n apiclient.Node) string
	// row returns the line of "nodes show" about what the command changes: its name and its value. It is nil
	// if nodeDetails prints that line.
	row func(n apiclient.Node) []string
}

// nodeEdits returns the commands that change one node. Each is defined completely here.
//
// long: it has an entry for each command
func (t *tool) nodeEdits() []nodeEdit {
	var reset bool
	var user, v4, v6 string
	return []nodeEdit{
		{
			use:   "rename <node> (<new-name> | --reset)",
			short: "Rename a node",
			long: `Rename a node. The new name becomes its DNS name and stays the same when the
device changes its hostname. A name has at most 63 letters, digits and hyphens.`,
			example: `  fairlead nodes rename localhost-3 web-1
  fairlead nodes rename 100.64.0.7 printer
  fairlead nodes rename printer --reset`,
			flags: func(cmd *cobra.Command) {
				cmd.Flags().BoolVar(&reset, "reset", false, "use the hostname of the device again")
			},
			args: func(cmd *cobra.Command, args []string) error {
				if reset {
					return takes()(cmd, args)
				}
				return takes("new-name")(cmd, args)
			},
			call: func(ctx context.Context, client *apiclient.Client, node string, args []string) ([]byte, error) {
				if reset {
					return answer(client.ResetNodeName(ctx, node, nil))
				}
				return answer(client.RenameNode(ctx, node, args[0], nil))
			},
			done: func(node string, n apiclient.Node) string {
				return fmt.Sprintf("Renamed node %s to %s\n", node, n.GivenName)
			},
		},
		{
			use:   "move <node> --user <user>",
			short: "Move a node to another user",
			long: `Move a node to another user. It keeps its name, addresses and expiry. The policy
rules for the new owner apply immediately. Tagged nodes belong to their tags and
cannot be moved.`,
			example: `  fairlead nodes move laptop --user bob
  fairlead nodes move 7 --user bob`,
			flags: func(cmd *cobra.Command) {
				cmd.Flags().StringVar(&user, "user", "", "new owner: `name` or ID of a user")
				complete(cmd, "user", t.completeUserFlag)
			},
			args: func(cmd *cobra.Command, args []string) error {
				if user == "" && len(args) == 0 {
					return wrongUsage("missing flag --user")
				}
				return takes()(cmd, args)
			},
			call: func(ctx context.Context, client *apiclient.Client, node string, _ []string) ([]byte, error) {
				return answer(client.MoveNode(ctx, node, &apiclient.MoveNodeParams{}, apiclient.NodeOwnerChange{User: &user}))
			},
			done: func(_ string, n apiclient.Node) string {
				return fmt.Sprintf("Moved node %s to user %s\n", n.GivenName, user)
			},
		},
		{
			use:   "address <node> [--ipv4 <address>] [--ipv6 <address>]",
			short: "Change the addresses of a node",
			long: `Change the addresses of a node. An address must be unused and lie within the
prefix of the network. The node keeps it until it is deleted. Connections to the
old address are interrupted.`,
			example: `  fairlead nodes address web-1 --ipv4 100.64.7.1
  fairlead nodes address 7 --ipv4 100.64.7.1 --ipv6 fd7a:115c:a1e0::701`,
			flags: func(cmd *cobra.Command) {
				cmd.Flags().StringVar(&v4, "ipv4", "", "new IPv4 `address`")
				cmd.Flags().StringVar(&v6, "ipv6", "", "new IPv6 `address`")
			},
			args: func(cmd *cobra.Command, args []string) error {
				if v4 == "" && v6 == "" && len(args) == 0 {
					return wrongUsage("missing flag: use --ipv4 or --ipv6")
				}
				return takes()(cmd, args)
			},
			call: func(ctx context.Context, client *apiclient.Client, node string, _ []string) ([]byte, error) {
				return answer(client.SetNodeAddresses(ctx, node, nil, apiclient.NodeAddressesChange{Ipv4: ifSet(v4), Ipv6: ifSet(v6)}))
			},
			done: func(_ string, n apiclient.Node) string {
				return fmt.Sprintf("Set the addresses of node %s to %s\n", n.GivenName, strings.Join(n.IPAddresses, ", "))
			},
		},
		{
			use:   "note <node> [<text>]",
			short: "Show, set or remove the note on a node",
			long: `Show the note on a node, or set it to a text of up to 1,000 characters. An empty
text removes it. Only administrators see notes; devices never receive them.`,
			example: `  fairlead nodes note web-1
  fairlead nodes note web-1 "Replace the disk in March."
  fairlead nodes note web-1 ""`,
			args: func(_ *cobra.Command, args []string) error {
				if len(args) > 1 {
					return fmt.Errorf("unexpected argument %q; put the text in quotes", args[1])
				}
				return nil
			},
			call: func(ctx context.Context, client *apiclient.Client, node string, args []string) ([]byte, error) {
				if len(args) == 0 {
					return answer(client.ShowNode(ctx, node))
				}
				return answer(client.SetNodeNote(ctx, node, nil, apiclient.SetNodeNoteJSONRequestBody{Text: &args[0]}))
			},
			done: func(_ string, n apiclient.Node) string {
				if n.Note == nil {
					return fmt.Sprintf("Node %s has no note\n", n.GivenName)
				}
				return fmt.Sprintf("%s\n(%s, %s)\n", strings.ReplaceAll(n.Note.Text, "\t", "    "), n.Note.Author, timeText(n.Note.Time))
			},
			row: func(n apiclient.Node) []string {
				if n.Note == nil {
					return []string{"Note", ""}
				}
				return []string{"Note", fmt.Sprintf("%s (%s, %s)", strings.Join(strings.Fields(n.Note.Text), " "), n.Note.Author, timeText(n.Note.Time))}
			},
		},
	}
}

func (t *tool) nodeEdit(e nodeEdit) *cobra.Command {
	var node nodeRef
	cmd := &cobra.Command{
		Use:               e.use,
		Short:             e.short,
		Long:              e.long + "\n\n" + nodeForms,
		Example:           e.example,
		Args:              node.followedBy(e.args),
		ValidArgsFunction: t.completeNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, more := node.from(args)
			return t.showNode(func(client *apiclient.Client) ([]byte, error) { return e.call(cmd.Context(), client, ref, more) },
				func(n apiclient.Node) string { return e.done(ref, n) })
		},
	}
	node.flag(cmd)
	if e.flags != nil {
		e.flags(cmd)
	}
	return cmd
}
