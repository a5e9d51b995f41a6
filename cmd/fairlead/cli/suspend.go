package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// userStatus returns whether a user has access, in a word.
func userStatus(u apiclient.User) string {
	if u.SuspendedAt != nil {
		return "suspended"
	}
	if u.SuspensionHeldAt != nil {
		return "held"
	}
	if u.NeedsApproval != nil && *u.NeedsApproval {
		return "waiting"
	}
	return "active"
}

// userDetails returns the status of a user with its time and source.
func userDetails(u apiclient.User) string {
	if u.SuspensionHeldAt != nil && u.SuspensionHeldBy != nil {
		return fmt.Sprintf("active; suspension held since %s (%s)", timeText(*u.SuspensionHeldAt), *u.SuspensionHeldBy)
	}
	if u.SuspendedAt == nil || u.SuspendedBy == nil {
		return userStatus(u)
	}
	return fmt.Sprintf("suspended since %s (%s)", timeText(*u.SuspendedAt), *u.SuspendedBy)
}

func (t *tool) usersSuspend() *cobra.Command {
	var force *bool
	var tagged, held bool
	cmd := &cobra.Command{
		Use:   "suspend {<user> | --held}",
		Short: "Suspend a user",
		Long: `Take away all access of a user until the user is restored. Identify the user by
name or ID.

The user's nodes are cut off immediately, and the user can neither sign in nor
use pre-auth keys. Nothing is deleted: "fairlead users restore" brings
everything back without a new sign-in.

Tagged nodes belong to their tags and keep their access. The output lists those
that the user added; to delete them in the same step, use --delete-tagged.

With --held, suspend everyone whose suspension is held, because the identity
provider stopped accepting too many people at once.`,
		Example: `  fairlead users suspend alice
  fairlead users suspend alice --delete-tagged
  fairlead users suspend --held`,
		Args:              takesUserOrHeld(&held),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if held {
				return t.eachHeld(ctx, client, "Suspend", "Suspended", *force, func(id string) error {
					_, err := decode[apiclient.UserSuspension](answer(client.SuspendUser(ctx, id, &apiclient.SuspendUserParams{DeleteTagged: &tagged})))
					return err
				})
			}
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
	cmd.Flags().BoolVar(&held, "held", false, "suspend everyone whose suspension is held")
	force = confirmable(cmd)
	return cmd
}

func (t *tool) usersRestore() *cobra.Command {
	var force *bool
	var held bool
	cmd := &cobra.Command{
		Use:   "restore {<user> | --held}",
		Short: "Restore a suspended user",
		Long: `End the suspension of a user. Identify the user by name or ID.

The user's nodes and keys are valid again, unless they have expired or were
deleted in the meantime. Devices reconnect without a new sign-in.

If the suspension of the user is held, it is dismissed. With --held, dismiss all
of them.`,
		Example: `  fairlead users restore alice
  fairlead users restore --held`,
		Args:              takesUserOrHeld(&held),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if held {
				return t.eachHeld(ctx, client, "Keep the access of", "Dismissed the suspension of", *force, func(id string) error {
					_, err := decode[apiclient.UserResult](answer(client.RestoreUser(ctx, id, &apiclient.RestoreUserParams{})))
					return err
				})
			}
			out, err := decode[apiclient.UserResult](answer(client.RestoreUser(ctx, args[0], &apiclient.RestoreUserParams{})))
			if err != nil {
				return err
			}
			return t.show(out.User, fmt.Sprintf("Restored user %s\n", out.User.Name))
		}),
	}
	cmd.Flags().BoolVar(&held, "held", false, "dismiss all suspensions that are held")
	force = confirmable(cmd)
	return cmd
}

// takesUserOrHeld accepts a user, or none with --held.
func takesUserOrHeld(held *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *held {
			return takes()(cmd, args)
		}
		return takes("user")(cmd, args)
	}
}

// eachHeld does something to every user whose suspension is held.
func (t *tool) eachHeld(ctx context.Context, client *apiclient.Client, verb, did string, force bool, do func(id string) error) error {
	list, err := decode[apiclient.UserList](answer(client.ListUsers(ctx, nil)))
	if err != nil {
		return err
	}
	done, names := []apiclient.User{}, []string{}
	for _, u := range list.Users {
		if u.SuspensionHeldAt != nil {
			done, names = append(done, u), append(names, u.Name)
		}
	}
	if len(done) == 0 {
		return t.show(done, "No suspensions are held\n")
	}
	if err := t.confirm(force, fmt.Sprintf("%s %s (%s)?", verb, count(len(done), "user"), strings.Join(names, ", "))); err != nil {
		return err
	}
	for _, u := range done {
		if err := do(u.ID); err != nil {
			return fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	return t.show(done, fmt.Sprintf("%s %s: %s\n", did, count(len(done), "user"), strings.Join(names, ", ")))
}
