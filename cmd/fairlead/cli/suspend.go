package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// userStatus returns whether a user has access, in a word.
func userStatus(u apiclient.User) string {
	if u.SuspendedAt != nil {
		return "suspended"
	}
	if u.NeedsApproval != nil && *u.NeedsApproval {
		return "waiting"
	}
	return "active"
}

// userDetails returns the status of a user with its time and source.
func userDetails(u apiclient.User) string {
	if u.SuspendedAt == nil || u.SuspendedBy == nil {
		return userStatus(u)
	}
	return fmt.Sprintf("suspended since %s (%s)", timeText(*u.SuspendedAt), *u.SuspendedBy)
}

func (t *tool) usersSuspend() *cobra.Command {
	var force *bool
	var tagged bool
	cmd := &cobra.Command{
		Use:   "suspend <user>",
		Short: "Suspend a user",
		Long: `Take away all access of a user until the user is restored. Identify the user by
name or ID.

The user's nodes are cut off immediately, and the user can neither sign in nor
use pre-auth keys. Nothing is deleted: "fairlead users restore" brings
everything back without a new sign-in.

Tagged nodes belong to their tags and keep their access. The output lists those
that the user added; to delete them in the same step, use --delete-tagged.`,
		Example: `  fairlead users suspend alice
  fairlead users suspend alice --delete-tagged`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if tagged {
				question := fmt.Sprintf("Suspend user %s and delete the tagged nodes that the user added?", args[0])
				if err := t.confirm(*force, question); err != nil {
					return err
				}
			}
			out, err := decode[apiclient.UserSuspension](answer(client.SuspendUser(ctx, args[0], &apiclient.SuspendUserParams{DeleteTagged: &tagged})))
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Suspended user %s; %s cut off\n", out.User.Name, count(out.User.NodeCount, "node"))
			if out.DeletedNodes > 0 {
				text += fmt.Sprintf("Deleted %s\n", count(out.DeletedNodes, "tagged node"))
			}
			return t.show(out, text+keptNodes("the user", out.TaggedNodes))
		}),
	}
	cmd.Flags().BoolVar(&tagged, "delete-tagged", false, "also delete the tagged nodes that the user added")
	force = confirmable(cmd)
	return cmd
}

func (t *tool) usersRestore() *cobra.Command {
	return &cobra.Command{
		Use:   "restore <user>",
		Short: "Restore a suspended user",
		Long: `End the suspension of a user. Identify the user by name or ID.

The user's nodes and keys are valid again, unless they have expired or were
deleted in the meantime. Devices reconnect without a new sign-in.`,
		Example:           `  fairlead users restore alice`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			out, err := decode[apiclient.UserResult](answer(client.RestoreUser(ctx, args[0], &apiclient.RestoreUserParams{})))
			if err != nil {
				return err
			}
			return t.show(out.User, fmt.Sprintf("Restored user %s\n", out.User.Name))
		}),
	}
}
