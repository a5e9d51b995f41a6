package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

const defaultSocket = "/run/fairlead/fairlead.sock"

// socket returns the path of the server's local socket. People who may use the socket need not be able to
// read the configuration, which contains secrets.
func (t *tool) socket() string {
	c, err := config.Load(t.configFile, t.Environ)
	if err == nil {
		return c.UnixSocket
	}
	path := cmp.Or(t.getenv("FAIRLEAD_UNIX_SOCKET"), defaultSocket)
	unread := "the configuration"
	if problems := config.Problems(nil); errors.As(err, &problems) && len(problems) > 0 {
		unread = problems[0].File
	}
	fmt.Fprintf(t.Stderr, "Warning: cannot read %s (see fairlead config check); using the socket %s\n", unread, path)
	return path
}

func (t *tool) config() *cobra.Command {
	return group(&cobra.Command{
		Use:     "config",
		Short:   "Check the configuration",
		Example: "  fairlead config check",
	}, t.configCheck())
}

func (t *tool) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration without a server",
		Long: `Check the configuration, the certificate, and the policy file if there is one,
without a running server. Every problem is reported with its file and line. The
exit status is 0 if the server would start. Warnings point out settings that
will not work or are unsafe, such as a key file that other users can read. If a
server is reachable, the command also warns about users in the policy file that
do not exist there.`,
		Example: `  fairlead config check
  fairlead config check --config ./config.yaml`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(t.configFile, t.Environ)
			if err != nil {
				return err
			}
			if err := c.Check(); err != nil {
				return err
			}
			if c.Policy.Mode == "file" {
				text, err := t.readGoodPolicy(c.Policy.Path)
				if err != nil {
					return err
				}
				doc, _ := lang.Parse([]byte(text))
				warnings, problems := t.askAboutPolicy(cmd, text, doc)
				t.tellWarnings(c.Policy.Path, warnings)
				if err := t.tellProblems(c.Policy.Path, problems); err != nil {
					return err
				}
			}
			return t.show(checkResult{File: c.File, Warnings: lines(c.Warnings)}, c.Report())
		},
	}
}

// checkResult is the output for a configuration without problems.
type checkResult struct {
	File     string   `json:"file"`
	Warnings []string `json:"warnings"`
}

func lines(problems []config.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}
