package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) webhooks() *cobra.Command {
	return group(&cobra.Command{
		Use:   "webhooks",
		Short: "Manage webhooks",
		Example: `  fairlead webhooks create https://receiver.example.com/mesh --events "node.*"
  fairlead webhooks list`,
	}, t.webhooksList(), t.webhooksShow(), t.webhooksCreate(), t.webhooksUpdate(), t.webhooksRotate(), t.webhooksTest(), t.webhooksFailed(), t.webhooksRedeliver(), t.webhooksDelete())
}

func (t *tool) webhooksList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List webhooks",
		Example: `  fairlead webhooks list
  fairlead webhooks list --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.WebhookList](answer(client.ListWebhooks(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "ID, URL, EVENTS, STATE, LAST SUCCESS, DESCRIPTION", spare: "DESCRIPTION, LAST SUCCESS, EVENTS"}
			return showList(t, shown, list.Webhooks, func(w apiclient.Webhook) []string {
				return []string{w.ID, w.URL, eventsText(w.Events), webhookState(w), optionalTimeText(w.Delivery.LastSuccess), w.Description}
			})
		}),
	}
	return t.watchable(cmd)
}

func eventsText(events []string) string { return cmp.Or(strings.Join(events, ", "), "all") }

// webhookState returns in one word whether the receiver gets events.
func webhookState(w apiclient.Webhook) string {
	switch {
	case !w.Enabled:
		return "disabled"
	case w.Delivery.Failures > 0:
		return "failing"
	case w.Delivery.LastSuccess == nil && w.Delivery.LastFailure == nil:
		return "not used yet"
	}
	return "ok"
}

func webhookDetails(w apiclient.Webhook) string {
	return details([][]string{
		{"ID", w.ID},
		{"URL", w.URL},
		{"Description", w.Description},
		{"Events", eventsText(w.Events)},
		{"State", webhookState(w)},
		{"Consecutive failures", strconv.Itoa(w.Delivery.Failures)},
		{"Last success", optionalTimeText(w.Delivery.LastSuccess)},
		{"Last failure", optionalTimeText(w.Delivery.LastFailure)},
		{"Last problem", w.Delivery.LastAnswer},
		{"Created", timeText(w.CreatedAt)},
		{"Updated", timeText(w.UpdatedAt)},
	})
}

// showWebhook prints the webhook that an operation returns.
func (t *tool) showWebhook(call func(*apiclient.Client) ([]byte, error), text func(apiclient.Webhook) string) error {
	return showResult(t, call, func(r apiclient.WebhookResult) apiclient.Webhook { return r.Webhook }, text)
}

func (t *tool) webhooksShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show <webhook-id>",
		Short:             "Show a webhook and its delivery status",
		Example:           "  fairlead webhooks show 1",
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.showWebhook(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.GetWebhook(cmd.Context(), args[0]))
			}, webhookDetails)
		},
	}
}

// eventForms describes the values of --events.
const eventForms = `--events takes event names such as node.created, patterns such as "node.*", and
the Tailscale names nodeCreated, nodeApproved, nodeKeyExpired, nodeDeleted,
userCreated, userDeleted, userSuspended, userRestored and policyUpdate.`

func (t *tool) webhooksCreate() *cobra.Command {
	var description string
	var events []string
	cmd := &cobra.Command{
		Use:   "create <url>",
		Short: "Create a webhook",
		Long: `Create a webhook and print its secret, which is shown only once. From now on,
the receiver at the URL gets a POST request for every event, or for those in
--events, signed with the secret.

` + eventForms,
		Example: `  fairlead webhooks create https://receiver.example.com/mesh
  fairlead webhooks create https://chat.example.com/x --events "node.*,user.*"`,
		Args: takes("url"),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			return t.showSecret(decode[apiclient.WebhookSecretResult](answer(client.CreateWebhook(ctx, apiclient.WebhookCreation{
				URL: args[0], Description: ifSet(description), Events: events,
			}))))
		}),
	}
	webhookFlags(cmd, &description, &events)
	return cmd
}

func webhookFlags(cmd *cobra.Command, description *string, events *[]string) {
	cmd.Flags().StringVar(description, "description", "", "`text` that describes the webhook")
	cmd.Flags().StringSliceVar(events, "events", nil, "only these `events`; repeat the flag or separate several with commas")
	complete(cmd, "description", cobra.NoFileCompletions)
	complete(cmd, "events", completeEvents())
}

