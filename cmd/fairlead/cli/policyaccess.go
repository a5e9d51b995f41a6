package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) policyAccess() *cobra.Command {
	var from, to []string
	var by, file string
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Show who can reach whom",
		Long: `Show who can reach whom: on which ports, for how many pairs of nodes, and
because of which lines of the policy.

Sources and destinations are nodes, users, tags, groups, routes,
autogroup:internet, and "other users": those who are not in any group or rule.
By default all of them are shown. With --policy, also show what a file would
change; nothing is saved.`,
		Example: `  fairlead policy access
  fairlead policy access --to tag:db --by users
  fairlead policy access --from alice --by nodes
  fairlead policy access --policy policy.hujson --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			question := apiclient.AccessQuestion{From: from, To: to, By: (*apiclient.AccessQuestionBy)(ifSet(by))}
			if file != "" {
				text, err := t.readGoodPolicy(file)
				if err != nil {
					return err
				}
				question.Policy = &text
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			result, err := decode[apiclient.AccessMap](t.withPlaces(file)(answer(client.MapAccess(cmd.Context(), question))))
			if err != nil {
				return err
			}
			return t.show(result, accessText(result, file != ""))
		},
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "only these `names` as sources")
	cmd.Flags().StringSliceVar(&to, "to", nil, "only these `names` as destinations")
	cmd.Flags().StringVar(&by, "by", "", "`kind` to group by: groups, users or nodes (default groups)")
	cmd.Flags().StringVar(&file, "policy", "", "show what this `file` would change")
	for _, flag := range []string{"from", "to"} {
		complete(cmd, flag, t.completeUserFlag)
	}
	complete(cmd, "by", cobra.FixedCompletions([]string{"groups", "users", "nodes"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func accessText(m apiclient.AccessMap, draft bool) string {
	header := "FROM, TO, PORTS, PAIRS, LINES"
	if draft {
		header = "FROM, TO, PORTS, PAIRS, LOST, GAINED, OLD LINES, NEW LINES"
	}
	text := table(header, m.Cells, func(c apiclient.AccessCell) []string {
		to := m.To[c.To].Name
		if c.Own {
			to += " (own nodes)"
		}
		cells := []string{m.From[c.From].Name, to, strings.Join(c.Ports, ", "), fmt.Sprintf("%d of %d", c.Pairs, c.Of)}
		var before, after []int
		for _, share := range c.Rules {
			if line := m.Rules[share.Rule].Line; line > 0 && share.Before > 0 {
				before = append(before, line)
			}
			if line := m.Rules[share.Rule].DraftLine; line > 0 && share.After > 0 {
				after = append(after, line)
			}
		}
		if !draft {
			return append(cells, numbers(after))
		}
		return append(cells, strings.Join(c.Lost, ", "), strings.Join(c.Gained, ", "), numbers(before), numbers(after))
	})
	if len(m.Cells) == 0 {
		text = "Nobody can reach anyone\n"
	}
	if m.MoreFrom+m.MoreTo+m.MoreCells > 0 {
		text += fmt.Sprintf("Not shown: %s, %s and %s. To narrow the result, use --from and --to\n",
			count(m.MoreFrom, "source"), count(m.MoreTo, "destination"), count(m.MoreCells, "row"))
	}
	return text
}
