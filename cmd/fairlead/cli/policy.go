package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

func (t *tool) policy() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "Say who may reach whom",
		Long: `Say who may reach whom: check, save, compare and explain the access policy.

A file is JSON with comments. Every saved text is a version that stays; only one
is in force.`,
		Example: `  fairlead policy check policy.hujson
  fairlead policy preview policy.hujson
  fairlead policy set policy.hujson --confirm-within 5m
  fairlead policy confirm
  fairlead policy why alice db-1:5432`,
	}, t.policyCheck(), t.policyGet(), t.policySet(), t.policyConfirm(), t.policyRevert(), t.policyHistory(), t.policyDiff(), t.policyRollback(),
		t.policyPreview(), t.policyWhy(), t.policyTest())
}

// readPolicy reads a file, or what is piped in for "-".
func (t *tool) readPolicy(file string) (string, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(t.Stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	return string(text), err
}

// readGoodPolicy reads a file and tells everything that is wrong with it.
func (t *tool) readGoodPolicy(file string) (string, error) {
	text, err := t.readPolicy(file)
	if err != nil {
		return "", err
	}
	_, problems := policy.Parse([]byte(text))
	found := make([]apiclient.PolicyProblem, len(problems))
	for i, p := range problems {
		found[i] = apiclient.PolicyProblem{Line: p.Line, Column: p.Column, Text: p.Text}
	}
	return text, t.tellProblems(file, found)
}

// tellProblems prints problems of a policy in the form in which editors find the
// place, and returns an error if there are any.
func (t *tool) tellProblems(file string, problems []apiclient.PolicyProblem) error {
	if len(problems) == 0 {
		return nil
	}
	if file == "-" {
		file = "standard input"
	}
	for _, p := range problems {
		place := file
		for _, n := range []int{p.Line, p.Column} {
			if n > 0 {
				place += fmt.Sprintf(":%d", n)
			}
		}
		fmt.Fprintln(t.Stderr, printable(place+": "+p.Text))
	}
	return fmt.Errorf("%s has %s", file, count(len(problems), "problem"))
}

// placed tells problems that the server found in a text where they are: they are
// no wrong usage.
func (t *tool) placed(file string) func(body []byte, err error) ([]byte, error) {
	return func(body []byte, err error) ([]byte, error) {
		var problem apiclient.Problem
		if err != nil && json.Unmarshal(body, &problem) == nil && len(problem.Problems) > 0 {
			err = t.tellProblems(file, problem.Problems)
		}
		return body, err
	}
}

func (t *tool) policyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check <file>",
		Short: "Report every problem of a policy file, without a server",
		Long: `Report every problem of a policy file with its line and column, without a
running server. Exit status 0 if it has none. The tests in the file are run when
it is saved, and by fairlead policy test.`,
		Example: `  fairlead policy check policy.hujson
  fairlead policy check - < policy.hujson`,
		Args: takes("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := t.readGoodPolicy(args[0])
			if err != nil {
				return err
			}
			doc, _ := policy.Parse([]byte(text))
			result := policyCheckResult{
				File: args[0], Rules: len(doc.Rules()), SSHRules: len(doc.SSH()), Tests: len(doc.Tests()) + len(doc.SSHTests()),
			}
			return t.show(result, fmt.Sprintf("%s: no problems; %s, %s, %s\n", result.File,
				count(result.Rules, "rule"), count(result.SSHRules, "SSH rule"), count(result.Tests, "test")))
		},
	}
}

// policyCheckResult is a policy file without problems.
type policyCheckResult struct {
	File     string `json:"file"`
	Rules    int    `json:"rules"`
	SSHRules int    `json:"sshRules"`
	Tests    int    `json:"tests"`
}

func (t *tool) policyGet() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Print the policy in force, or an earlier version",
		Example: `  fairlead policy get
  fairlead policy get > policy.hujson
  fairlead policy get --version 6`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			p, err := getPolicy(cmd.Context(), client, version)
			if err != nil {
				return err
			}
			return t.showText(p, p.Policy)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "`number` of the version")
	complete(cmd, "version", t.completeVersions)
	return cmd
}

func getPolicy(ctx context.Context, client *apiclient.Client, version string) (apiclient.Policy, error) {
	if version != "" {
		return decode[apiclient.Policy](answer(client.GetPolicyVersion(ctx, version)))
	}
	return decode[apiclient.Policy](answer(client.GetPolicy(ctx)))
}

