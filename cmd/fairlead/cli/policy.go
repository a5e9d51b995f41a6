package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// maxProblems is how many problems of a policy are reported at once.
const maxProblems = 20

func (t *tool) policy() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "Manage the access policy",
		Long: `Manage the access policy, which defines who can reach whom: check, save, compare
and explain it.

A policy file is JSON with comments. Every saved policy is a new version, and
the newest one is active.`,
		Example: `  fairlead policy check policy.hujson
  fairlead policy preview policy.hujson
  fairlead policy set policy.hujson --confirm-within 5m
  fairlead policy confirm
  fairlead policy why alice db-1:5432`,
	}, t.policyCheck(), t.policyGet(), t.policySet(), t.policyConfirm(), t.policyRevert(), t.policyHistory(), t.policyDiff(), t.policyRollback(),
		t.policyPreview(), t.policyWhy(), t.policyAccess(), t.policyTest())
}

// readPolicy reads a file, or standard input for "-".
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

// readGoodPolicy reads a policy. If the policy has problems, it prints them and returns an error.
func (t *tool) readGoodPolicy(file string) (string, error) {
	text, err := t.readPolicy(file)
	if err != nil {
		return "", err
	}
	_, problems := lang.Parse([]byte(text))
	return text, t.tellProblems(file, problemShapes(problems))
}

func problemShapes(problems []lang.Problem) []apiclient.PolicyProblem {
	found := make([]apiclient.PolicyProblem, len(problems))
	for i, p := range problems {
		found[i] = apiclient.PolicyProblem{Line: p.Line, Column: p.Column, Text: p.Text}
	}
	return found
}

func fileName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// tellProblems prints problems of a policy in the file:line form that editors understand, and returns an
// error if there are any.
func (t *tool) tellProblems(file string, problems []apiclient.PolicyProblem) error {
	if len(problems) == 0 {
		return nil
	}
	file = fileName(file)
	for _, p := range problems {
		// The text of a failing test also contains its line, for readers who do not see the position.
		text := strings.Replace(p.Text, fmt.Sprintf("test on line %d: ", p.Line), "test: ", 1)
		fmt.Fprintln(t.Stderr, printable(placeOf(file, p)+": "+text))
	}
	if len(problems) == maxProblems {
		return fmt.Errorf("%s has at least %d problems: fix these and check again", file, maxProblems)
	}
	return fmt.Errorf("%s has %s", file, count(len(problems), "problem"))
}

func placeOf(file string, p apiclient.PolicyProblem) string {
	place := fileName(file)
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			place += fmt.Sprintf(":%d", n)
		}
	}
	return place
}

// tellWarnings prints the warnings about a policy in the same format.
func (t *tool) tellWarnings(file string, warnings []apiclient.PolicyProblem) {
	for _, w := range warnings {
		fmt.Fprintln(t.Stderr, printable(placeOf(file, w)+": warning: "+w.Text))
	}
}

// withPlaces prints the problems that the server found in a policy, with their positions. Neither these problems
// nor a policy that cannot be saved are usage errors.
func (t *tool) withPlaces(file string) func(body []byte, err error) ([]byte, error) {
	return func(body []byte, err error) ([]byte, error) {
		var problem apiclient.Problem
		if err == nil || json.Unmarshal(body, &problem) != nil {
			return body, err
		}
		if len(problem.Problems) > 0 {
			return body, t.tellProblems(file, problem.Problems)
		}
		if len(problem.Errors) > 0 && problem.Errors[0].Path == "policy" {
			return body, errors.New(problem.Detail)
		}
		return body, err
	}
}

