package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

// ClockRepair describes the effects of setting the time of a database back. Its lists name nodes, keys and
// policy versions.
type ClockRepair struct {
	Was     time.Time `json:"was"`
	Now     time.Time `json:"now"`
	Valid   []string  `json:"valid"`
	Revoked []string  `json:"revoked"`
	Late    []string  `json:"late"`
	Lost    []string  `json:"lost"`
	Changes int       `json:"changes"`
}

func (t *tool) dbRepairClock() *cobra.Command {
	var force *bool
	cmd := &cobra.Command{
		Use:   "repair-clock",
		Short: "Set the database time back after a clock ran ahead",
		Long: `Set the database time back to the current time, after changes were made while a
clock was ahead. The server refuses to write in that state, and its log and
"fairlead health" point to this command.

Check the clocks of this machine and of the database first: if one is behind,
keys and nodes that have really expired become valid again. The command shows
both times and asks for confirmation.

Run it on the server's machine as the user that runs the server. With SQLite,
stop the server first. With PostgreSQL, servers can keep running; they adopt the
new time immediately.

Nodes and keys that expired only because of the wrong clock become valid again.
Those that were expired manually stay expired. Nodes that were deleted and
policies that were reverted because of the wrong clock are not restored; the
command lists them. Entries in the audit log keep their dates, and the repair
is recorded there.`,
		Example: `  fairlead db repair-clock
  fairlead db repair-clock --force --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.onOwnDatabase(cmd, t.RepairClock != nil, func(ctx context.Context, c *config.Config) error {
				done, err := t.RepairClock(ctx, c, func(r ClockRepair) error {
					question := fmt.Sprintf("The newest change is dated %s. Set the database time back to %s?", r.Was.Format(time.RFC3339), r.Now.Format(time.RFC3339))
					return t.confirm(*force, question)
				})
				if err != nil {
					return err
				}
				return t.show(done, clockRepairText(done))
			})
		},
	}
	force = confirmable(cmd)
	return cmd
}

// clockRepairText returns what the command prints.
func clockRepairText(r ClockRepair) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Set the database time back from %s to %s\n", r.Was.Format(time.RFC3339), r.Now.Format(time.RFC3339))
	for _, part := range []struct {
		names []string
		means string
	}{
		{r.Valid, "Valid again: expired only because of the wrong clock"},
		{r.Revoked, "Still expired: expired manually while the clock was ahead"},
		{r.Late, "Check the expiry: created while the clock was ahead"},
		{r.Lost, "Not restored: deleted or reverted because the clock was ahead"},
	} {
		if len(part.names) > 0 {
			fmt.Fprintf(&text, "%s: %s\n", part.means, strings.Join(part.names, ", "))
		}
	}
	if r.Changes > 0 {
		fmt.Fprintf(&text, "Audit log entries dated in the future: %d. List them with: fairlead audit list --from %s\n", r.Changes, r.Now.Format(time.RFC3339))
	}
	return text.String()
}
