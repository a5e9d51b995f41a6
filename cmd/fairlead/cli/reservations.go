package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) reservations() *cobra.Command {
	return group(&cobra.Command{
		Use:   "reservations",
		Short: "Reserve names and addresses for devices that have not joined yet",
		Long: `Reserve names and addresses for devices that have not joined yet. No other node
gets them. The device gets them when it joins for the first time, if it has the
expected hostname and belongs to the expected user, or has exactly the expected
tags. The reservation is then deleted.`,
		Example: `  fairlead reservations create build-server --user alice --ipv4 100.64.12.7
  fairlead reservations list`,
	}, t.reservationsCreate(), t.reservationsList(), t.reservationsDelete())
}

func (t *tool) reservationsCreate() *cobra.Command {
	var in apiclient.ReservationCreation
	var hostname, user, v4, v6 string
	cmd := &cobra.Command{
		Use:   "create <name>",
		Short: "Reserve a name, and addresses if you choose them",
		Example: `  fairlead reservations create build-server --user alice
  fairlead reservations create db-1 --tags tag:db --ipv4 100.64.12.7
  fairlead reservations create laptop --hostname DESKTOP-4F2K --user alice`,
		Args: takes("name"),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			in.Name, in.Hostname, in.User, in.Ipv4, in.Ipv6 = args[0], ifSet(hostname), ifSet(user), ifSet(v4), ifSet(v6)
			made, err := decode[apiclient.ReservationResult](answer(client.CreateReservation(ctx, in)))
			if err != nil {
				return err
			}
			return t.show(made.Reservation, fmt.Sprintf("Reserved %s for %s\n", made.Reservation.Name, reservedFor(made.Reservation)))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&hostname, "hostname", "", "`hostname` that the device will report (default the reserved name)")
	flags.StringVar(&user, "user", "", "`user` to whom the device will belong, by name or ID")
	flags.StringSliceVar(&in.Tags, "tags", nil, "`tag:name` that the device will have; repeat the flag or separate several with commas")
	flags.StringVar(&v4, "ipv4", "", "IPv4 `address` to reserve")
	flags.StringVar(&v6, "ipv6", "", "IPv6 `address` to reserve")
	complete(cmd, "user", t.completeUserFlag)
	complete(cmd, "tags", t.completeTags)
	return cmd
}

// reservedFor says which device a reservation is for.
func reservedFor(r apiclient.Reservation) string {
	if len(r.Tags) > 0 {
		return "the device " + r.Hostname + " with " + strings.Join(r.Tags, ", ")
	}
	return "the device " + r.Hostname + " of " + r.User
}

func (t *tool) reservationsList() *cobra.Command {
	return t.watchable(&cobra.Command{
		Use:     "list",
		Short:   "List reservations",
		Example: "  fairlead reservations list",
		Args:    takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.ReservationList](answer(client.ListReservations(ctx, &apiclient.ListReservationsParams{})))
			if err != nil {
				return err
			}
			return showList(t, columns{names: "ID, NAME, HOSTNAME, USER, TAGS, ADDRESSES, CREATED"}, list.Reservations, func(r apiclient.Reservation) []string {
				return []string{
					r.ID, r.Name, r.Hostname, r.User, strings.Join(r.Tags, ","),
					strings.Join(strings.Fields(r.Ipv4+" "+r.Ipv6), ","), timeText(r.CreatedAt),
				}
			})
		}),
	})
}

func (t *tool) reservationsDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete <reservation>",
		Short: "Delete a reservation",
		Long: `Delete a reservation, by ID or name. Other nodes can then get its name and
addresses. Nodes are not affected.`,
		Example:           "  fairlead reservations delete build-server",
		Args:              takes("reservation"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			return t.done("Deleted reservation %s", args[0])(answer(client.DeleteReservation(cmd.Context(), args[0])))
		},
	}
}