func (t *tool) showSecret(made apiclient.WebhookSecretResult, err error) error {
	if err != nil {
		return err
	}
	if err := t.show(made, made.Secret+"\n"); err != nil {
		return err
	}
	t.note("This is the secret of webhook %s; it will not be shown again", made.Webhook.ID)
	return nil
}

func (t *tool) webhooksUpdate() *cobra.Command {
	var url, description string
	var events []string
	var enable, disable bool
	cmd := &cobra.Command{
		Use:   "update <webhook-id>",
		Short: "Change a webhook",
		Long: `Change a webhook. Settings that you omit are not changed; --events "" selects
all events. Events that occur while a webhook is disabled are never delivered.

` + eventForms,
		Example: `  fairlead webhooks update 1 --url https://other.example.com/mesh
  fairlead webhooks update 1 --events user.created,user.deleted
  fairlead webhooks update 1 --enable`,
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: func(cmd *cobra.Command, args []string) error {
			enabled, err := either(enable, disable, "--enable and --disable")
			if err != nil {
				return err
			}
			change := apiclient.WebhookChange{URL: ifSet(url), Enabled: enabled}
			if cmd.Flags().Changed("description") {
				change.Description = &description
			}
			if cmd.Flags().Changed("events") {
				change.Events = new(append([]string{}, events...))
			}
			if change == (apiclient.WebhookChange{}) {
				return wrongUsage("nothing to change: use --url, --events, --description, --enable or --disable")
			}
			return t.showWebhook(func(client *apiclient.Client) ([]byte, error) {
				return answer(client.ChangeWebhook(cmd.Context(), args[0], change))
			}, webhookDetails)
		},
	}
	webhookFlags(cmd, &description, &events)
	cmd.Flags().StringVar(&url, "url", "", "new `URL` of the receiver")
	cmd.Flags().BoolVar(&enable, "enable", false, "deliver events from now on")
	cmd.Flags().BoolVar(&disable, "disable", false, "stop delivering events")
	complete(cmd, "url", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) webhooksRotate() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:   "rotate <webhook-id>",
		Short: "Replace the secret of a webhook",
		Long: `Replace the secret of a webhook and print the new one, which is shown only once.
Events that the receiver rejects until it knows the new secret are retried.`,
		Example:           "  fairlead webhooks rotate 1",
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if err := t.confirmPerson(*force, fmt.Sprintf("Replace the secret of webhook %s? Its receiver needs the new one.", printable(args[0]))); err != nil {
				return err
			}
			return t.showSecret(decode[apiclient.WebhookSecretResult](answer(client.RotateWebhookSecret(ctx, args[0]))))
		}),
	}
	force = skippable(cmd)
	return cmd
}

// deliveryText describes the receiver's response to an event.
func deliveryText(d apiclient.WebhookDelivery) string {
	text := fmt.Sprintf("Delivered in %d ms with status %d", d.Millis, d.Status)
	if !d.Delivered {
		text = fmt.Sprintf("Not delivered after %d ms: %s", d.Millis, d.Problem)
	}
	if d.Reply != "" {
		text += "\n" + d.Reply
	}
	return text + "\n"
}

var errNotDelivered = errors.New("the receiver did not accept the event")

func (t *tool) webhooksTest() *cobra.Command {
	return &cobra.Command{
		Use:               "test <webhook-id>",
		Short:             "Send a test event to a receiver",
		Long:              `Send a webhook.test event to the receiver now, and show its response.`,
		Example:           "  fairlead webhooks test 1",
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			return t.showDelivery(decode[apiclient.WebhookDelivery](answer(client.TestWebhook(ctx, args[0]))))
		}),
	}
}

func (t *tool) showDelivery(d apiclient.WebhookDelivery, err error) error {
	if err != nil {
		return err
	}
	if err := t.show(d, deliveryText(d)); err != nil {
		return err
	}
	if !d.Delivered {
		return errNotDelivered
	}
	return nil
}

