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
	return forceFlag(cmd, "required without a terminal")
}

// confirmableUnlessNamed is like confirmable if a flag selects all nodes, and like
// skippable if nodes are given by name.
func confirmableUnlessNamed(cmd *cobra.Command) *bool {
	return forceFlag(cmd, "required without a terminal, except for nodes given as arguments")
}

// skippable adds --force to a command that asks a person but not a script: see
// confirmPerson.
func skippable(cmd *cobra.Command) *bool {
	return forceFlag(cmd, "implied without a terminal")
}

// forceFlag adds --force; rule describes the behaviour without a terminal.
func forceFlag(cmd *cobra.Command, rule string) *bool {
	return cmd.Flags().Bool("force", false, "skip confirmation; "+rule)
}

// confirm asks before something is destroyed. Without a terminal nobody can answer,
// so --force is required: a script that names the wrong object, or matches more than
// its author expected, stops here.
func (t *tool) confirm(force bool, question string) error {
	if !force && !t.Terminal {
		return wrongUsage("without a terminal, this command needs --force; nothing was changed. It would ask: %s", question)
	}
	return t.confirmPerson(force, question)
}

// confirmIf is confirm for what is destructive, and confirmPerson for the rest.
func (t *tool) confirmIf(destructive, force bool, question string) error {
	if destructive {
		return t.confirm(force, question)
	}
	return t.confirmPerson(force, question)
}

// confirmPerson asks before a change that can be undone, or that only expires objects
// given by name. Without a terminal it does not ask.
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
		return errors.New("not confirmed; nothing was changed. To confirm, answer y or use --force")
	}
}
