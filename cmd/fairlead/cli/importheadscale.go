package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/backup"
)

// HeadscaleImport says what to import from Headscale.
type HeadscaleImport struct {
	From     string // path of Headscale's configuration
	SQLite   string // replaces the database in it
	Postgres backup.Postgres
	Apply    bool
	Progress func(step string)
}

// HeadscaleReport is the result of an import or of its check.
type HeadscaleReport struct {
	Source         string   `json:"source"`
	Version        string   `json:"version"`
	Users          int      `json:"users"`
	Nodes          int      `json:"nodes"`
	PreAuthKeys    int      `json:"preAuthKeys"`
	APIKeys        int      `json:"apiKeys"`
	Policy         bool     `json:"policy"`
	Repairs        []string `json:"repairs"`
	Refusals       []string `json:"refusals"`
	PolicyProblems []string `json:"policyProblems"`
	Configuration  []string `json:"configuration"`
	Digest         string   `json:"digest"`
	Applied        bool     `json:"applied"`
	Added          int      `json:"added"`
	Changed        int      `json:"changed"`
	Deleted        int      `json:"deleted"`
}

// headscaleConfig is where the packages of Headscale have their configuration.
const headscaleConfig = "/etc/headscale/config.yaml"

func (t *tool) importing() *cobra.Command {
	return group(&cobra.Command{
		Use:     "import",
		Short:   "Move a network from another server",
		Example: "  fairlead import headscale --check",
	}, t.importHeadscale(), t.importTailscale())
}

func (t *tool) importHeadscale() *cobra.Command {
	in := HeadscaleImport{From: headscaleConfig}
	var where string
	var check bool
	cmd := &cobra.Command{
		Use:   "headscale",
		Short: "Import users, nodes, keys and the policy of Headscale",
		Long: `Import the users, nodes, pre-auth keys, API keys and the policy of Headscale
0.22 to 0.30 into the configured database, and copy its private keys. Clients
keep their addresses and keys, and do not have to sign in again.

--check shows what would be imported, what has to be repaired, and why an import
would be refused. It changes nothing, and does not open the configured database.
--apply imports in one transaction, into a database that contains nothing but an
earlier import. Run it again to take over what changed since. What Headscale no
longer has is deleted.

The database of Headscale is only read, and Headscale may keep running. Stop it
before the last import: devices that join Headscale later are missing here. Stop
the server that uses the target database.`,
		Example: `  fairlead import headscale --check
  fairlead import headscale --from /etc/headscale/config.yaml --apply
  fairlead import headscale --from config.yaml --database db.sqlite --check`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check == in.Apply {
				return wrongUsage("use one of --check and --apply")
			}
			c, err := t.ownConfig()
			if err != nil {
				return err
			}
			if in.Apply {
				if err := mustOwn(c.Noise.PrivateKeyPath, databaseOf(c).SQLite); err != nil {
					return err
				}
			}
			if err := in.locate(where); err != nil {
				return err
			}
			if t.ImportHeadscale == nil {
				return errors.New("this binary cannot open databases")
			}
			in.Progress = func(step string) { t.note("%s", step) }
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			r, err := t.ImportHeadscale(ctx, c, in)
			if err != nil {
				return err
			}
			if err := t.show(r, headscaleText(r)); err != nil {
				return err
			}
			if n := len(r.Refusals) + len(r.PolicyProblems); n > 0 {
				return fmt.Errorf("nothing was imported: fix %s first", count(n, "problem"))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.From, "from", in.From, "configuration `file` of Headscale")
	flags.StringVar(&where, "database", "", "`database` of Headscale, if it is not the one in its configuration: a file or a postgres:// URL")
	flags.BoolVar(&check, "check", false, "show what would be imported")
	flags.BoolVar(&in.Apply, "apply", false, "import")
	return cmd
}

// locate parses the value of --database.
func (in *HeadscaleImport) locate(where string) error {
	if !strings.HasPrefix(where, "postgres://") && !strings.HasPrefix(where, "postgresql://") {
		in.SQLite = strings.TrimPrefix(where, "sqlite:")
		return nil
	}
	d, err := postgresAt(where)
	in.Postgres = d.Postgres
	return err
}

// headscaleText returns what the command prints.
func headscaleText(r HeadscaleReport) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Headscale %s at %s: %s\n", strings.TrimPrefix(r.Version, "v"), r.Source, contents(r.Users, r.Nodes, r.PreAuthKeys, r.APIKeys, r.Policy))
	if r.Digest != "" {
		fmt.Fprintf(&text, "Digest: %s\n", r.Digest)
	}
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Repairs", r.Repairs},
		{"Settings that differ", r.Configuration},
		{"Problems of the policy", r.PolicyProblems},
		{"Refused", r.Refusals},
	} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&text, "%s:\n", part.title)
		}
		for _, line := range part.lines {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	switch {
	case r.Applied:
		fmt.Fprintf(&text, "Imported: %d added, %d changed, %d deleted\n", r.Added, r.Changed, r.Deleted)
	case len(r.Refusals)+len(r.PolicyProblems) == 0:
		text.WriteString("Ready to import with --apply\n")
	}
	return text.String()
}
