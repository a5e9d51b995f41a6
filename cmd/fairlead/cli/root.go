package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// Env is the environment of the commands.
type Env struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool                       // both stdin and stdout are terminals
	Size     func() (width, height int) // size of the terminal on stdout; nil or zeros if it is not a terminal
	Environ  []string                   // in the form of os.Environ
	Now      func() time.Time
	Build    Build
	// Browse opens a URL in a browser; nil if there is none.
	Browse func(ctx context.Context, url string) error
	// RepairClock sets the time of a database back to its clock, once agree has
	// returned nil.
	RepairClock func(ctx context.Context, c *config.Config, agree func(ClockRepair) error) (ClockRepair, error)
	// ImportHeadscale imports from Headscale, or checks an import.
	ImportHeadscale func(ctx context.Context, c *config.Config, in HeadscaleImport) (HeadscaleReport, error)
	// ReadHeadscale reads what Headscale's own database holds.
	ReadHeadscale func(ctx context.Context, c *config.Config, in HeadscaleImport) (HeadscaleNetwork, error)
	// CloseWayBack forgets the hashes of keys that only ExportHeadscale needs, and returns how many.
	CloseWayBack func(ctx context.Context, c *config.Config) (int, error)
	// ExportHeadscale writes a database for Headscale to a new file.
	ExportHeadscale func(ctx context.Context, c *config.Config, path string) (HeadscaleExport, error)
}

// Build identifies this binary.
type Build struct {
	Version string
	Commit  string
	Time    string
}

// tool is one run of the command line.
type tool struct {
	Env
	configFile string
	server     string
	apiKey     string
	format     format

	client      *apiclient.Client // nil before connect
	minRevision string            // the revision that responses must include
	oneLine     bool              // write JSON on one line
}

// New returns the command tree. The caller may add commands, and runs it with Execute.
func New(env Env) *cobra.Command {
	t := &tool{Env: env, format: formatTable}
	root := group(&cobra.Command{
		Use:   "fairlead",
		Short: "Fairlead, the coordination service for your private mesh",
		Long: `Fairlead, the coordination service for your private mesh.

"fairlead serve" runs the server. Most other commands connect to a running
server: through its local socket, or from another machine with --server and
--api-key, or after "fairlead login". Only backup, restore, db, import and
export open the database directly.

Exit status: 0 on success, 1 on failure, 2 on incorrect usage.`,
		Example: `  fairlead users create alice
  fairlead preauthkeys create --user alice
  fairlead nodes list --output json
  fairlead --server https://mesh.example.com --api-key "$KEY" users list`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	},
		t.users(), t.preAuthKeys(), t.apiKeys(), t.sessions(), t.nodes(), t.reservations(), t.routes(), t.dns(), t.auth(), t.policy(), t.ssh(), t.audit(), t.events(), t.webhooks(), t.relays(),
		t.backup(), t.restore(), t.db(), t.importing(), t.exporting(),
		t.setup(), t.login(), t.logout(), t.whoami(), t.health(), t.status(), t.cluster(), t.drain(), t.noiseKey(), t.version(), t.openapi(), t.debug(), t.config(), t.completion(), t.man(),
	)
	help := helpCommand()
	root.AddCommand(help)
	root.SetHelpCommand(help)
	root.Version = t.Build.Version
	root.SetVersionTemplate("fairlead {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of this binary")
	flags := root.PersistentFlags()
	flags.StringVar(&t.configFile, "config", "", "configuration `file` (default $FAIRLEAD_CONFIG, then /etc/fairlead/config.yaml)")
	flags.StringVar(&t.server, "server", "", "`URL` of the server (default $FAIRLEAD_CLI_SERVER, then the local socket)")
	flags.StringVar(&t.apiKey, "api-key", "", "API `key` for --server (default $FAIRLEAD_CLI_API_KEY, which hides the key from other users of this machine)")
	flags.VarP(&t.format, "output", "o", "output `format`: table, wide, json or yaml")
	complete(root, "output", cobra.FixedCompletions([]string{"table", "wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	complete(root, "server", cobra.NoFileCompletions)
	complete(root, "api-key", cobra.NoFileCompletions)

	root.SetIn(t.Stdin)
	root.SetOut(t.Stdout)
	root.SetErr(t.Stderr)
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(wrongFlag)
	return root
}

// Execute runs the command for args and returns the exit status. Any error before the command itself starts
// is a usage error.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	began := false
	eachCommand(root, func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				began = true
				return run(cmd, args)
			}
		}
	})
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		describePlainly(root)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var wrong usageError
	var problems config.Problems
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelpShown):
		return 2
	case errors.As(err, &problems):
		fmt.Fprintln(root.ErrOrStderr(), problems) // starts with a line that operators search for
		return 1
	case !began || errors.As(err, &wrong):
		text := printable(err.Error())
		if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
			text += " See "
		} else {
			text += "; see "
		}
		fmt.Fprintf(root.ErrOrStderr(), "Error: %s%s --help\n", text, cmd.CommandPath())
		return 2
	default:
		fmt.Fprintf(root.ErrOrStderr(), "Error: %s\n", printable(err.Error()))
		return 1
	}
}

