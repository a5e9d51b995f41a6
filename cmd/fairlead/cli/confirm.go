package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// confirmable adds --force to a command that destroys something, and returns
// the flag. Without a terminal the command needs it: see confirm.
func confirmable(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "do not ask; required without a terminal")
}

// confirmableUnlessNamed is confirmable for a command that takes all nodes that a
// flag finds, and skippable when it names them.
func confirmableUnlessNamed(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "do not ask; required without a terminal unless the nodes are named")
}

// skippable adds --force to a command that asks a person and no script: see
// confirmPerson.
func skippable(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "do not ask (without a terminal nothing is asked)")
}

// confirm asks before something is destroyed. Without a terminal nobody could
// answer, so --force must say it: a script that names the wrong thing, or finds more
// than its author thought of, stops here.
func (t *tool) confirm(force bool, question string) error {
	if !force && !t.Terminal {
		return wrongUsage("without a terminal this needs --force (%s); nothing was changed", question)
	}
	return t.confirmPerson(force, question)
}

// confirmPerson asks before something that can be undone, or that names each
// object and only ends it. Scripts go on.
func (t *tool) confirmPerson(force bool, question string) error {
	if force || !t.Terminal {
		return nil
	}
	fmt.Fprintf(t.Stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(t.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed, nothing was changed; answer y, or use --force")
	}
}
