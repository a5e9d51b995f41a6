package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) sessions() *cobra.Command {
	return group(&cobra.Command{
		Use:   "sessions",
		Short: "Manage the sessions of people who signed in",
		Example: `  fairlead sessions list
  fairlead sessions revoke 7`,
	}, t.sessionsList(), t.sessionsRevoke())
}

func (t *tool) sessionsList() *cobra.Command {
	var (
		user string
		mine bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions",
		Long: `List the sessions of people who signed in to the console or the command line.
With --mine, list only your own. Secrets are masked.`,
		Example: `  fairlead sessions list
  fairlead sessions list --user alice
  fairlead sessions list --mine`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			if mine && user != "" {
				return wrongUsage("use either --user or --mine, not both")
			}
			var list apiclient.SessionList
			var err error
			if mine {
				list, err = decode[apiclient.SessionList](answer(client.ListMySessions(ctx, nil)))
			} else {
				list, err = decode[apiclient.SessionList](answer(client.ListSessions(ctx, &apiclient.ListSessionsParams{User: ifSet(user)})))
			}
			if err != nil {
				return err
			}
			shown := columns{names: "ID, USER, CLIENT, DESCRIPTION, CURRENT, EXPIRATION, CREATED, LAST USED, FROM", spare: "FROM, CREATED, CURRENT, DESCRIPTION"}
			return showList(t, shown, list.Sessions, func(v apiclient.Session) []string {
				return []string{
					v.ID, v.User.Name, string(v.Client), v.Description, yesNo(v.Current), timeText(v.Expiration), timeText(v.CreatedAt), lastUsed(v.LastSeen), v.LastUsedFrom,
				}
			})
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "only sessions of this `user`, given by name or ID")
	cmd.Flags().BoolVar(&mine, "mine", false, "only your own sessions")
	complete(cmd, "user", t.completeUserFlag)
	return t.watchable(cmd)
}

func (t *tool) sessionsRevoke() *cobra.Command {
	var mine bool
	cmd := &cobra.Command{
		Use:   "revoke <session-id>",
		Short: "Revoke a session",
		Long: `Revoke a session. The server rejects it immediately, and the person has to sign
in again. With --mine, the session must be your own, which needs no role.`,
		Example: `  fairlead sessions revoke 7
  fairlead sessions revoke 7 --mine`,
		Args: takes("session-id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			revoke := client.RevokeSession
			if mine {
				revoke = client.RevokeMySession
			}
			return t.done("Revoked session %s", args[0])(answer(revoke(cmd.Context(), args[0])))
		},
	}
	cmd.Flags().BoolVar(&mine, "mine", false, "revoke one of your own sessions")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}
