package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func (t *tool) policyPreview() *cobra.Command {
	var viewer string
	var retag, tags []string
	cmd := &cobra.Command{
		Use:   "preview <file>",
		Short: "Show what a policy would change, without saving it",
		Long: `Show what a policy would change for the existing nodes: who would gain or lose
access, because of which lines, and warnings about risky changes. Nothing is
saved.

A pair is a node and another node that it can reach. A pair has changed if its
open ports have changed.

New connections follow a change immediately. Open connections may continue until
they are closed.

With --retag, show the effect of changing the tags of these nodes. Without a
file, the current policy applies.`,
		Example: `  fairlead policy preview policy.hujson
  fairlead policy preview policy.hujson --viewer alice
  fairlead policy preview --retag db-1 --tags tag:db,tag:prod`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(retag) > 0 {
				return nil
			}
			return takes("file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			request := apiclient.PolicyPreviewRequest{Viewer: ifSet(viewer)}
			file := ""
			if len(args) > 0 {
				file = args[0]
				text, err := t.readGoodPolicy(file)
				if err != nil {
					return err
				}
				request.Policy = &text
			}
			if len(retag) > 0 {
				request.Retag = &apiclient.PolicyRetag{Nodes: retag, Tags: append([]string{}, tags...)}
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			effect, err := decode[apiclient.PolicyEffect](t.withPlaces(file)(answer(client.PreviewPolicy(cmd.Context(), request))))
			if err != nil {
				return err
			}
			return t.show(effect, effectText(effect))
		},
	}
	cmd.Flags().StringVar(&viewer, "viewer", "", "warn if this `node or user` would lose access")
	cmd.Flags().StringSliceVar(&retag, "retag", nil, "`nodes` to preview with the tags in --tags, by ID or name")
	cmd.Flags().StringSliceVar(&tags, "tags", nil, "`tags` for the nodes in --retag, replacing their tags or owner")
	complete(cmd, "viewer", t.completeUserFlag)
	return cmd
}

// effectSummary returns what a person needs to know before saving.
func effectSummary(e apiclient.PolicyEffect) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Pairs of nodes: %d lost, %d gained, %d changed, %d unchanged\n", e.Lost, e.Gained, e.Changed, e.Unchanged)
	if e.Losers > 0 {
		fmt.Fprintf(&b, "Nodes with less access: %d (%d online)\n", e.Losers, e.LosersOnline)
	}
	if n := len(e.Shells) + e.MoreShells; n > 0 {
		fmt.Fprintf(&b, "Changes to SSH access: %d\n", n)
	}
	if n := len(e.Routes) + e.MoreRoutes; n > 0 {
		fmt.Fprintf(&b, "Changes behind routers and exit nodes: %d\n", n)
	}
	for _, f := range e.Tests {
		fmt.Fprintf(&b, "Failing: %s\n", f.Text)
	}
	if everythingLost(e) {
		b.WriteString("Warning: with this policy, nobody can reach anyone\n")
	}
	for _, g := range e.Guards {
		fmt.Fprintf(&b, "Warning: %s\n", g.Text)
	}
	if e.Truncated {
		b.WriteString("Warning: the policy distinguishes too many kinds of nodes to compare all pairs; this result is incomplete\n")
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "Note: %s\n", note)
	}
	return b.String()
}

// everythingLost reports whether a change removes all access. The server's guards do not cover nodes that have
// neither tags nor routes.
func everythingLost(e apiclient.PolicyEffect) bool {
	return e.Lost > 0 && e.Gained+e.Changed+e.Unchanged == 0
}