// showText is show for a text that must arrive as it is, except at a terminal.
func (t *tool) showText(value any, text string) error {
	if t.format != formatTable {
		return t.show(value, "")
	}
	if t.Terminal {
		if text = strings.ReplaceAll(text, "\t", "    "); !strings.HasSuffix(text, "\n") && text != "" {
			text += "\n"
		}
		text = printable(text)
	}
	_, err := io.WriteString(t.Stdout, text)
	return err
}

// saving is what the commands have in common that save a policy.
type saving struct {
	reason, ifVersion string
	confirmWithin     time.Duration
	force             *bool
}

func (s *saving) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.reason, "reason", "", "`text` for those who read the versions later, in one line")
	cmd.Flags().StringVar(&s.ifVersion, "if-version", "", "save only if this `version` is in force; 0 if there must be none")
	cmd.Flags().DurationVar(&s.confirmWithin, "confirm-within", 0, "go back after this `time`, 10s to 24h, unless confirmed")
	for _, flag := range []string{"reason", "if-version", "confirm-within"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	s.force = confirmable(cmd)
}

func (s *saving) ifMatch() *string {
	if s.ifVersion == "" {
		return nil
	}
	return ifSet(`"` + s.ifVersion + `"`)
}

func (s *saving) within() *string {
	if s.confirmWithin == 0 {
		return nil
	}
	return ifSet(s.confirmWithin.String())
}

func (t *tool) policySet() *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use:   "set <file>",
		Short: "Save a policy; it is in force at once",
		Long: `Save a policy, from a file, or from standard input with -. It is in force at
once.

At a terminal the effect is shown first, and you are asked when the change could
lock somebody out or opens everything. With --confirm-within the change undoes
itself unless you run fairlead policy confirm in time.`,
		Example: `  fairlead policy set policy.hujson --reason "operations reach the databases"
  fairlead policy set policy.hujson --confirm-within 5m
  fairlead policy get > p.hujson && vi p.hujson && fairlead policy set p.hujson`,
		Args: takes("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := t.readGoodPolicy(args[0])
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			if err := t.previewed(cmd.Context(), client, args[0], text, *s.force); err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](t.placed(args[0])(answer(client.SetPolicy(cmd.Context(), &apiclient.SetPolicyParams{IfMatch: s.ifMatch()},
				apiclient.PolicyDraft{Policy: text, Reason: ifSet(s.reason), ConfirmWithin: s.within()}))))
			if err != nil {
				return err
			}
			return t.showSaved(p)
		},
	}
	s.flags(cmd)
	return cmd
}

// previewed shows a person what a text would change, and asks when that is
// dangerous.
func (t *tool) previewed(ctx context.Context, client *apiclient.Client, file, text string, force bool) error {
	if !t.Terminal || force {
		return nil
	}
	effect, err := decode[apiclient.PolicyEffect](t.placed(file)(answer(client.PreviewPolicy(ctx, apiclient.PolicyPreviewRequest{Policy: text}))))
	if err != nil {
		return err
	}
	t.note("%s", strings.TrimSuffix(effectSummary(effect), "\n"))
	if len(effect.Guards) == 0 {
		return nil
	}
	return t.confirm(force, "Save it all the same?")
}

func (t *tool) showSaved(p apiclient.Policy) error {
	text := fmt.Sprintf("Version %s of the policy is in force\n", p.Version)
	if p.ConfirmBy != nil {
		back := "version " + p.RevertTo
		if p.RevertTo == "0" {
			back = "no policy at all"
		}
		text += fmt.Sprintf("At %s it gives way to %s, unless you keep it with: fairlead policy confirm\n", timeText(*p.ConfirmBy), back)
	}
	return t.show(p, text)
}

func (t *tool) policyConfirm() *cobra.Command {
	return &cobra.Command{
		Use:     "confirm",
		Short:   "Keep the version that waits to be confirmed",
		Example: "  fairlead policy confirm",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](answer(client.ConfirmPolicy(cmd.Context())))
			if err != nil {
				return err
			}
			return t.show(p, fmt.Sprintf("Version %s of the policy stays\n", p.Version))
		},
	}
}

func (t *tool) policyRevert() *cobra.Command {
	return &cobra.Command{
		Use:     "revert",
		Short:   "Undo the version that waits to be confirmed, at once",
		Example: "  fairlead policy revert",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](answer(client.RevertPolicy(cmd.Context())))
			if err != nil {
				return err
			}
			return t.show(p, fmt.Sprintf("What was in force before is version %s now\n", p.Version))
		},
	}
}

