package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/backup"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// HeadscaleImport says what to import from Headscale.
type HeadscaleImport struct {
	From     string // path of Headscale's configuration
	SQLite   string // replaces the database in it
	Postgres backup.Postgres
	Apply    bool
	Compare  string // directory with maps that Headscale has written
	// KeepWayBack keeps Headscale's hashes of keys after their first use.
	KeepWayBack bool
	Progress    func(step string)
}

// HeadscaleReport is the result of an import or of its check.
type HeadscaleReport struct {
	Source         string               `json:"source"`
	Version        string               `json:"version"`
	Users          int                  `json:"users"`
	Nodes          int                  `json:"nodes"`
	PreAuthKeys    int                  `json:"preAuthKeys"`
	APIKeys        int                  `json:"apiKeys"`
	Policy         bool                 `json:"policy"`
	Repairs        []string             `json:"repairs"`
	Refusals       []string             `json:"refusals"`
	PolicyProblems []string             `json:"policyProblems"`
	Configuration  []string             `json:"configuration"`
	Digest         string               `json:"digest"`
	Comparison     *HeadscaleComparison `json:"comparison,omitempty"`
	Applied        bool                 `json:"applied"`
	Added          int                  `json:"added"`
	Changed        int                  `json:"changed"`
	Deleted        int                  `json:"deleted"`
}

// HeadscaleComparison says how maps would differ from those that Headscale sent.
type HeadscaleComparison struct {
	Nodes       int               `json:"nodes"`
	Equal       int               `json:"equal"`
	Different   int               `json:"different"`
	Differences []NodeDifference  `json:"differences"`
	Known       []KnownDifference `json:"known"`
	Missing     []string          `json:"missing"`
}

// NodeDifference is a difference between the maps of a node.
type NodeDifference struct {
	Node string `json:"node"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// KnownDifference is the reason for expected differences between the maps of some nodes.
type KnownDifference struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// headscaleConfig is where the packages of Headscale have their configuration.
const headscaleConfig = "/etc/headscale/config.yaml"

func (t *tool) importing() *cobra.Command {
	return group(&cobra.Command{
		Use:     "import",
		Short:   "Move a network from another server",
		Example: "  fairlead import headscale --check\n  fairlead import tailscale ./tailnet --check",
	}, t.importHeadscale(), t.importWatch(), t.importClose(), t.importTailscale())
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
--compare also shows how the maps of devices would differ from those that
Headscale sent: peers, names, addresses, tags, expiry, routes, allowed traffic,
DNS and SSH. Headscale writes its maps to the directory named by the environment
variable HEADSCALE_DEBUG_DUMP_MAPRESPONSE_PATH. The exit status is 1 if a map
differs other than as expected.
--apply imports in one transaction, into a database that contains nothing but an
earlier import. Run it again to take over what changed since. What Headscale no
longer has is deleted.

--keep-way-back keeps Headscale's hashes of keys when they are used, so that
"fairlead export headscale" can export them later. Without it, a key has only
our own, faster hash after its first use. "fairlead import close" deletes them.

The database of Headscale is only read, and Headscale may keep running. Stop it
before the last import: devices that join Headscale later are missing here. Stop
the server that uses the target database.`,
		Example: `  fairlead import headscale --check
  fairlead import headscale --compare /var/tmp/maps
  fairlead import headscale --apply --keep-way-back
  fairlead import headscale --from config.yaml --database db.sqlite --check`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			modes := 0
			for _, mode := range []bool{check, in.Apply, in.Compare != ""} {
				if mode {
					modes++
				}
			}
			if modes != 1 {
				return wrongUsage("use one of --check, --compare and --apply")
			}
			if err := in.locate(where); err != nil {
				return err
			}
			return t.runImport(cmd.Context(), in)
		},
	}
	flags := cmd.Flags()
	in.locatedBy(cmd, &where)
	flags.BoolVar(&check, "check", false, "show what would be imported")
	flags.StringVar(&in.Compare, "compare", "", "compare the maps that Headscale has written to this `directory` with those after an import")
	flags.BoolVar(&in.Apply, "apply", false, "import")
	flags.BoolVar(&in.KeepWayBack, "keep-way-back", false, "keep Headscale's hashes of keys after their first use, for an export")
	return cmd
}