// effectText returns the complete effect.
func effectText(e apiclient.PolicyEffect) string {
	text := effectSummary(e)
	section := func(title, rows string, more int) {
		text += "\n" + title + "\n" + rows
		if more > 0 {
			text += fmt.Sprintf("and %d more\n", more)
		}
	}
	if len(e.Shifts) > 0 {
		section("Access between nodes:", table("FROM, TO, PAIRS, LOST, GAINED, OLD LINES, NEW LINES", e.Shifts, func(s apiclient.PolicyShift) []string {
			return []string{
				principals(s.From, false), principals(s.To, s.Own), strconv.Itoa(s.Pairs), strings.Join(s.Lost, ", "), strings.Join(s.Gained, ", "),
				numbers(s.LostLines), numbers(s.GainedLines),
			}
		}), e.MoreShifts)
	}
	if len(e.Shells) > 0 {
		section("SSH access:", table("FROM, TO, PAIRS, LOST, GAINED, OLD LINES, NEW LINES", e.Shells, func(s apiclient.PolicyShellShift) []string {
			return []string{
				principals(s.From, false), principals(s.To, s.Own), strconv.Itoa(s.Pairs), shellUsers(s.Lost), shellUsers(s.Gained),
				numbers(s.LostLines), numbers(s.GainedLines),
			}
		}), e.MoreShells)
	}
	if len(e.Routes) > 0 {
		section("Behind routers and exit nodes:", table("FROM, TO, THROUGH, LOST, GAINED, OLD LINES, NEW LINES", e.Routes, func(r apiclient.PolicyRouteShift) []string {
			var through []string
			for _, n := range r.Through {
				through = append(through, n.Name)
			}
			return []string{
				principals(r.From, false), r.Prefix, strings.Join(through, ", "), strings.Join(r.Lost, ", "), strings.Join(r.Gained, ", "),
				numbers(r.LostLines), numbers(r.GainedLines),
			}
		}), e.MoreRoutes)
	}
	return text
}

// principals lists some of the people or tags, and the number of the others.
func principals(p apiclient.Principals, own bool) string {
	const shown = 3
	names := p.Names[:min(len(p.Names), shown)]
	text := strings.Join(names, ", ")
	if more := p.Count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if own {
		text += " (own nodes)"
	}
	return text
}

func shellUsers(users []apiclient.ShellUser) string {
	var names []string
	for _, u := range users {
		if u.Check {
			u.Name += " (check)"
		}
		names = append(names, u.Name)
	}
	return strings.Join(names, ", ")
}

func numbers(list []int) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