func (t *tool) policyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check <file>",
		Short: "Check a policy file without a server",
		Long: `Check a policy file without a running server, and report every problem with its
line and column. The exit status is 0 if there are none. The tests in the file
run when you save it, or with fairlead policy test. If a server is reachable,
it also checks the file: groups that the file does not define must exist at the
identity provider, and the command warns about users that do not exist.`,
		Example: `  fairlead policy check policy.hujson
  fairlead policy check - < policy.hujson`,
		Args: takes("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := t.readPolicy(args[0])
			if err != nil {
				return err
			}
			doc, problems := lang.Parse([]byte(text))
			result := policyCheckResult{File: args[0], Problems: problemShapes(problems)}
			if len(problems) > 0 {
				result.Warnings = problemShapes(lang.UndefinedGroupsIn([]byte(text)))
				t.tellWarnings(args[0], result.Warnings)
			}
			if err := t.tellProblems(args[0], result.Problems); err != nil {
				if t.forPeople() {
					return err
				}
				return errors.Join(t.show(result, ""), err)
			}
			result.Warnings, result.Problems = t.askAboutPolicy(cmd, text, doc)
			t.tellWarnings(args[0], result.Warnings)
			if err := t.tellProblems(args[0], result.Problems); err != nil {
				if t.forPeople() {
					return err
				}
				return errors.Join(t.show(result, ""), err)
			}
			for _, rule := range doc.Rules {
				if rule.Line > 0 { // line 0 stands for a text without rules
					result.Rules++
				}
			}
			result.SSHRules, result.Tests = len(doc.SSH), len(doc.Tests)+len(doc.SSHTests)
			return t.show(result, fmt.Sprintf("%s: no problems; %s%s, %s, %s\n", fileName(result.File),
				count(result.Rules, "rule"), withoutRules(doc, result.Rules), count(result.SSHRules, "SSH rule"), count(result.Tests, "test")))
		},
	}
}

// askAboutPolicy returns the warnings about a policy that can be parsed, and its problems with groups: those of the
// server if it is reachable, because only it knows which users and groups exist.
func (t *tool) askAboutPolicy(cmd *cobra.Command, text string, doc *lang.Doc) (warnings, problems []apiclient.PolicyProblem) {
	warnings, problems = problemShapes(slices.Concat(doc.Warnings, doc.UndefinedGroups())), []apiclient.PolicyProblem{}
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		body, err := answer(client.CheckPolicy(ctx, apiclient.PolicyText{Policy: text}))
		var refused apiclient.Problem
		switch verdict, unread := decode[apiclient.PolicyVerdict](body, err); {
		case unread == nil:
			warnings = append([]apiclient.PolicyProblem{}, verdict.Warnings...) // includes the warnings of the document
		case err != nil && json.Unmarshal(body, &refused) == nil:
			problems = groupProblems(refused.Problems)
		}
	})
	return warnings, problems
}

// groupProblems returns the problems that are not about tests, which run only when the policy is saved.
func groupProblems(all []apiclient.PolicyProblem) []apiclient.PolicyProblem {
	return slices.DeleteFunc(all, func(p apiclient.PolicyProblem) bool { return strings.HasPrefix(p.Text, "test on line ") })
}

// withoutRules explains a policy without rules: a missing list allows everything, an empty one nothing.
func withoutRules(doc *lang.Doc, rules int) string {
	switch {
	case rules > 0:
		return ""
	case len(doc.Rules) > 0:
		return " (neither acls nor grants: everyone can reach everyone)"
	default:
		return " (nobody can reach anyone)"
	}
}

// policyCheckResult is the output of policy check for one file.
type policyCheckResult struct {
	File     string                    `json:"file"`
	Problems []apiclient.PolicyProblem `json:"problems"`
	Warnings []apiclient.PolicyProblem `json:"warnings,omitempty"`
	Rules    int                       `json:"rules"`
	SSHRules int                       `json:"sshRules"`
	Tests    int                       `json:"tests"`
}

func (t *tool) policyGet() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Print the current policy, or an earlier version",
		Example: `  fairlead policy get
  fairlead policy get > policy.hujson
  fairlead policy get --version 6`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			p, err := getPolicy(ctx, client, version)
			if err != nil {
				return err
			}
			return t.showText(p, p.Policy)
		}),
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

