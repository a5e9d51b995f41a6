package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// confirmable adds --force to a command that destroys something, and returns
// the flag.
func confirmable(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "do not ask (without a terminal nothing is asked)")
}

// asks is whether confirm would.
func (t *tool) asks(force bool) bool { return t.Terminal && !force }

// confirm asks before something is destroyed. Without a person at the terminal
// nobody could answer, so scripts go on.
func (t *tool) confirm(force bool, question string) error {
	if !t.asks(force) {
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