func (t *tool) policyWhy() *cobra.Command {
	var proto, file string
	cmd := &cobra.Command{
		Use:   "why <from> <to>[:<port>]",
		Short: "Explain why access is allowed or denied",
		Long: `Explain why <from> can or cannot reach <to>: the rule that allows it, or the
rules that come closest and what they lack.

<from> and <to> are each a node (name, ID or address), a user (name or email), a
tag, a group, a host defined in the policy, or any address. If you omit the
port, access counts as allowed when any port is reachable. With --policy, a file
is used instead of the current policy; nothing is saved.

The exit status is 0 whether or not access is allowed; scripts can read
"allowed" in --output json.`,
		Example: `  fairlead policy why alice db-1:5432
  fairlead policy why tag:ci 10.1.2.3:443
  fairlead policy why alice db-1:5432 --output json | jq .allowed
  fairlead policy why alice db-1:5432 --policy policy.hujson
  fairlead policy why laptop [fd7a:115c:a1e0::2]:53 --proto udp`,
		Args:              takes("from", "to"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, port := splitPort(args[1])
			result, err := t.why(cmd.Context(), apiclient.PolicyQuestion{From: args[0], To: to, Port: ifSet(port), Proto: ifSet(proto)}, file)
			if err != nil {
				return err
			}
			anyPort := port == "" && slices.Contains([]string{"", "tcp", "udp", "sctp"}, strings.ToLower(proto))
			return t.show(result, answerText(result, anyPort))
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "use this `file` instead of the current policy")
	cmd.Flags().StringVar(&proto, "proto", "", "`protocol` by name or number (default tcp)")
	complete(cmd, "proto", cobra.FixedCompletions([]string{"tcp", "udp", "icmp", "sctp"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// why asks the server about the current policy, or about a file.
func (t *tool) why(ctx context.Context, q apiclient.PolicyQuestion, file string) (result apiclient.PolicyAnswer, err error) {
	if file != "" {
		if q.Policy, err = t.readGoodPolicy(file); err != nil {
			return result, err
		}
	}
	client, err := t.connect()
	if err != nil {
		return result, err
	}
	if file != "" {
		return decode[apiclient.PolicyAnswer](t.withPlaces(file)(answer(client.AskPolicy(ctx, q))))
	}
	return decode[apiclient.PolicyAnswer](answer(client.WhyPolicy(ctx, &apiclient.WhyPolicyParams{From: q.From, To: q.To, Port: q.Port, Proto: q.Proto})))
}

// splitPort splits the port from a source or destination. Addresses and tags may also contain colons.
func splitPort(text string) (end, port string) {
	if _, err := netip.ParseAddr(text); err == nil {
		return text, ""
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 || slices.Contains([]string{"tag", "group", "autogroup"}, text[:i]) || lang.CheckTag(text) == nil {
		return text, ""
	}
	return text[:i], text[i+1:]
}

func answerText(a apiclient.PolicyAnswer, anyPort bool) string {
	var b strings.Builder
	switch {
	case !a.Allowed:
		b.WriteString("Not allowed\n")
	case anyPort && len(a.Rules) > 0 && a.Rules[0].Line > 0:
		b.WriteString("Allowed on at least one port\n")
	default:
		b.WriteString("Allowed\n")
	}
	findings := func(list []apiclient.PolicyFinding) {
		for _, f := range list {
			place := "  "
			if f.Line > 0 {
				place = fmt.Sprintf("  line %d (%s): ", f.Line, f.List)
			}
			b.WriteString(place + f.Text + "\n")
			if f.Comment != "" {
				b.WriteString("    // " + f.Comment + "\n")
			}
		}
	}
	notes := func() {
		for _, note := range a.Notes {
			b.WriteString("  " + note + "\n")
		}
	}
	if a.Allowed {
		findings(a.Rules)
		notes()
	} else {
		notes() // the notes say why it does not work
		if len(a.Rules) > 0 {
			b.WriteString("Rules that would allow it:\n")
			findings(a.Rules)
		}
	}
	if len(a.Nearest) > 0 {
		b.WriteString("Closest rules:\n")
		findings(a.Nearest)
	}
	if len(a.At) > 0 {
		var names []string
		for _, n := range a.At {
			names = append(names, n.Name)
		}
		b.WriteString("Through " + strings.Join(names, ", ") + "\n")
	}
	return b.String()
}

func (t *tool) policyTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test [<file>]",
		Short: "Run the tests of the current policy or of a file",
		Long: `Run the tests and sshTests of the current policy, or of a policy file, against
the current state of the network. The exit status is 1 if a test fails. Nothing
is saved.`,
		Example: `  fairlead policy test
  fairlead policy test policy.hujson`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, text := "the current policy", ""
			if len(args) > 0 {
				file = args[0]
				var err error
				if text, err = t.readGoodPolicy(file); err != nil {
					return err
				}
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			result, err := decode[apiclient.PolicyTestResult](t.withPlaces(file)(answer(client.TestPolicy(cmd.Context(), apiclient.PolicyTestRequest{Policy: ifSet(text)}))))
			if err != nil {
				return err
			}
			var lines strings.Builder
			for _, f := range result.Failures {
				fmt.Fprintln(&lines, f.Text)
			}
			switch {
			case result.Tests == 0:
				lines.WriteString("The policy has no tests\n")
			case len(result.Failures) == 0:
				fmt.Fprintf(&lines, "%s passed\n", count(result.Tests, "test"))
			}
			if err := t.show(result, lines.String()); err != nil {
				return err
			}
			if n := len(result.Failures); n > 0 {
				return errors.New(count(n, "failure") + " in " + count(result.Tests, "test"))
			}
			return nil
		},
	}
}