// showText is show for a text that must be printed unchanged, except on a terminal.
func (t *tool) showText(value any, text string) error {
	if !t.forPeople() {
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

// policySaveFlags holds the flags that the commands which save a policy have in common.
type policySaveFlags struct {
	reason, ifVersion, viewer string
	confirmWithin             lifetime
	force                     *bool
}

// check validates the flags and names them in its errors; the server would use the names of the API.
func (s *policySaveFlags) check() error {
	if within := s.confirmWithin.duration; s.confirmWithin.text != "" && (within < 10*time.Second || within > 24*time.Hour) {
		return wrongUsage("invalid --confirm-within %q: use a duration from 10s to 24h", s.confirmWithin.text)
	}
	if _, err := strconv.ParseUint(s.ifVersion, 10, 63); s.ifVersion != "" && err != nil {
		return wrongUsage("invalid --if-version %q: use the number of a policy version, such as 7", s.ifVersion)
	}
	return nil
}

func (s *policySaveFlags) flags(cmd *cobra.Command, t *tool) {
	cmd.Flags().StringVar(&s.reason, "reason", "", "one-line `text` for the policy history")
	cmd.Flags().StringVar(&s.ifVersion, "if-version", "", "save only if this `version` is active; 0 means no policy")
	cmd.Flags().Var(&s.confirmWithin, "confirm-within", "revert after this `time`, 10s to 24h, unless confirmed")
	cmd.Flags().StringVar(&s.viewer, "viewer", "", "do not save if this `node or user` would lose access")
	for _, flag := range []string{"reason", "if-version", "confirm-within"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	complete(cmd, "viewer", t.completeUserFlag)
	s.force = forceFlag(cmd, "required without a terminal for a policy that locks everyone out")
}

func (s *policySaveFlags) ifMatch() *string {
	if s.ifVersion == "" {
		return nil
	}
	return ifSet(`"` + s.ifVersion + `"`)
}

func (s *policySaveFlags) within() *string {
	if s.confirmWithin.duration == 0 {
		return nil
	}
	return ifSet(s.confirmWithin.duration.String())
}

func (t *tool) policySet() *cobra.Command {
	var s policySaveFlags
	cmd := &cobra.Command{
		Use:   "set <file>",
		Short: "Save and apply a policy",
		Long: `Save a policy from a file, or from standard input with -. It takes effect
immediately.

The command first shows the effect of the change, unless you use --force. On a
terminal, it asks for confirmation if the change could lock someone out or
allows everything. With --viewer, it also asks if that node or user, such as
yourself, would lose access. Without a terminal, a change that cuts off the
viewer, or after which nobody can reach anyone, is saved only with --force.

With --confirm-within, the change is reverted unless you run fairlead policy
confirm in time.

A policy that is already active is not saved again and needs no confirmation:
confirmBy is then null in --output json.`,
		Example: `  fairlead policy set policy.hujson --reason "let ops reach the databases"
  fairlead policy set policy.hujson --confirm-within 5m
  fairlead policy set policy.hujson --viewer alice
  fairlead policy get > p.hujson && vi p.hujson && fairlead policy set p.hujson`,
		Args: takes("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(); err != nil {
				return err
			}
			text, err := t.readGoodPolicy(args[0])
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			if err := t.previewed(cmd.Context(), client, args[0], text, &s); err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](t.withPlaces(args[0])(answer(client.SetPolicy(cmd.Context(), &apiclient.SetPolicyParams{IfMatch: s.ifMatch()},
				apiclient.PolicyDraft{Policy: &text, Reason: ifSet(s.reason), ConfirmWithin: s.within()}))))
			if err != nil {
				return err
			}
			if !t.forPeople() || *s.force { // otherwise the preview has already shown them
				t.tellWarnings(args[0], p.Warnings)
			}
			return t.showSaved(p, &s)
		},
	}
	s.flags(cmd, t)
	return cmd
}

// previewed shows what a text would change, and asks for confirmation if that is dangerous. It does not ask
// about a text whose tests fail. Without a terminal, a text that locks out everybody, or the viewer if one is
// named, is refused.
func (t *tool) previewed(ctx context.Context, client *apiclient.Client, file, text string, s *policySaveFlags) error {
	if *s.force {
		return nil
	}
	request := apiclient.PolicyPreviewRequest{Policy: &text, Viewer: ifSet(s.viewer)}
	effect, err := decode[apiclient.PolicyEffect](t.withPlaces(file)(answer(client.PreviewPolicy(ctx, request))))
	if err != nil {
		return err
	}
	if len(effect.Tests) > 0 {
		failing := make([]apiclient.PolicyProblem, len(effect.Tests))
		for i, f := range effect.Tests {
			failing[i] = apiclient.PolicyProblem{Line: f.Line, Text: f.Text}
		}
		return t.tellProblems(file, failing)
	}
	t.note("%s", strings.TrimSuffix(effectSummary(effect), "\n"))
	if !t.Terminal {
		return lockedOut(effect)
	}
	if len(effect.Guards) == 0 && !everythingLost(effect) {
		return nil
	}
	return t.confirm(*s.force, "Save the policy anyway?")
}

// lockedOut refuses a change that locks out everybody or the viewer. A person at a terminal is also asked about
// other dangers.
func lockedOut(effect apiclient.PolicyEffect) error {
	for _, g := range effect.Guards {
		if g.Kind == string(explain.GuardOwnWayIn) {
			return fmt.Errorf("not saved: %s; to save it anyway, use --force", g.Text)
		}
	}
	if everythingLost(effect) {
		return errors.New("not saved: with this policy, nobody can reach anyone; to save it anyway, use --force")
	}
	return nil
}

func noPolicyText(p apiclient.Policy) string {
	return fmt.Sprintf("Policy removed (version %s): everyone can reach everyone\n", p.Version)
}

func (t *tool) showSaved(p apiclient.Policy, s *policySaveFlags) error {
	text := fmt.Sprintf("Policy version %s is now active\n", p.Version)
	if p.Policy == "" {
		text = noPolicyText(p)
	}
	switch {
	case p.ConfirmBy == nil && s.within() != nil:
		text = fmt.Sprintf("Policy version %s is already active with this text; there is nothing to confirm\n", p.Version)
	case p.ConfirmBy != nil:
		back := "version " + p.RevertTo
		if p.RevertTo == "0" {
			back = "no policy"
		}
		text += fmt.Sprintf("Reverts automatically at %s (to: %s). To keep it: fairlead policy confirm %s\n", timeText(*p.ConfirmBy), back, p.Version)
	}
	return t.show(p, text)
}

func (t *tool) policyConfirm() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm [version]",
		Short: "Confirm a policy that was saved with --confirm-within",
		Long: `Confirm the policy version that was saved with --confirm-within, so that it is
not reverted. If the time has passed, it has already been reverted: see fairlead
policy history. To confirm a version that someone else saved, specify it.`,
		Example: `  fairlead policy confirm
  fairlead policy confirm 7`,
		Args: takesPolicyVersion,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			p, err := decode[apiclient.Policy](answer(client.ConfirmPolicy(ctx, &apiclient.ConfirmPolicyParams{IfMatch: versionMatch(args)})))
			if err != nil {
				return err
			}
			return t.show(p, fmt.Sprintf("Policy version %s confirmed\n", p.Version))
		}),
	}
}

