package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) relays() *cobra.Command {
	return group(&cobra.Command{
		Use:   "relays",
		Short: "Manage relays that run as processes of their own",
		Long: `Manage relays that run as processes of their own. "relays create" prints the key
with which "fairlead relay" joins, in any region and on any machine.`,
		Example: `  fairlead relays create ams-1 --region ams --region-name Amsterdam
  fairlead relays list`,
	}, t.relaysList(), t.relaysShow(), t.relaysCreate(), t.relaysDrain(), t.relaysDelete())
}

func (t *tool) relaysList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List relays",
		Example: `  fairlead relays list
  fairlead relays list --watch`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.RelayList](answer(client.ListRelays(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "NAME, REGION, STATE, REACHABLE, CLIENTS, RECEIVED, SENT, LAST REPORT, URL, VERSION", spare: "VERSION, SENT, RECEIVED, LAST REPORT"}
			return showList(t, shown, list.Relays, func(r apiclient.Relay) []string {
				return []string{r.Name, r.Region.Code, string(r.State), reachableText(r.Probe), strconv.Itoa(r.Clients), byteText(r.BytesReceived), byteText(r.BytesSent), optionalTimeText(r.ReportedAt), r.URL, r.Version}
			})
		}),
	}
	return t.watchable(cmd)
}

// byteText returns a number of bytes in the largest unit in which it is at least one.
func byteText(bytes string) string {
	n, err := strconv.ParseFloat(bytes, 64)
	if err != nil {
		return bytes
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			return strconv.FormatFloat(n, 'f', min(1, len(unit)-1), 64) + " " + unit
		}
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TiB"
}

// reachableText says in a few words what the last probe of a relay found.
func reachableText(p *apiclient.RelayProbe) string {
	switch {
	case p == nil:
		return ""
	case p.Reachable && p.Milliseconds != nil:
		return "yes (" + millisText(*p.Milliseconds) + ")"
	}
	var failed []string
	for _, c := range p.Checks {
		if !c.Passed {
			failed = append(failed, string(c.Name))
		}
	}
	return "no (" + strings.Join(failed, ", ") + ")"
}

func millisText(ms float64) string { return strconv.FormatFloat(ms, 'f', -1, 64) + " ms" }

func relayDetails(r apiclient.Relay) string {
	rows := [][]string{
		{"ID", r.ID},
		{"Name", r.Name},
		{"Region", fmt.Sprintf("%s (%s, %d)", r.Region.Name, r.Region.Code, r.Region.ID)},
		{"State", string(r.State)},
		{"URL", r.URL},
		{"STUN port", strconv.Itoa(r.StunPort)},
		{"Version", r.Version},
		{"Clients", strconv.Itoa(r.Clients)},
		{"Received", byteText(r.BytesReceived)},
		{"Sent", byteText(r.BytesSent)},
		{"Rejected", r.Refused},
		{"Connected relays", strconv.Itoa(r.Peers)},
		{"Latency to server", millisText(r.Milliseconds)},
		{"Created", timeText(r.CreatedAt)},
		{"Joined", optionalTimeText(r.JoinedAt)},
		{"Last report", optionalTimeText(r.ReportedAt)},
		{"Reachable", reachableText(r.Probe)},
	}
	if r.Probe != nil {
		rows = append(rows, []string{"Last probe", timeText(r.Probe.At)})
		for _, c := range r.Probe.Checks {
			if !c.Passed {
				rows = append(rows, []string{"Problem (" + string(c.Name) + ")", c.Problem})
			}
		}
	}
	return details(rows)
}

// showRelay prints the relay that an operation returns.
func (t *tool) showRelay(call func(*apiclient.Client) ([]byte, error)) error {
	return showResult(t, call, func(r apiclient.RelayResult) apiclient.Relay { return r.Relay }, relayDetails)
}

func (t *tool) relaysShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show <relay>",
		Short:             "Show a relay",
		Example:           "  fairlead relays show ams-1",
		Args:              takes("relay"),
		ValidArgsFunction: t.completeRelay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.showRelay(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.GetRelay(cmd.Context(), args[0]))
			})
		},
	}
}

func (t *tool) relaysCreate() *cobra.Command {
	var code, name string
	var id int
	cmd := &cobra.Command{
		Use:   "create <name> --region <code>",
		Short: "Create a relay and its key",
		Long: `Create a relay and print its key, which is shown only once. The key can do
nothing but run this relay. Relays with the same region code form one region:
they forward packets to each other, and nodes use whichever they can reach.`,
		Example: `  fairlead relays create ams-1 --region ams --region-name Amsterdam
  fairlead relays create ams-2 --region ams`,
		Args: takes("name"),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			in := apiclient.RelayCreation{Name: args[0], RegionCode: code, RegionName: ifSet(name)}
			if id != 0 {
				in.RegionID = &id
			}
			made, err := decode[apiclient.RelayKeyResult](answer(client.CreateRelay(ctx, in)))
			if err != nil {
				return err
			}
			if err := t.show(made, made.Key+"\n"); err != nil {
				return err
			}
			t.note("This is the key of relay %s in region %d; it will not be shown again", made.Relay.Name, made.Relay.Region.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&code, "region", "", "`code` of the region, such as ams")
	cmd.Flags().StringVar(&name, "region-name", "", "`name` of a new region (default: its code)")
	cmd.Flags().IntVar(&id, "region-id", 0, "`number` of a new region (default: the first free one from 900 to 999)")
	_ = cmd.MarkFlagRequired("region") // the flag exists
	for _, flag := range []string{"region", "region-name", "region-id"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func (t *tool) relaysDrain() *cobra.Command {
	var cancel bool
	cmd := &cobra.Command{
		Use:   "drain <relay>",
		Short: "Move nodes from a relay to others",
		Long: `Remove a relay from the relay map, so that nodes switch to other relays. The
process keeps running. --cancel offers the relay to nodes again.`,
		Example: `  fairlead relays drain ams-1
  fairlead relays drain ams-1 --cancel`,
		Args:              takes("relay"),
		ValidArgsFunction: t.completeRelay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.showRelay(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.DrainRelay(cmd.Context(), args[0], apiclient.RelayDrain{Draining: !cancel}))
			})
		},
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "offer the relay to nodes again")
	return cmd
}

func (t *tool) relaysDelete() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:   "delete <relay>",
		Short: "Delete a relay",
		Long: `Delete a relay and revoke its key. Its process stops. Drain the relay first, so
that nodes switch to another relay before they lose their connections.`,
		Example:           "  fairlead relays delete ams-1",
		Args:              takes("relay"),
		ValidArgsFunction: t.completeRelay,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if err := t.confirm(*force, fmt.Sprintf("Delete relay %s? Its process stops.", printable(args[0]))); err != nil {
				return err
			}
			return t.done("Deleted relay %s", args[0])(answer(client.DeleteRelay(ctx, args[0])))
		}),
	}
	force = confirmable(cmd)
	return cmd
}

// completeRelay completes with the names of relays.
func (t *tool) completeRelay(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.RelayList](answer(client.ListRelays(ctx)))
			for _, r := range list.Relays {
				names = append(names, r.Name+"\t"+cell(r.Region.Name))
			}
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
