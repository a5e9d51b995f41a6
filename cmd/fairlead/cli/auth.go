package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) auth() *cobra.Command {
	return group(&cobra.Command{
		Use:   "auth",
		Short: "Approve or reject devices waiting to join",
		Long: `Approve or reject devices that ask to join without a pre-auth key. Such a device
shows a page with a code that identifies it here.`,
		Example: `  fairlead auth list
  fairlead auth approve 7K3M-9QXD --user alice`,
	}, t.authList(), t.authApprove(), t.authReject())
}

// loginForms describes the forms in which commands accept a waiting device.
const loginForms = `Identify the device by the code on its page, or by the URL of the page.`

func (t *tool) authList() *cobra.Command {
	return t.watchable(&cobra.Command{
		Use:   "list",
		Short: "List devices waiting for approval",
		Long: `List devices waiting for approval, newest first. What they report about
themselves is not verified: compare the code with the one on the device.`,
		Example: `  fairlead auth list
  fairlead auth list --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.PendingLoginList](answer(client.ListPendingLogins(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "CODE, HOSTNAME, SYSTEM, ADDRESS, SINCE, TAGS", spare: "TAGS, SINCE, SYSTEM"}
			return showList(t, shown, list.Logins, func(l apiclient.PendingLogin) []string {
				return []string{l.Code, l.Hostname, l.OS, l.Address, timeText(l.Since), strings.Join(l.Tags, ",")}
			})
		}),
	})
}

func (t *tool) authApprove() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "approve <code> --user <user>",
		Short: "Approve a device",
		Long: `Approve a device, which then joins as a node of the user.

` + loginForms + `
A device that is not connected has 15 minutes to connect.`,
		Example: `  fairlead auth approve 7K3M-9QXD --user alice
  fairlead auth approve https://mesh.example.com/auth/x7Qd… --user alice`,
		Args:              takes("code"),
		ValidArgsFunction: t.completeLogin,
		RunE: func(cmd *cobra.Command, args []string) error {
			if user == "" {
				return wrongUsage("missing flag --user")
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			approved, err := decode[apiclient.LoginApproval](answer(client.ApproveLogin(cmd.Context(), apiclient.LoginApprovalRequest{User: user, AuthID: args[0]})))
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Approved; the device must connect by %s\n", timeText(approved.Login.Until))
			if n := approved.Node; n != nil {
				text = fmt.Sprintf("Approved node %s (ID %s) for user %s\n", n.GivenName, n.ID, userName(n.User))
			}
			return t.show(approved, text)
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "`user` who will own the node, by name or ID")
	complete(cmd, "user", t.completeUserFlag)
	return cmd
}

func (t *tool) authReject() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reject <code>",
		Short: "Reject a device",
		Long: `Reject a device. It shows the reason and stops asking.

` + loginForms,
		Example: `  fairlead auth reject 7K3M-9QXD
  fairlead auth reject 7K3M-9QXD --reason "ask the network team first"`,
		Args:              takes("code"),
		ValidArgsFunction: t.completeLogin,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			return t.done("Rejected the device")(answer(client.RejectLogin(ctx, apiclient.LoginRejectionRequest{AuthID: args[0], Reason: ifSet(reason)})))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "one-line `text` that the device shows")
	complete(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

// completeLogin completes the first argument with the codes of waiting devices.
func (t *tool) completeLogin(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var codes []string
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.PendingLoginList](answer(client.ListPendingLogins(ctx)))
			for _, l := range list.Logins {
				codes = append(codes, l.Code+"\t"+cell(l.Hostname))
			}
		})
	}
	return codes, cobra.ShellCompDirectiveNoFileComp
}