// takesPolicyVersion accepts at most one version.
func takesPolicyVersion(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q", args[1])
	case len(args) == 1:
		if v, err := strconv.ParseUint(args[0], 10, 63); err != nil || v == 0 {
			return fmt.Errorf("invalid policy version %q; list versions with: fairlead policy history", args[0])
		}
	}
	return nil
}

// versionMatch returns the If-Match header for the version in args, if there is one.
func versionMatch(args []string) *string {
	if len(args) == 0 {
		return nil
	}
	tag := strconv.Quote(args[0])
	return &tag
}

func (t *tool) policyRevert() *cobra.Command {
	return &cobra.Command{
		Use:   "revert [version]",
		Short: "Revert a policy that was saved with --confirm-within",
		Long: `Revert the policy version that was saved with --confirm-within, without waiting
for its time to run out. To revert a version that someone else saved,
specify it.`,
		Example: `  fairlead policy revert
  fairlead policy revert 7`,
		Args: takesPolicyVersion,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			p, err := decode[apiclient.Policy](answer(client.RevertPolicy(ctx, &apiclient.RevertPolicyParams{IfMatch: versionMatch(args)})))
			if err != nil {
				return err
			}
			if p.Policy == "" {
				return t.show(p, noPolicyText(p))
			}
			return t.show(p, fmt.Sprintf("Reverted: the previous policy is active again, as version %s\n", p.Version))
		}),
	}
}