// failed reads the failed events of a webhook, newest first; a limit of zero
// means all.
func (t *tool) failed(ctx context.Context, client *apiclient.Client, webhook string, limit int) (events []apiclient.FailedEvent, err error) {
	const most = 1000
	params := &apiclient.ListFailedEventsParams{Limit: new(cmp.Or(limit, most))}
	for {
		page, err := decode[apiclient.FailedEventList](answer(client.ListFailedEvents(ctx, webhook, params)))
		if err != nil {
			return nil, err
		}
		events = append(events, page.Events...)
		if page.Next == "" || limit > 0 {
			return events, nil
		}
		params.Cursor = &page.Next
	}
}

func (t *tool) webhooksFailed() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "failed <webhook-id>",
		Short: "List events that could not be delivered",
		Long: `List events that the receiver did not accept within a day, newest first. The
last 1,000 are kept for 30 days.`,
		Example: `  fairlead webhooks failed 1
  fairlead webhooks failed 1 --limit 10`,
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			events, err := t.failed(ctx, client, args[0], limit)
			if err != nil {
				return err
			}
			shown := columns{names: "ID, EVENT, EVENT ID, FAILED, ATTEMPTS, PROBLEM", spare: "ATTEMPTS, EVENT ID, FAILED"}
			return showList(t, shown, events, func(e apiclient.FailedEvent) []string {
				return []string{e.ID, e.Event, e.EventID, timeText(e.At), strconv.Itoa(e.Attempts), e.Answer}
			})
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum `number` of events, up to 1000 (default all)")
	complete(cmd, "limit", cobra.NoFileCompletions)
	return t.watchable(cmd)
}

func (t *tool) webhooksRedeliver() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "redeliver <webhook-id> (<failed-id>... | --all)",
		Short: "Redeliver failed events",
		Long: `Redeliver failed events one by one, and stop at the first one that the receiver
does not accept. With --all, the oldest event is sent first.`,
		Example: `  fairlead webhooks redeliver 1 7
  fairlead webhooks redeliver 1 --all`,
		Args: func(_ *cobra.Command, args []string) error {
			switch named := len(args) > 1; {
			case len(args) == 0:
				return missing("webhook-id")
			case all && named:
				return errors.New("use either failed events or --all, not both")
			case !all && !named:
				return errors.New("missing argument <failed-id>: specify failed events, or use --all")
			}
			return nil
		},
		ValidArgsFunction: t.completeWebhook,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			ids := args[1:]
			if all {
				events, err := t.failed(ctx, client, args[0], 0)
				if err != nil {
					return err
				}
				for _, e := range slices.Backward(events) {
					ids = append(ids, e.ID)
				}
			}
			return t.redeliver(ctx, client, args[0], ids)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "redeliver all failed events of the webhook")
	return cmd
}

func (t *tool) redeliver(ctx context.Context, client *apiclient.Client, webhook string, ids []string) error {
	var failure error
	done := []apiclient.WebhookDelivery{}
	for _, id := range ids {
		d, err := decode[apiclient.WebhookDelivery](answer(client.RedeliverEvent(ctx, webhook, id)))
		if err == nil {
			done = append(done, d)
			if !d.Delivered {
				err = fmt.Errorf("%w: %s", errNotDelivered, d.Problem)
			}
		}
		if err != nil {
			failure = fmt.Errorf("event %s: %w", id, err)
			break
		}
	}
	delivered := len(done)
	if delivered > 0 && !done[delivered-1].Delivered {
		delivered--
	}
	return errors.Join(t.show(done, fmt.Sprintf("Delivered %d of %s\n", delivered, count(len(ids), "event"))), failure)
}

func (t *tool) webhooksDelete() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:               "delete <webhook-id>",
		Short:             "Delete a webhook",
		Long:              "Delete a webhook and its failed events. Its receiver gets no more events.",
		Example:           "  fairlead webhooks delete 1",
		Args:              takes("webhook-id"),
		ValidArgsFunction: t.completeWebhook,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if err := t.confirm(*force, fmt.Sprintf("Delete webhook %s? Its receiver gets no more events.", printable(args[0]))); err != nil {
				return err
			}
			return t.done("Deleted webhook %s", args[0])(answer(client.DeleteWebhook(ctx, args[0])))
		}),
	}
	force = confirmable(cmd)
	return cmd
}

// completeWebhook completes with the ids of webhooks.
func (t *tool) completeWebhook(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
			list, _ := decode[apiclient.WebhookList](answer(client.ListWebhooks(ctx)))
			for _, w := range list.Webhooks {
				ids = append(ids, w.ID+"\t"+cell(cmp.Or(w.Description, w.URL)))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