func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, member := range cmd.Commands() {
		eachCommand(member, do)
	}
}

// errHelpShown means that a command was called without its subcommand, and its help was printed.
var errHelpShown = errors.New("help was shown")

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func wrongUsage(text string, args ...any) error {
	return usageError{fmt.Errorf(text, args...)}
}

// group makes cmd a command that only has subcommands. Calling it without one is a usage error.
func group(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), errHelpShown)
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// alsoAlone makes cmd a command that works by itself and also has subcommands.
func alsoAlone(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.Annotations = map[string]string{annotationAlone: "true"}
	return cmd
}

const annotationAlone = "alone"

// onlyHolds reports whether a command only has subcommands.
func onlyHolds(cmd *cobra.Command) bool {
	return cmd.HasAvailableSubCommands() && cmd.Annotations[annotationAlone] == ""
}

// helpCommand is an alternative to --help for people who type "help" first.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show help for a command",
		Example: "  fairlead help users create",
		RunE: func(cmd *cobra.Command, args []string) error {
			described, unknown, err := cmd.Root().Find(args)
			if err != nil || len(unknown) > 0 {
				return wrongUsage("unknown command %q", strings.Join(args, " "))
			}
			described.InitDefaultHelpFlag()
			return described.Help()
		},
	}
}

// takes accepts exactly the named arguments.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		for i, arg := range args {
			if i == len(names) {
				return fmt.Errorf("unexpected argument %q", arg)
			}
			if arg == "" {
				return fmt.Errorf("argument <%s> must not be empty", names[i])
			}
		}
		return missing(names[len(args):]...)
	}
}

// missing returns an error about arguments that were not given, or nil if there are none.
func missing(names ...string) error {
	switch len(names) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("missing argument <%s>", names[0])
	}
	return fmt.Errorf("missing arguments <%s>", strings.Join(names, "> <"))
}

// takesSome accepts one or more arguments of one kind.
func takesSome(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return missing(name)
		}
		return takes(slices.Repeat([]string{name}, len(args))...)(cmd, args)
	}
}

// complete sets the completion of a flag's value. The flag must exist.
func complete(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err)
	}
}

const helpWidth = 80

// usage prints the part of the help after the description.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n  " + synopsis(cmd) + "\n")
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, member := range cmd.Commands() {
			if member.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", max(12, member.NamePadding()+1), member.Name(), member.Short)
			}
		}
	}
	b.WriteString("\nFlags:\n" + cmd.LocalFlags().FlagUsagesWrapped(helpWidth))
	if cmd.HasInheritedFlags() {
		b.WriteString("\nGlobal flags:\n" + cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

func (t *tool) completion() *cobra.Command {
	scripts := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(t.Stdout, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(t.Stdout) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(t.Stdout, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(t.Stdout) },
	}
	return &cobra.Command{
		Use:   "completion <bash|zsh|fish|powershell>",
		Short: "Print a shell completion script",
		Long: `Print a completion script for your shell. It completes commands, flags, and
names such as those of users and nodes.

For bash, install the package bash-completion. For zsh, run compinit in your
.zshrc.`,
		Example: `  source <(fairlead completion bash)
  fairlead completion bash > /etc/bash_completion.d/fairlead
  fairlead completion zsh > "${fpath[1]}/_fairlead"
  fairlead completion fish > ~/.config/fish/completions/fairlead.fish`,
		Args:      takes("shell"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			script, ok := scripts[args[0]]
			if !ok {
				return wrongUsage("unknown shell %q: use bash, zsh, fish or powershell", args[0])
			}
			return script(cmd.Root())
		},
	}
}
