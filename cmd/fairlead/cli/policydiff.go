package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/textdiff"
)

func (t *tool) policyDiff() *cobra.Command {
	var file string
	var effect bool
	cmd := &cobra.Command{
		Use:   "diff [<from> [<to>]]",
		Short: "Compare versions of the policy line by line",
		Long: `Compare versions of the policy line by line. Without arguments, show the last
change. With one version, compare it with the current policy. With --file,
compare the current policy with a file.

With --effect, also show who gains and who loses access, for the nodes that
exist now. For the effect of a file, use fairlead policy preview.`,
		Example: `  fairlead policy diff
  fairlead policy diff 3 6
  fairlead policy diff 3 6 --effect
  fairlead policy diff --file policy.hujson`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case file != "" && len(args) > 0:
				return errors.New("use either versions or --file, not both")
			case file != "" && effect:
				return errors.New("--effect cannot be combined with --file; for the effect of a file, use fairlead policy preview")
			case len(args) > 2:
				return fmt.Errorf("unexpected argument %q", args[2])
			}
			return nil
		},
		ValidArgsFunction: t.completeVersions,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if file != "" {
				return t.diffFile(ctx, client, file)
			}
			var params apiclient.DiffPoliciesParams
			for i, side := range []**string{&params.From, &params.To} {
				if i < len(args) {
					*side = ifSet(args[i])
				}
			}
			if effect {
				params.Effect = &effect
			}
			diff, err := decode[apiclient.PolicyDiff](answer(client.DiffPolicies(ctx, &params)))
			if err != nil {
				return err
			}
			return t.showDiff(diff)
		}),
	}
	cmd.Flags().BoolVar(&effect, "effect", false, "also show who gains and who loses access")
	cmd.Flags().StringVar(&file, "file", "", "compare the current policy with this `file`")
	return cmd
}

func (t *tool) diffFile(ctx context.Context, client *apiclient.Client, file string) error {
	text, err := t.readPolicy(file)
	if err != nil {
		return err
	}
	resp, err := client.GetPolicy(ctx)
	p, err := decode[apiclient.Policy](answer(resp, err))
	from := "version " + p.Version
	switch {
	case resp != nil && resp.StatusCode == http.StatusNotFound: // there is no policy
		p.Version, from = "0", "no policy"
	case err != nil:
		return err
	}
	return t.showDiff(apiclient.PolicyDiff{From: p.Version, To: file, Diff: textdiff.Unified(from, file, p.Policy, text)})
}

func (t *tool) showDiff(diff apiclient.PolicyDiff) error {
	if diff.Diff == "" {
		t.note("No differences")
	}
	text := diff.Diff
	if diff.Effect != nil {
		text += effectText(*diff.Effect)
	}
	return t.showText(diff, text)
}
