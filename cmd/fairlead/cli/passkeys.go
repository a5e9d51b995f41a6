package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) usersInvite() *cobra.Command {
	var life lifetime
	cmd := &cobra.Command{
		Use:   "invite <user>",
		Short: "Invite a user to create a passkey",
		Long: `Print a link with which a user creates a passkey. With it, the user signs in to
add devices. No identity provider is needed.

Send the link over a channel that only the user can read: whoever opens it
first can sign in as this user. It works once, and replaces an earlier link.
To let a user create another passkey, for example on a second device, invite
the user again.`,
		Example: `  fairlead users invite alice
  fairlead users invite alice --expiration 24h`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			created, err := decode[apiclient.InvitationResult](answer(client.InviteUser(ctx, args[0], apiclient.InvitationCreation{Expiration: life.after(t.Now())})))
			if err != nil {
				return err
			}
			if err := t.show(created, created.Link+"\n"); err != nil {
				return err
			}
			t.note("The link works once, until %s. It will not be shown again", timeText(created.Expiration))
			return nil
		}),
	}
	cmd.Flags().Var(&life, "expiration", "how long the link is valid, such as 24h (default 7d; 0 means the default)")
	complete(cmd, "expiration", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) usersPasskeys() *cobra.Command {
	return group(&cobra.Command{
		Use:   "passkeys",
		Short: "Manage the passkeys with which users sign in",
		Example: `  fairlead users passkeys list
  fairlead users passkeys delete 7`,
	}, t.passkeysList(), t.passkeysDelete())
}

func (t *tool) passkeysList() *cobra.Command {
	var user string
	cmd := t.watchable(&cobra.Command{
		Use:   "list",
		Short: "List passkeys",
		Example: `  fairlead users passkeys list
  fairlead users passkeys list --user alice`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.PasskeyList](answer(client.ListPasskeys(ctx, &apiclient.ListPasskeysParams{User: ifSet(user)})))
			if err != nil {
				return err
			}
			return showList(t, columns{names: "ID, USER, SYNCABLE, CREATED, LAST USED"}, list.Passkeys, func(k apiclient.Passkey) []string {
				return []string{k.ID, k.User.Name, yesNo(k.Syncable), timeText(k.CreatedAt), optionalTimeText(k.LastUsed)}
			})
		}),
	})
	cmd.Flags().StringVar(&user, "user", "", "list only the passkeys of this `user`")
	complete(cmd, "user", t.completeUsers)
	return cmd
}

func (t *tool) passkeysDelete() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:   "delete <id>",
		Short: "Delete a passkey",
		Long: `Delete a passkey, for example of a lost device. Nobody can sign in with it any
more. Devices that were added with it stay.

With the last passkey of a user, the recovery code is deleted too. The user then
needs a new invitation.`,
		Example:           "  fairlead users passkeys delete 7",
		Args:              takes("id"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Delete passkey %s? Its user can no longer sign in with it.", args[0])); err != nil {
				return err
			}
			return t.done("Deleted passkey %s", args[0])(answer(client.DeletePasskey(cmd.Context(), args[0])))
		},
	}
	force = confirmable(cmd)
	return cmd
}
