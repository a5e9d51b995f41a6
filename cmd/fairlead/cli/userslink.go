package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) usersLink() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "link <user> <account>",
		Short: "Link a user to an account at the identity provider",
		Long: `Link a user to an account at the identity provider. The person with this
account can then sign in as the user, with all the user's access, so make sure
that they are the same person. Identify the user by name or ID.

An account is the issuer, a slash and the subject. If somebody signs in whose
name or email address another user has, the sign-in page shows the account.`,
		Example: `  fairlead users link alice https://id.example.com/realms/company/7c1e4b2a
  fairlead users link alice https://new.example.com/7c1e4b2a --replace`,
		Args:              takes("user", "account"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			linked, err := decode[apiclient.UserResult](answer(client.LinkUser(ctx, args[0], nil, apiclient.AccountLink{ProviderID: args[1], Replace: &replace})))
			if err != nil {
				return err
			}
			return t.show(linked.User, fmt.Sprintf("Linked user %s to %s\n", linked.User.Name, linked.User.ProviderID))
		}),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the user's present account")
	return cmd
}

func (t *tool) usersUnlink() *cobra.Command {
	return &cobra.Command{
		Use:   "unlink <user>",
		Short: "Unlink a user from the account at the identity provider",
		Long: `Unlink a user from the account at the identity provider. The person can no
longer sign in as the user, and the groups and sessions of the account are
removed. The user's nodes and keys stay. Identify the user by name or ID.`,
		Example:           `  fairlead users unlink alice`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			unlinked, err := decode[apiclient.UserResult](answer(client.UnlinkUser(ctx, args[0], nil)))
			if err != nil {
				return err
			}
			return t.show(unlinked.User, fmt.Sprintf("Unlinked user %s\n", unlinked.User.Name))
		}),
	}
}
