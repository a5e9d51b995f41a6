package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

// HeadscaleExport is the result of an export to Headscale.
type HeadscaleExport struct {
	File        string   `json:"file"`
	Version     string   `json:"version"`
	Users       int      `json:"users"`
	Nodes       int      `json:"nodes"`
	PreAuthKeys int      `json:"preAuthKeys"`
	APIKeys     int      `json:"apiKeys"`
	Policy      bool     `json:"policy"`
	Digest      string   `json:"digest"`
	Lost        []string `json:"lost"`
}

func (t *tool) exporting() *cobra.Command {
	return group(&cobra.Command{
		Use:     "export",
		Short:   "Move a network to another server",
		Example: "  fairlead export headscale headscale.db",
	}, t.exportHeadscale())
}

func (t *tool) exportHeadscale() *cobra.Command {
	return &cobra.Command{
		Use:   "headscale <file>",
		Short: "Write a database for Headscale 0.29",
		Long: `Write the users, nodes, pre-auth keys, API keys and the policy to a new SQLite
file with which Headscale 0.29.1 or newer starts. Headscale also needs its
configuration and its private keys, which an import leaves unchanged. Clients
keep their addresses and keys, and do not have to sign in again.

The command lists what Headscale cannot store. Of keys that were created here
only our own hash is known, so that they cannot be exported.

With SQLite, stop the server first. With PostgreSQL, the file does not contain
what changes after the command has started.`,
		Example: "  fairlead export headscale /var/lib/fairlead/headscale.db",
		Args:    takes("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onOwnDatabase(cmd, t.ExportHeadscale != nil, func(ctx context.Context, c *config.Config) error {
				r, err := t.ExportHeadscale(ctx, c, args[0])
				if err != nil {
					return err
				}
				return t.show(r, headscaleExportText(r))
			})
		},
	}
}

// headscaleExportText returns what the command prints.
func headscaleExportText(r HeadscaleExport) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Wrote %s for Headscale %s: %s\n", r.File, strings.TrimPrefix(r.Version, "v"), contents(r.Users, r.Nodes, r.PreAuthKeys, r.APIKeys, r.Policy))
	fmt.Fprintf(&text, "Digest: %s\n", r.Digest)
	if len(r.Lost) > 0 {
		text.WriteString("Not exported, or changed:\n")
	}
	for _, line := range r.Lost {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	return text.String()
}

// contents counts what is imported or exported.
func contents(users, nodes, preAuthKeys, apiKeys int, policy bool) string {
	all := []string{count(users, "user"), count(nodes, "node"), count(preAuthKeys, "pre-auth key"), count(apiKeys, "API key"), "no policy"}
	if policy {
		all[len(all)-1] = "a policy"
	}
	return strings.Join(all, ", ")
}
