package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

func (t *tool) man() *cobra.Command {
	var dir, markdown string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "Write the manual",
		Long: `Write the manual: a page for each command into a directory, for man, or all of
it into one file of Markdown.`,
		Example: `  fairlead man --dir /usr/local/share/man/man1
  fairlead man --markdown cli.md`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (dir == "") == (markdown == "") {
				return wrongUsage("give either --dir or --markdown")
			}
			commands := described(cmd.Root())
			if markdown != "" {
				return os.WriteFile(markdown, []byte(referenceOf(commands)), 0o644)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			var failed error
			for _, c := range commands {
				file := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
				failed = errors.Join(failed, os.WriteFile(file, []byte(t.manPage(c)), 0o644))
			}
			if failed == nil {
				t.note("Wrote %s into %s", count(len(commands), "page"), dir)
			}
			return failed
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write pages for man into this `directory`")
	cmd.Flags().StringVar(&markdown, "markdown", "", "write Markdown into this `file`")
	return cmd
}

// described lists a command and all visible commands below it.
func described(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	eachCommand(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.IsAvailableCommand() {
			cmd.InitDefaultHelpFlag()
			list = append(list, cmd)
		}
	})
	return list
}

// description returns the full description of a command.
func description(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// synopsis returns how a command is called, without the flags.
func synopsis(cmd *cobra.Command) string {
	if onlyHolds(cmd) {
		return cmd.CommandPath() + " <command>"
	}
	return cmd.UseLine()
}

// referenceOf describes all commands in one Markdown file.
func referenceOf(commands []*cobra.Command) string {
	root := commands[0]
	var b strings.Builder
	b.WriteString("<!-- Written by fairlead man --markdown; run make gen. -->\n\n# The command line\n\n")
	b.WriteString(markdownText(root.Long) + "\n\n")
	b.WriteString("```sh\n" + unindented(root.Example) + "\n```\n\nEvery command takes these flags:\n\n")
	b.WriteString("```text\n" + root.PersistentFlags().FlagUsagesWrapped(helpWidth) + "```\n\n")
	b.WriteString("| command | does |\n|---|---|\n")
	for _, c := range commands[1:] {
		if !onlyHolds(c) {
			path := c.CommandPath()
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), markdownText(c.Short))
		}
	}
	for _, c := range commands[1:] {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.CommandPath(), markdownText(description(c)))
		if onlyHolds(c) {
			continue
		}
		fmt.Fprintf(&b, "\n```text\n%s\n```\n\n```sh\n%s\n```\n", synopsis(c), unindented(c.Example))
		if flags := ownFlags(c); flags != "" {
			b.WriteString("\n```text\n" + flags + "```\n")
		}
	}
	return b.String()
}

// ownFlags describes the flags of a command except --help.
func ownFlags(cmd *cobra.Command) string {
	help := cmd.Flags().Lookup("help")
	hidden := help.Hidden
	help.Hidden = true
	defer func() { help.Hidden = hidden }()
	return cmd.NonInheritedFlags().FlagUsagesWrapped(helpWidth)
}

func unindented(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

var markdownMark = regexp.MustCompile("[\\\\`*_<>|\\[\\]]")

func markdownText(text string) string {
	return markdownMark.ReplaceAllString(strings.TrimSpace(text), `\$0`)
}

// manPage returns the man page of a command.
func (t *tool) manPage(cmd *cobra.Command) string {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var b strings.Builder
	section := func(title, text string) {
		fmt.Fprintf(&b, ".SH %s\n%s\n", title, text)
	}
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Fairlead\"\n", strings.ToUpper(name), "fairlead "+t.Build.Version)
	section("NAME", manText(name)+` \- `+manText(cmd.Short))
	section("SYNOPSIS", ".B "+manText(synopsis(cmd)))
	section("DESCRIPTION", manText(description(cmd)))
	if cmd.HasAvailableSubCommands() {
		var members []string
		for _, member := range cmd.Commands() {
			if member.IsAvailableCommand() {
				members = append(members, fmt.Sprintf(".TP\n.BR %s (1)\n%s", manText(name+"-"+member.Name()), manText(member.Short)))
			}
		}
		section("COMMANDS", strings.Join(members, "\n"))
	}
	section("OPTIONS", verbatim(cmd.LocalFlags().FlagUsagesWrapped(helpWidth)))
	if cmd.HasInheritedFlags() {
		section("GLOBAL OPTIONS", verbatim(cmd.InheritedFlags().FlagUsagesWrapped(helpWidth)))
	}
	section("EXAMPLES", verbatim(cmd.Example))
	section("EXIT STATUS", "0 done, 1 failed, 2 wrong usage.")
	if cmd.HasParent() {
		section("SEE ALSO", fmt.Sprintf(".BR %s (1)", manText(strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))))
	}
	return b.String()
}

// verbatim formats a text whose line breaks must be kept.
func verbatim(text string) string {
	return ".nf\n" + manText(strings.TrimRight(text, "\n")) + "\n.fi"
}

// manText escapes text for man.
func manText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case strings.HasPrefix(line, "."), strings.HasPrefix(line, "'"):
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
