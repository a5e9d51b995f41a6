package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) cluster() *cobra.Command {
	return group(&cobra.Command{
		Use:   "cluster",
		Short: "Show all replicas, their database and relays",
		Example: `  fairlead cluster status
  fairlead cluster status --watch`,
	}, t.clusterStatus())
}

func (t *tool) clusterStatus() *cobra.Command {
	watched := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of replicas, the database and relays",
		Long: `Show the state of all replicas, the database, its standbys, and the relays that
run as processes of their own. Any replica can respond.

A replica that stopped or died is listed for an hour, or until it starts again.
The exit status is 1 if something needs attention: for example, if a replica is
missing, or no synchronous standby is connected.`,
		Example: `  fairlead cluster status
  fairlead cluster status --watch
  fairlead cluster status --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			state, err := decode[apiclient.Cluster](answer(client.ShowCluster(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "NAME, STATE, VERSION, DETAILS", spare: "VERSION"}
			if err := showTable(t, state, shown, clusterRows(state), func(row []string) []string { return row }); err != nil {
				return err
			}
			for _, note := range state.Notes {
				t.note("Note: %s", note)
			}
			switch {
			case len(state.Problems) == 0:
				return nil
			case watched:
				t.note("Problem: %s", strings.Join(state.Problems, "\nProblem: "))
				return nil
			}
			return fmt.Errorf("%s: %s", count(len(state.Problems), "problem"), strings.Join(state.Problems, "; "))
		}),
	}
	cmd = t.watchable(cmd)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		watched, _ = cmd.Flags().GetBool("watch") // keeps watching while there is a problem
		return run(cmd, args)
	}
	return cmd
}

// clusterRows returns the lines of cluster status.
func clusterRows(c apiclient.Cluster) [][]string {
	var rows [][]string
	for _, r := range c.Replicas {
		details := []string{count(r.Nodes, "node"), "revision " + r.Revision}
		if r.LagMillis > 0 {
			details = append(details, fmt.Sprintf("%s behind", time.Duration(r.LagMillis)*time.Millisecond))
		}
		if r.URL != "" {
			details = append(details, "at "+r.URL)
		}
		if r.StartedAt != nil {
			details = append(details, "started "+timeText(*r.StartedAt))
		}
		if r.State == apiclient.ReplicaStopped || r.State == apiclient.ReplicaMissing {
			details = append(details[1:], "last report "+timeText(r.ReportedAt))
		}
		rows = append(rows, []string{"replica " + r.Name, string(r.State), r.Version, strings.Join(details, ", ")})
	}
	rows = append(rows, databaseRows(c.Database)...)
	for _, r := range c.Relays {
		details := []string{"region " + r.Region.Code}
		if r.ReportedAt != nil {
			details = append(details, count(r.Clients, "client"))
		}
		if text := reachableText(r.Probe); text != "" {
			details = append(details, "reachable: "+text)
		}
		if r.URL != "" {
			details = append(details, "at "+r.URL)
		}
		rows = append(rows, []string{"relay " + r.Name, string(r.State), r.Version, strings.Join(details, ", ")})
	}
	return rows
}

func databaseRows(d apiclient.ClusterDatabase) [][]string {
	details := []string{"at " + d.Host}
	if d.Timeline != nil {
		details = append(details, fmt.Sprintf("timeline %d", *d.Timeline))
	}
	if d.SynchronousCommit != "" {
		details = append(details, "synchronous_commit "+d.SynchronousCommit)
	}
	rows := [][]string{{"database", string(d.Role), strings.TrimSpace(string(d.Engine) + " " + d.Version), strings.Join(details, ", ")}}
	for _, b := range d.Standbys {
		details := []string{b.Sync, size(b.LagBytes) + " behind"}
		if b.LagMillis > 0 {
			details = append(details, fmt.Sprintf("replays after %s", time.Duration(b.LagMillis)*time.Millisecond))
		}
		if b.Address != "" {
			details = append(details, "at "+b.Address)
		}
		rows = append(rows, []string{"standby " + b.Name, b.State, "", strings.Join(details, ", ")})
	}
	return rows
}

// size returns a number of bytes in the largest unit that fits.
func size(bytes int64) string {
	units, n := []string{"bytes", "KiB", "MiB", "GiB"}, float64(bytes)
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%.4g %s", n, units[i])
}
