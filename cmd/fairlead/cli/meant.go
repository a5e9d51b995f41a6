package cli

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/spelling"
)

// elsewhere maps command names of similar tools to ours.
func elsewhere(command string) string {
	switch command {
	case "users destroy", "users remove":
		return "users delete"
	case "nodes register", "auth register":
		return "auth approve"
	case "nodes list-routes":
		return "routes list"
	case "nodes tags":
		return "nodes tag"
	case "nodes remove":
		return "nodes delete"
	case "preauthkeys revoke":
		return "preauthkeys expire"
	case "apikeys revoke":
		return "apikeys expire"
	case "machines", "machine", "devices":
		return "nodes"
	case "namespaces", "namespace":
		return "users"
	case "configtest":
		return "config check"
	}
	return ""
}

// unknownCommand returns an error about an unknown command, with the name that was probably meant.
func unknownCommand(group *cobra.Command, name string) error {
	_, inside, _ := strings.Cut(group.CommandPath(), " ")
	if meant := elsewhere(strings.TrimSpace(inside + " " + name)); meant != "" {
		return wrongUsage("unknown command %q. Did you mean \"%s %s\"?", name, group.Root().Name(), meant)
	}
	if near := group.SuggestionsFor(name); len(near) > 0 {
		return wrongUsage("unknown command %q. Did you mean \"%s\"?", name, strings.Join(near, `" or "`))
	}
	return wrongUsage("unknown command %q", name)
}

// wrongFlag says what to write instead of an invalid flag value, and adds the flag that was probably meant to the
// error about an unknown one. If the command itself is unknown, the error is about that instead.
func wrongFlag(cmd *cobra.Command, err error) error {
	if parts := invalidValue.FindStringSubmatch(err.Error()); parts != nil {
		return wrongUsage("invalid %s %s: %s", parts[2], parts[1], flagAdvice(cmd, strings.TrimPrefix(parts[2], "--"), err, parts[3]))
	}
	var unknown interface {
		GetSpecifiedName() string
		GetSpecifiedShortnames() string
	}
	if !errors.As(err, &unknown) {
		return err
	}
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return unknownCommand(cmd, before[0])
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		if meant := longFlags(cmd, name); len(meant) > 0 {
			return wrongUsage("unknown flag -%s. Did you mean %s?", name, strings.Join(meant, " or "))
		}
		return wrongUsage("unknown flag -%s", name)
	}
	if meant := spelling.Nearest(name, flagNames(cmd), max(1, len(name)/3)); meant != "" {
		return wrongUsage("unknown flag --%s. Did you mean --%s?", name, meant)
	}
	return wrongUsage("unknown flag --%s", name)
}

// invalidValue matches the error about the value of a flag: the quoted value, the flag and the reason.
var invalidValue = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)

// flagAdvice says what to write as the value of a flag, which the errors of package strconv do not.
func flagAdvice(cmd *cobra.Command, name string, err error, reason string) string {
	var number *strconv.NumError
	switch flag := cmd.Flag(name); {
	case !errors.As(err, &number):
		return reason
	case flag != nil && flag.Value.Type() == "bool":
		return "use true or false"
	}
	return "use a number"
}

// longFlags returns the flags that one letter may stand for: those that start with it, and --user for n,
// which used to mean namespace.
func longFlags(cmd *cobra.Command, letter string) (found []string) {
	for _, name := range flagNames(cmd) {
		if strings.HasPrefix(name, letter) || letter == "n" && name == "user" {
			found = append(found, "--"+name)
		}
	}
	return found
}

// describedFlag matches the name of a flag in the help text for flags.
var describedFlag = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// flagNames returns the flags that the help of cmd shows, its own first.
func flagNames(cmd *cobra.Command) (names []string) {
	for _, found := range describedFlag.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), -1) {
		names = append(names, found[1])
	}
	return names
}