// runImport imports from Headscale, or checks or compares an import.
func (t *tool) runImport(ctx context.Context, in HeadscaleImport) error {
	c, err := t.ownConfig()
	if err != nil {
		return err
	}
	if in.Apply {
		if err := mustOwn(c.Noise.PrivateKeyPath, c.DERP.Server.PrivateKeyPath, databaseOf(c).SQLite); err != nil {
			return err
		}
	}
	if t.ImportHeadscale == nil {
		return errNoDatabases
	}
	in.Progress = func(step string) { t.note("%s", step) }
	ctx, stop := untilInterrupted(ctx)
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
	if c := r.Comparison; c != nil && c.Different > 0 {
		return fmt.Errorf("the maps of %s differ", count(c.Different, "node"))
	}
	return nil
}

func (t *tool) importClose() *cobra.Command {
	return &cobra.Command{
		Use:   "close",
		Short: "Delete the hashes of keys that only an export needs",
		Long: `Delete Headscale's hashes of all imported keys that have been used here, and
from now on of each imported key when it is first used. The command
"fairlead export headscale" then exports these keys as expired. The keys keep
working here. Run it when you no longer want to go back after an import with
--keep-way-back.

With SQLite, stop the server first.`,
		Example: "  fairlead import close",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.onOwnDatabase(cmd, t.CloseWayBack != nil, func(ctx context.Context, c *config.Config) error {
				n, err := t.CloseWayBack(ctx, c)
				if err != nil {
					return err
				}
				return t.show(struct {
					Deleted int `json:"deleted"`
				}{n}, fmt.Sprintf("Closed the way back: deleted the old hashes of %s\n", count(n, "key")))
			})
		},
	}
}

// locatedBy adds the flags that say where Headscale is. The value of --database is for locate.
func (in *HeadscaleImport) locatedBy(cmd *cobra.Command, database *string) {
	flags := cmd.Flags()
	flags.StringVar(&in.From, "from", in.From, "configuration `file` of Headscale")
	flags.StringVar(database, "database", "", "`database` of Headscale, if it is not the one in its configuration: a file or a postgres:// URL")
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
	case r.Comparison != nil:
		text.WriteString(comparisonText(r.Comparison))
	case r.Applied:
		fmt.Fprintf(&text, "Imported: %d added, %d changed, %d deleted\n", r.Added, r.Changed, r.Deleted)
	case len(r.Refusals)+len(r.PolicyProblems) == 0:
		text.WriteString("Ready to import with --apply\n")
	}
	return text.String()
}

// comparisonText returns the result of a comparison.
func comparisonText(c *HeadscaleComparison) string {
	var text strings.Builder
	if len(c.Missing) > 0 {
		fmt.Fprintf(&text, "Not compared, because Headscale has not sent them a map:\n  %s\n", strings.Join(c.Missing, ", "))
	}
	if len(c.Known) > 0 {
		text.WriteString("Expected differences:\n")
	}
	for _, k := range c.Known {
		fmt.Fprintf(&text, "  %s: %s\n", count(k.Nodes, "node"), k.Reason)
	}
	if len(c.Differences) > 0 {
		text.WriteString("Differences:\n")
	}
	nodes := map[string]map[string]bool{} // the nodes of each kind
	for _, d := range c.Differences {
		fmt.Fprintf(&text, "  node %s, %s: %s\n", d.Node, d.Kind, d.Text)
		if nodes[d.Kind] == nil {
			nodes[d.Kind] = map[string]bool{}
		}
		nodes[d.Kind][d.Node] = true
	}
	fmt.Fprintf(&text, "%s, %d equal, %d differ", count(c.Nodes, "node"), c.Equal, c.Different)
	for i, kind := range slices.Sorted(maps.Keys(nodes)) {
		separator := ", "
		if i == 0 {
			separator = " because of "
		}
		fmt.Fprintf(&text, "%s%s (%d)", separator, kind, len(nodes[kind]))
	}
	return text.String() + "\n"
}
