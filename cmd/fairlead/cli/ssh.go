package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) ssh() *cobra.Command {
	return group(&cobra.Command{
		Use:   "ssh",
		Short: "Approve or reject SSH sessions",
		Long: `Approve or reject SSH sessions that wait for approval because of a policy rule
with "action": "check". The terminal of such a session shows a code that
identifies it.`,
		Example: `  fairlead ssh list
  fairlead ssh approve 7K3M-9QXD`,
	}, t.sshList(), t.sshApprove(), t.sshReject())
}

func (t *tool) sshList() *cobra.Command {
	return t.watchable(&cobra.Command{
		Use:   "list",
		Short: "List SSH sessions waiting for approval",
		Long:  `List SSH sessions waiting for approval, newest first.`,
		Example: `  fairlead ssh list
  fairlead ssh list --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.PendingSSHList](answer(client.ListPendingSSH(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "CODE, FROM, USER, TO, AS, SINCE", spare: "SINCE, USER"}
			return showList(t, shown, list.Sessions, func(l apiclient.PendingSSH) []string {
				return []string{l.Code, l.Session.SourceName, l.Session.SourceUser, l.Session.TargetName, l.Session.SSHUser, timeText(l.Since)}
			})
		}),
	})
}

func (t *tool) sshApprove() *cobra.Command {
	return &cobra.Command{
		Use:   "approve <code>",
		Short: "Approve an SSH session",
		Long: `Approve an SSH session by the code that its terminal shows. Further sessions
with the same source node, target node and SSH user need no approval during the
checkPeriod of the rule. If checkPeriod is "always", only this session is
approved.`,
		Example:           `  fairlead ssh approve 7K3M-9QXD`,
		Args:              takes("code"),
		ValidArgsFunction: t.completeSSH,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			approved, err := decode[apiclient.SSHApproval](answer(client.ApproveSSH(ctx, apiclient.SSHApprovalRequest{Code: args[0]})))
			if err != nil {
				return err
			}
			g := approved.Grant
			return t.show(g, fmt.Sprintf("Approved sessions from %s to %s as %s until %s\n",
				g.Session.SourceName, g.Session.TargetName, cell(g.Session.SSHUser), timeText(g.Until)))
		}),
	}
}

func (t *tool) sshReject() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reject <code>",
		Short: "Reject an SSH session, or revoke an approval",
		Long: `Reject an SSH session by the code that its terminal shows. The session can
ask for approval again after a minute.

The same code revokes an approval that is still valid. Open sessions are not
closed.`,
		Example: `  fairlead ssh reject 7K3M-9QXD
  fairlead ssh reject 7K3M-9QXD --reason "not during the freeze"`,
		Args:              takes("code"),
		ValidArgsFunction: t.completeSSH,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			return t.done("Rejected the session")(answer(client.RejectSSH(ctx, apiclient.SSHRejectionRequest{Code: args[0], Reason: ifSet(reason)})))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "one-line `text` for the log and the audit log")
	complete(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

// completeSSH completes the first argument with the codes of waiting sessions.
func (t *tool) completeSSH(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var codes []string
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.PendingSSHList](answer(client.ListPendingSSH(ctx)))
			for _, l := range list.Sessions {
				codes = append(codes, l.Code+"\t"+cell(l.Session.SourceName+" to "+l.Session.TargetName+" as "+l.Session.SSHUser))
			}
		})
	}
	return codes, cobra.ShellCompDirectiveNoFileComp
}