func (t *tool) policyRollback() *cobra.Command {
	var s policySaveFlags
	cmd := &cobra.Command{
		Use:   "rollback <version>",
		Short: "Restore an earlier version of the policy",
		Long: `Save the text of an earlier version as a new version. The same checks and flags
apply as for fairlead policy set.`,
		Example: `  fairlead policy rollback 6
  fairlead policy rollback 6 --reason "the databases were unreachable"`,
		Args:              takes("version"),
		ValidArgsFunction: t.completeVersions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(); err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			file := "version " + args[0]
			old, err := getPolicy(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if old.Policy != "" { // without an earlier policy, the effect would cover every pair
				if err := t.previewed(cmd.Context(), client, file, old.Policy, &s); err != nil {
					return err
				}
			} else if err := t.confirm(*s.force, fmt.Sprintf("Version %s removes the policy, so that everyone can reach everyone. Restore it?", args[0])); err != nil {
				return err
			}
			p, err := decode[apiclient.Policy](t.withPlaces(file)(answer(client.RollbackPolicy(cmd.Context(), &apiclient.RollbackPolicyParams{IfMatch: s.ifMatch()},
				apiclient.PolicyRollback{Version: args[0], Reason: ifSet(s.reason), ConfirmWithin: s.within()}))))
			if err != nil {
				return err
			}
			return t.showSaved(p, &s)
		},
	}
	s.flags(cmd, t)
	return cmd
}

func (t *tool) policyHistory() *cobra.Command {
	var limit, before string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions of the policy, newest first",
		Long: `List the versions of the policy, newest first. The first one is active. SOURCE
is api for a version that was saved through the API or this command line, and
file for one that was read from the file at policy.path.`,
		Example: `  fairlead policy history
  fairlead policy history --before 20 --limit 10`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.PolicyVersionList](answer(client.ListPolicyVersions(ctx,
				&apiclient.ListPolicyVersionsParams{Before: ifSet(before), Limit: ifSet(limit)})))
			if err != nil {
				return err
			}
			shown := columns{names: "VERSION, SAVED, AUTHOR, SOURCE, CONFIRM BY, REASON", spare: "SOURCE, CONFIRM BY, AUTHOR"}
			return showList(t, shown, list.Versions, func(v apiclient.PolicyVersion) []string {
				confirmBy := optionalTimeText(v.ConfirmBy)
				if v.ConfirmBy != nil && (before != "" || v.Version != list.Versions[0].Version) {
					confirmBy = "not confirmed" // only the newest can still be confirmed
				}
				return []string{v.Version, timeText(v.SavedAt), v.Author, string(v.Source), confirmBy, v.Reason}
			})
		}),
	}
	cmd.Flags().StringVar(&limit, "limit", "20", "maximum `number` of versions, up to 100")
	cmd.Flags().StringVar(&before, "before", "", "only versions before this `number`")
	complete(cmd, "limit", cobra.NoFileCompletions)
	complete(cmd, "before", t.completeVersions)
	return t.watchable(cmd)
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
