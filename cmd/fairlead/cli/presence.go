package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// period is the time range of a command about presence.
type period struct{ from, to string }

func (p *period) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.from, "from", "", "start at this `time` (default 24 hours before the end)")
	cmd.Flags().StringVar(&p.to, "to", "", "end at this `time` (default now)")
	complete(cmd, "from", cobra.NoFileCompletions)
	complete(cmd, "to", cobra.NoFileCompletions)
}

func (t *tool) period(p period) (from, to *time.Time, err error) {
	if from, err = t.past("from", p.from); err == nil {
		to, err = t.past("to", p.to)
	}
	return from, to, err
}

func (t *tool) nodesPresence() *cobra.Command {
	var during period
	var parts int
	cmd := &cobra.Command{
		Use:   "presence [<node>]",
		Short: "Show when nodes were online",
		Long: `Show when nodes were online. For one node, list the times when it connected and
disconnected. Without a node, show a timeline of every node, from · (offline) to
█ (online all the time).

` + timeForms + `
A period spans at most 31 days, and presence is stored for 30 days.

` + nodeForms,
		Example: `  fairlead nodes presence
  fairlead nodes presence --from 7d --parts 28
  fairlead nodes presence alices-laptop --from 30d
  fairlead nodes presence --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			return takes([]string{"node"}[:min(1, len(args))]...)(cmd, args)
		},
		ValidArgsFunction: t.completeNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := t.period(during)
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return t.showTransitions(cmd.Context(), client, args[0], &apiclient.ShowNodePresenceParams{From: from, To: to})
			}
			return t.showPresence(cmd.Context(), client, &apiclient.ListPresenceParams{From: from, To: to, Buckets: &parts})
		},
	}
	during.flags(cmd)
	cmd.Flags().IntVar(&parts, "parts", 24, "divide the timeline into this `number` of parts, at most 288")
	complete(cmd, "parts", cobra.NoFileCompletions)
	return t.watchable(cmd)
}

func (t *tool) showTransitions(ctx context.Context, client *apiclient.Client, node string, params *apiclient.ShowNodePresenceParams) error {
	p, err := decode[apiclient.NodePresence](answer(client.ShowNodePresence(ctx, node, params)))
	if err != nil {
		return err
	}
	if !t.forPeople() {
		return t.show(p, "")
	}
	shown := append([]apiclient.Transition{{At: p.From, Online: p.OnlineBefore}}, p.Transitions...)
	if len(shown) > 1 && shown[1].At.Sub(p.From) < time.Second {
		shown = shown[1:] // it goes online as soon as it joins
	}
	until := func(i int) time.Time {
		if i+1 < len(shown) {
			return shown[i+1].At
		}
		return p.To
	}
	rows := make([][]string, len(shown))
	for i, s := range shown {
		state := "offline"
		if s.Online {
			state = "online"
		}
		rows[i] = []string{timeText(s.At), state, until(i).Sub(s.At).Round(time.Second).String()}
	}
	return showList(t, columns{names: "SINCE, STATE, DURATION"}, rows, func(row []string) []string { return row })
}

// showPresence prints the presence of nodes. It makes as many requests as necessary, all for the period
// of the first.
func (t *tool) showPresence(ctx context.Context, client *apiclient.Client, params *apiclient.ListPresenceParams) error {
	nodes := []apiclient.NodeBuckets{}
	var from, to time.Time
	for {
		p, err := decode[apiclient.PresenceSummary](answer(client.ListPresence(ctx, params)))
		if err != nil {
			return err
		}
		nodes, from, to = append(nodes, p.Nodes...), p.From, p.To
		if p.Next == "" {
			break
		}
		params.From, params.To, params.Cursor = &p.From, &p.To, &p.Next
	}
	if !t.forPeople() {
		return t.show(nodes, "")
	}
	list, err := decode[apiclient.NodeList](answer(client.ListNodes(ctx, &apiclient.ListNodesParams{})))
	if err != nil {
		return err
	}
	known := map[string]apiclient.Node{}
	for _, n := range list.Nodes {
		known[n.ID] = n
	}
	return showList(t, columns{names: "ID, NAME, ONLINE, TIMELINE", aged: "TIMELINE"}, nodes, func(n apiclient.NodeBuckets) []string {
		node := known[n.NodeID]
		return []string{n.NodeID, node.GivenName, fmt.Sprintf("%.1f %%", 100*onlineShare(n.Online, from, to, node.CreatedAt)), bars(n.Online)}
	})
}

// onlineShare returns the share of time that a node was online since it joined.
func onlineShare(parts []float64, from, to, joined time.Time) float64 {
	sum := 0.0
	for _, share := range parts {
		sum += share
	}
	share := sum / float64(max(1, len(parts)))
	if of := to.Sub(joined); joined.After(from) && of > 0 {
		share *= float64(to.Sub(from)) / float64(of)
	}
	return min(share, 1)
}

// bars draws shares from 0 to 1.
func bars(shares []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, share := range shares {
		switch {
		case share <= 0:
			b.WriteRune('·')
		default:
			b.WriteRune(levels[min(int(share*float64(len(levels))), len(levels)-1)])
		}
	}
	return b.String()
}
