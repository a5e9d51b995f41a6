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
		Short: "Manage API keys",
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
		Short: "Create an API key",
		Long: `Create an API key and print it. The key is shown only once: the server stores
only a hash.

Recommended lifetimes are 90d in production, 365d for additional console keys,
and 999d only for development or a long-lived console key.

A key with the role read is read-only. A key with the role operator can change
everything except keys, webhooks and the policy. Scopes limit a key to some
resources, such as nodes, or nodes:read for read-only access to them.`,
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
			t.note("API key %s expires at %s. It will not be shown again", created.ID, timeText(created.Expiration))
			return nil
		}),
	}
	cmd.Flags().Var(&life, "expiration", "how long the key is valid, such as 365d or 1y (default 90d; 0 means the default)")
	cmd.Flags().StringVar(&role, "role", "admin", "`role` of the key: read, operator or admin")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "`scopes` of the key, such as nodes or nodes:read (default all)")
	cmd.Flags().StringVar(&comment, "comment", "", "`text` that says what the key is for")
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
		Long:  `List API keys, including expired ones. Secrets are masked.`,
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
			shown := columns{names: "ID, PREFIX, USER, ROLE, SCOPES, COMMENT, EXPIRED, EXPIRATION, CREATED, LAST USED, FROM", spare: "FROM, CREATED, EXPIRED, SCOPES, COMMENT, USER"}
			return showList(t, shown, list.APIKeys, func(k apiclient.APIKey) []string {
				owner := ""
				if k.User != nil {
					owner = k.User.Name
				}
				return []string{
					k.ID, k.Prefix, owner, string(k.Role), scopesText(k.Scopes), k.Comment, yesNo(k.Expired), timeText(k.Expiration), timeText(k.CreatedAt),
					lastUsed(k.LastSeen), k.LastUsedFrom,
				}
			})
		},
	}
	cmd.Flags().BoolVar(&valid, "valid", false, "only keys that are still valid")
	cmd.Flags().BoolVar(&invalid, "invalid", false, "only keys that have expired")
	return t.watchable(cmd)
}

func (t *tool) whoami() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show your identity and permissions",
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
				return []string{c.Kind, c.Name, c.Role, scopesText(c.Scopes), optionalTimeText(c.Expiration)}
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
		Long: `Expire API keys. The server rejects them immediately or, with --after, when
that time has passed, so that you can replace them first.

` + keyForms + `

--prefix takes at least the first 4 characters of an ID and expires all matching
keys.`,
		Example: `  fairlead apikeys expire 7
  fairlead apikeys expire 7 --after 24h
  fairlead apikeys expire --prefix 7Qd0`,
		Args:              takesKey(&key),
		ValidArgsFunction: t.completeAPIKeys,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case key == "" && prefix == "":
				return wrongUsage("missing argument <key>: specify a key, or use --prefix")
			case key != "" && prefix != "":
				return wrongUsage("use either a key or --prefix, not both")
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			selection, which, it := apiclient.APIKeySelection{Key: new(keyID(key))}, "API key "+keyID(key), "it"
			if prefix != "" {
				selection, which, it = apiclient.APIKeySelection{Prefix: new(keyID(prefix))}, "all API keys whose ID starts with "+keyID(prefix), "them"
			}
			selection.At = after.after(t.Now())
			when := "immediately"
			if selection.At != nil {
				when = "from " + timeText(*selection.At)
			}
			many := prefix != "" && len(keyID(prefix)) < keyIDLength // a partial id may match more keys than intended
			if err := t.confirmIf(many, *force, fmt.Sprintf("Expire %s? Requests that use %s are rejected %s.", which, it, when)); err != nil {
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
	cmd.Flags().StringVar(&prefix, "prefix", "", "expire all keys whose ID starts with these `characters`")
	cmd.Flags().Var(&after, "after", "how long the keys stay valid, such as 24h (default: they expire immediately)")
	complete(cmd, "after", cobra.NoFileCompletions)
	force = forceFlag(cmd, "required without a terminal if --prefix is shorter than an ID")
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
		Long: `Delete an API key. The server rejects it immediately and no longer lists it.

` + keyForms,
		Example:           "  fairlead apikeys delete 7",
		Args:              takesKey(&key),
		ValidArgsFunction: t.completeAPIKeys,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Delete API key %s? Requests that use it are rejected immediately.", id)); err != nil {
				return err
			}
			return t.done("Deleted API key %s", id)(answer(client.DeleteAPIKey(cmd.Context(), id, nil)))
		},
	}
	keyFlag(cmd, &key, t.completeAPIKeys)
	force = confirmable(cmd)
	return cmd
}