func (t *tool) policyRollback() *cobra.Command {
	var s saving
	cmd := &cobra.Command{
		Use:   "rollback <version>",
		Short: "Save the text of an earlier version again",
		Long: `Save the text of an earlier version again, as a new version. All is as with
fairlead policy set.`,
		Example: `  fairlead policy rollback 6
  fairlead policy rollback 6 --reason "the databases were unreachable"`,
		Args:              takes("version"),
		ValidArgsFunction: t.completeVersions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			file := "version " + args[0]
			old, err := getPolicy(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if old.Policy != "" { // a version without a policy has no effect to show but everything
				if err := t.previewed(cmd.Context(), client, file, old.Policy, *s.force); err != nil {
					return err
				}
			} else if err := t.confirm(*s.force, "There was no policy: everyone may reach everyone again. Go back to that?"); err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](t.placed(file)(answer(client.RollbackPolicy(cmd.Context(), &apiclient.RollbackPolicyParams{IfMatch: s.ifMatch()},
				apiclient.PolicyRollback{Version: args[0], Reason: ifSet(s.reason), ConfirmWithin: s.within()}))))
			if err != nil {
				return err
			}
			return t.showSaved(p)
		},
	}
	s.flags(cmd)
	return cmd
}

func (t *tool) policyHistory() *cobra.Command {
	var limit, before string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions of the policy, newest first",
		Example: `  fairlead policy history
  fairlead policy history --before 20 --limit 10`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			list, err := decode[apiclient.PolicyVersionList](answer(client.ListPolicyVersions(cmd.Context(),
				&apiclient.ListPolicyVersionsParams{Before: ifSet(before), Limit: ifSet(limit)})))
			if err != nil {
				return err
			}
			return t.show(list.Versions, table("VERSION, SAVED, AUTHOR, SOURCE, CONFIRM BY, REASON", list.Versions, func(v apiclient.PolicyVersion) []string {
				return []string{v.Version, timeText(v.SavedAt), v.Author, string(v.Source), optionalTimeText(v.ConfirmBy), v.Reason}
			}))
		},
	}
	cmd.Flags().StringVar(&limit, "limit", "20", "how `many`, at most 100")
	cmd.Flags().StringVar(&before, "before", "", "only versions below this `number`")
	complete(cmd, "limit", cobra.NoFileCompletions)
	complete(cmd, "before", t.completeVersions)
	return cmd
}

func (t *tool) policyDiff() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "diff [<from> [<to>]]",
		Short: "Compare versions of the policy line by line",
		Long: `Compare two versions of the policy line by line: the last change without
arguments, from one version to the one in force with one. With --file, compare
the one in force with a file.`,
		Example: `  fairlead policy diff
  fairlead policy diff 3 6
  fairlead policy diff --file policy.hujson`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case file != "" && len(args) > 0:
				return errors.New("give either versions or --file")
			case len(args) > 2:
				return fmt.Errorf("unexpected argument %q", args[2])
			}
			return nil
		},
		ValidArgsFunction: t.completeVersions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			if file != "" {
				return t.diffFile(cmd.Context(), client, file)
			}
			var params apiclient.DiffPoliciesParams
			for i, side := range []**string{&params.From, &params.To} {
				if i < len(args) {
					*side = ifSet(args[i])
				}
			}
			diff, err := decode[apiclient.PolicyDiff](answer(client.DiffPolicies(cmd.Context(), &params)))
			if err != nil {
				return err
			}
			return t.showText(diff, diff.Diff)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "compare the policy in force with this `file`")
	return cmd
}

func (t *tool) diffFile(ctx context.Context, client *apiclient.Client, file string) error {
	text, err := t.readPolicy(file)
	if err != nil {
		return err
	}
	p, err := getPolicy(ctx, client, "")
	if err != nil {
		return err
	}
	diff := apiclient.PolicyDiff{From: p.Version, To: file, Diff: policy.Diff("version "+p.Version, file, p.Policy, text)}
	return t.showText(diff, diff.Diff)
}

// completeVersions completes with versions of the policy.
func (t *tool) completeVersions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var versions []string
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		list, _ := decode[apiclient.PolicyVersionList](answer(client.ListPolicyVersions(ctx, &apiclient.ListPolicyVersionsParams{})))
		for _, v := range list.Versions {
			versions = append(versions, v.Version+"\t"+cell(timeText(v.SavedAt)+" "+v.Reason))
		}
	})
	return versions, cobra.ShellCompDirectiveNoFileComp
}
