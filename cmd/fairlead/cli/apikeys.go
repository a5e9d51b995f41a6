package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) apiKeys() *cobra.Command {
	return group(&cobra.Command{
		Use:   "apikeys",
		Short: "Create, list, expire and delete the keys of the API",
		Example: `  fairlead apikeys create --expiration 90d
  fairlead apikeys list`,
	}, t.apiKeysCreate(), t.apiKeysList(), t.apiKeysExpire(), t.apiKeysDelete())
}

func (t *tool) apiKeysCreate() *cobra.Command {
	var (
		life    lifetime
		role    string
		scopes  []string
		comment string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key and print it, this once",
		Long: `Create an API key and print it, this once: the server keeps only a hash.

Recommended lifetimes are 90d in production, 365d for additional keys of a
console, and 999d only for development or a long-lived console key.

A key of the role read changes nothing, one of the role operator all but keys,
webhooks and the policy. Scopes narrow the role to some nouns, such as nodes, or
nodes:read to look at them only.`,
		Example: `  fairlead apikeys create
  fairlead apikeys create --role read
  fairlead apikeys create --role operator --scope nodes,routes
  fairlead apikeys create --expiration 365d --comment "nightly backup"
  export FAIRLEAD_CLI_API_KEY=$(fairlead apikeys create)`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			created, err := decode[apiclient.APIKeyResult](answer(client.CreateAPIKey(ctx, apiclient.APIKeyCreation{Role: new(apiclient.Role(role)), Scopes: scopes, Comment: ifSet(comment), Expiration: life.after(t.Now())})))
			if err != nil {
				return err
			}
			if err := t.show(created, created.APIKey+"\n"); err != nil {
				return err
			}
			t.note("API key %s ends at %s and is not shown again", created.ID, timeText(created.Expiration))
			return nil
		}),
	}
	cmd.Flags().Var(&life, "expiration", "how long the key can be used, such as 365d or 1y (default 90d, also for 0)")
	cmd.Flags().StringVar(&role, "role", "admin", "what the key may do: read, operator or admin")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "the nouns it may do it with (default all)")
	cmd.Flags().StringVar(&comment, "comment", "", "what the key is for")
	complete(cmd, "role", cobra.FixedCompletions([]string{"read", "operator", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "scope", completeScopes())
	complete(cmd, "expiration", cobra.NoFileCompletions)
	complete(cmd, "comment", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) apiKeysList() *cobra.Command {
	var valid, invalid bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List API keys",
		Long:  "List API keys, expired ones included. Their secrets are masked.",
		Example: `  fairlead apikeys list
  fairlead apikeys list --invalid
  fairlead apikeys list --output json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := either(valid, invalid, "--valid and --invalid")
			if err != nil {
				return err
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			list, err := decode[apiclient.APIKeyList](answer(client.ListAPIKeys(cmd.Context(), &apiclient.ListAPIKeysParams{Valid: wanted})))
			if err != nil {
				return err
			}
			shown := columns{names: "ID, PREFIX, ROLE, SCOPES, COMMENT, EXPIRED, EXPIRATION, CREATED, LAST USED, FROM", spare: "FROM, CREATED, EXPIRED, SCOPES, COMMENT"}
			return showList(t, shown, list.APIKeys, func(k apiclient.APIKey) []string {
				return []string{
					k.ID, k.Prefix, string(k.Role), scopesText(k.Scopes), k.Comment, yesNo(k.Expired), timeText(k.Expiration), timeText(k.CreatedAt),
					lastUsed(k.LastSeen), k.LastUsedFrom,
				}
			})
		},
	}
	cmd.Flags().BoolVar(&valid, "valid", false, "only keys that are accepted now")
	cmd.Flags().BoolVar(&invalid, "invalid", false, "only keys that have expired")
	return t.watchable(cmd)
}

func (t *tool) whoami() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show as whom the server sees you, and what you may do",
		Example: `  fairlead whoami
  fairlead --server https://mesh.example.com --api-key "$KEY" whoami`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			me, err := decode[apiclient.Caller](answer(client.Whoami(ctx)))
			if err != nil {
				return err
			}
			shown := columns{names: "KIND, NAME, ROLE, SCOPES, EXPIRATION", spare: "EXPIRATION"}
			return showTable(t, me, shown, []apiclient.Caller{me}, func(c apiclient.Caller) []string {
				return []string{c.Kind, c.Name, string(c.Role), scopesText(c.Scopes), optionalTimeText(c.Expiration)}
			})
		}),
	}
}

func scopesText(scopes []string) string { return cmp.Or(strings.Join(scopes, ","), "all") }

func lastUsed(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return timeText(*at)
}

func (t *tool) apiKeysExpire() *cobra.Command {
	var (
		key, prefix string
		after       lifetime
		force       *bool
	)
	cmd := &cobra.Command{
		Use:   "expire (<key> | --prefix <prefix>)",
		Short: "Expire API keys",
		Long: `Expire API keys: they are refused from now on, or with --after when that time
is over, such as when another key has taken their place.

` + keyForms + ` --prefix takes at least 4 leading characters of an
id and expires all keys that match.`,
		Example: `  fairlead apikeys expire 7
  fairlead apikeys expire 7 --after 24h
  fairlead apikeys expire --prefix 7Qd0`,
		Args:              takesKey(&key),
		ValidArgsFunction: t.completeAPIKeys,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (key == "") == (prefix == "") {
				return wrongUsage("give either a key or --prefix")
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			selection, which := apiclient.APIKeySelection{Key: new(keyID(key))}, "API key "+keyID(key)
			if prefix != "" {
				selection, which = apiclient.APIKeySelection{Prefix: new(keyID(prefix))}, "all API keys that begin with "+keyID(prefix)
			}
			selection.At = after.after(t.Now())
			when := "at once"
			if selection.At != nil {
				when = "from " + timeText(*selection.At)
			}
			many := prefix != "" && len(keyID(prefix)) < keyIDLength // it may match more than intended
			if err := t.confirmIf(many, *force, fmt.Sprintf("Expire %s, so that programs with it are refused %s?", which, when)); err != nil {
				return err
			}
			done, err := decode[apiclient.APIKeyExpiry](answer(client.ExpireAPIKeys(cmd.Context(), selection)))
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, expired := range done.Expired {
				fmt.Fprintf(&text, "Expired API key %s\n", expired)
			}
			return t.show(done, text.String())
		},
	}
	keyFlag(cmd, &key, t.completeAPIKeys)
	cmd.Flags().StringVar(&prefix, "prefix", "", "`characters` with which the ids of the keys begin")
	cmd.Flags().Var(&after, "after", "how long the keys can still be used, such as 24h (default not at all)")
	complete(cmd, "after", cobra.NoFileCompletions)
	force = forceFlag(cmd, "required without a terminal with a --prefix shorter than an id")
	return cmd
}

func (t *tool) apiKeysDelete() *cobra.Command {
	var (
		key   string
		force *bool
	)
	cmd := &cobra.Command{
		Use:   "delete <key>",
		Short: "Delete an API key",
		Long: `Delete an API key: it is refused from now on, and it is no longer listed.

` + keyForms,
		Example:           "  fairlead apikeys delete 7",
		Args:              takesKey(&key),
		ValidArgsFunction: t.completeAPIKeys,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Delete API key %s, so that programs with it are refused at once?", id)); err != nil {
				return err
			}
			return t.done("Deleted API key %s", id)(answer(client.DeleteAPIKey(cmd.Context(), id, nil)))
		},
	}
	keyFlag(cmd, &key, t.completeAPIKeys)
	force = confirmable(cmd)
	return cmd
}
