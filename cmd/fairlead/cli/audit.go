package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

func (t *tool) audit() *cobra.Command {
	return group(&cobra.Command{
		Use:     "audit",
		Short:   "Show the audit log",
		Example: "  fairlead audit list",
	}, t.auditList())
}

// timeForms describes the forms of times in commands about the past.
const timeForms = `A time is absolute, such as 2026-03-01T09:30:00Z, or relative to now: 24h means
24 hours ago.`

func (t *tool) auditList() *cobra.Command {
	var kind, object, actor, verb, from, to, cursor string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List changes in the audit log",
		Long: `List changes and who made them, newest first. With --output json, each entry
includes the object before and after the change.

` + timeForms,
		Example: `  fairlead audit list
  fairlead audit list --kind node,user --verb deleted --from 7d
  fairlead audit list --kind node --object 7 --output json
  fairlead audit list --actor key:3 --limit 1000`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := &apiclient.ListAuditParams{Kind: ifSet(kind), Object: ifSet(object), Actor: ifSet(actor), Verb: ifSet(verb), Cursor: ifSet(cursor), Limit: &limit}
			var err error
			if params.From, err = t.past("from", from); err != nil {
				return err
			}
			if params.To, err = t.past("to", to); err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			list, err := decode[apiclient.AuditList](answer(client.ListAudit(cmd.Context(), params)))
			if err != nil {
				return err
			}
			shown := columns{names: "TIME, ACTOR, VERB, KIND, OBJECT, NAME, ID", spare: "ID, OBJECT, ACTOR"}
			if err := showList(t, shown, list.Entries, changeCells); err != nil {
				return err
			}
			if list.Next != "" {
				t.note("There are more entries: continue with --cursor %s", list.Next)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "only changes to these `kinds` of object, such as node,user")
	flags.StringVar(&object, "object", "", "only changes to the object with this `ID`")
	flags.StringVar(&actor, "actor", "", "only changes by this `actor`: a kind, such as key, or a single one, such as key:3")
	flags.StringVar(&verb, "verb", "", "only these `types` of change: created, changed, deleted")
	flags.StringVar(&from, "from", "", "only changes at this `time` or later")
	flags.StringVar(&to, "to", "", "only changes before this `time`")
	flags.IntVar(&limit, "limit", 100, "maximum `number` of changes, up to 1000")
	flags.StringVar(&cursor, "cursor", "", "continue a previous list from this `position`")
	for _, name := range []string{"object", "actor", "from", "to", "limit", "cursor"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "kind", cobra.FixedCompletions(append(changeKinds(), "history"), cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "verb", cobra.FixedCompletions([]string{"created", "changed", "deleted"}, cobra.ShellCompDirectiveNoFileComp))
	return t.watchable(cmd)
}

func changeCells(c apiclient.Change) []string {
	return []string{timeText(c.At), actorText(c.Actor), c.Verb, c.Kind, c.Object, cmp.Or(nameIn(c.After), nameIn(c.Before)), c.ID}
}

func actorText(a apiclient.Actor) string {
	if name := cmp.Or(a.Name, a.ID); name != "" {
		return a.Kind + ":" + name
	}
	return a.Kind
}

// nameIn returns the name by which people know an object, or "" if it has none.
func nameIn(shape any) string {
	members, _ := shape.(map[string]any)
	for _, name := range []string{"givenName", "name", "prefix", "key"} {
		if text, ok := members[name].(string); ok {
			return text
		}
	}
	return ""
}

// past parses an absolute time, or a duration before now. It returns nil for an
// empty string.
func (t *tool) past(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if ago, err := config.ParseDuration(text); err == nil {
		return new(t.Now().Add(-ago).UTC()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, wrongUsage("invalid --%s %q: use a time such as 2027-01-31T12:00:00Z or a duration such as 30d", flag, text)
	}
	return &at, nil
}
