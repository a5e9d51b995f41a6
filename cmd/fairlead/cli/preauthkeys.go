package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func (t *tool) preAuthKeys() *cobra.Command {
	return group(&cobra.Command{
		Use:   "preauthkeys",
		Short: "Manage pre-auth keys",
		Example: `  fairlead preauthkeys create --user alice
  fairlead preauthkeys list --user alice`,
	}, t.preAuthKeysCreate(), t.preAuthKeysList(), t.preAuthKeysExpire(), t.preAuthKeysDelete())
}

func (t *tool) preAuthKeysCreate() *cobra.Command {
	var (
		user, description   string
		reusable, ephemeral bool
		preApproved         bool
		tags                []string
		life                lifetime
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a pre-auth key",
		Long: `Create a pre-auth key and print it. The key is shown only once: the server
stores only a hash.

Devices join with: tailscale up --login-server <server_url> --auth-key <key>
They belong to the user of the key or, if it has tags, to its tags.

Recommended lifetimes are 1 to 24 hours: 1h in production, 24h for testing.`,
		Example: `  fairlead preauthkeys create --user alice
  fairlead preauthkeys create --user alice --reusable --expiration 24h
  fairlead preauthkeys create --tags tag:server,tag:web --ephemeral
  fairlead preauthkeys create --tags tag:web --description "web in Berlin"
  KEY=$(fairlead preauthkeys create --user alice)`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.connect()
			if err != nil {
				return err
			}
			created, err := decode[apiclient.PreAuthKeyResult](answer(client.CreatePreAuthKey(cmd.Context(), apiclient.PreAuthKeyCreation{
				User: ifSet(user), Description: ifSet(description), Reusable: &reusable, Ephemeral: &ephemeral, PreApproved: ifSet(preApproved), ACLTags: tags, Expiration: life.after(t.Now()),
			})))
			if err != nil {
				return err
			}
			key := created.PreAuthKey
			if err := t.show(key, key.Key+"\n"); err != nil {
				return err
			}
			for _, warning := range created.Warnings {
				t.note("Warning: %s", warning)
			}
			t.explainKey(cmd, key)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&user, "user", "", "`user` who will own the nodes, by name or ID; optional with --tags, and for members")
	flags.StringVar(&description, "description", "", "what the key is for, shown in lists")
	flags.BoolVar(&reusable, "reusable", false, "let several nodes join with the key")
	flags.BoolVar(&ephemeral, "ephemeral", false, "delete the nodes after they have been offline for a while")
	flags.BoolVar(&preApproved, "pre-approved", false, "let the nodes join without waiting for approval (see node.approval_required)")
	flags.Var(&life, "expiration", "how long the key is valid, such as 24h or 2w (default 1h; 0 means the default)")
	flags.StringSliceVar(&tags, "tags", nil, "`tag:name` for the nodes; repeat the flag or separate several with commas")
	complete(cmd, "user", t.completeUserFlag)
	complete(cmd, "tags", t.completeTags)
	complete(cmd, "description", cobra.NoFileCompletions)
	return cmd
}

// explainKey tells a person how to use a new key. The key itself is repeated only on a terminal: elsewhere the
// notes may end up in a log.
func (t *tool) explainKey(cmd *cobra.Command, key apiclient.PreAuthKey) {
	if !t.forPeople() {
		return
	}
	uses, value, server := "single use", "<key>", "<server_url>"
	if key.Reusable {
		uses = "reusable"
	}
	if t.Terminal {
		value = key.Key
	}
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		if state, err := decode[apiclient.ServerState](answer(client.ShowServer(ctx))); err == nil {
			server = state.URL
		}
	})
	t.note("Pre-auth key %s: %s, expires at %s. It will not be shown again", key.ID, uses, timeText(key.Expiration))
	t.note("Join with: tailscale up --login-server %s --auth-key %s", server, value)
}

func (t *tool) preAuthKeysList() *cobra.Command {
	var user string
	var valid, invalid bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List pre-auth keys",
		Long:  `List pre-auth keys, including expired and used ones. Secrets are masked.`,
		Example: `  fairlead preauthkeys list
  fairlead preauthkeys list --user alice --valid --output yaml`,
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
			list, err := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(cmd.Context(), &apiclient.ListPreAuthKeysParams{User: ifSet(user), Valid: wanted})))
			if err != nil {
				return err
			}
			shown := columns{
				names: "ID, KEY, USER, DESCRIPTION, REUSABLE, EPHEMERAL, USED, EXPIRED, EXPIRATION, CREATED, TAGS, PRE-APPROVED, USES, LAST USED, FROM",
				wide:  "PRE-APPROVED, USES, LAST USED, FROM",
				spare: "CREATED, EPHEMERAL, REUSABLE, TAGS, USED, EXPIRED, DESCRIPTION",
			}
			return showList(t, shown, list.PreAuthKeys, func(k apiclient.PreAuthKey) []string {
				return []string{
					k.ID, k.Key, userName(k.User), k.Description, yesNo(k.Reusable), yesNo(k.Ephemeral), yesNo(k.Used), yesNo(k.Expired),
					timeText(k.Expiration), timeText(k.CreatedAt), strings.Join(k.ACLTags, ","), yesNo(k.PreApproved),
					strconv.FormatInt(k.Uses, 10), lastUsed(k.LastUsed), k.LastUsedFrom,
				}
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only keys of this `user`, by name or ID")
	cmd.Flags().BoolVar(&valid, "valid", false, "only keys that nodes can still join with")
	cmd.Flags().BoolVar(&invalid, "invalid", false, "only keys that have expired or been used up")
	complete(cmd, "user", t.completeUserFlag)
	return t.watchable(cmd)
}

func (t *tool) preAuthKeysExpire() *cobra.Command {
	var (
		key, user string
		force     *bool
	)
	cmd := &cobra.Command{
		Use:   "expire <key>...",
		Short: "Expire pre-auth keys",
		Long: `Expire pre-auth keys: no more nodes can join with them. Nodes that have already
joined are not affected.

` + keyForms,
		Example: `  fairlead preauthkeys expire 7
  fairlead preauthkeys expire --user alice flp_b81KzQx0LmN4_***`,
		Args:              takesKeys(&key),
		ValidArgsFunction: t.completePreAuthKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return t.changePreAuthKeys(cmd.Context(), *force, args, user, apiclient.PreAuthKeysChangeActionExpire, "Expire %s? No more nodes can join with them.", "Expired %s")
			}
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirmPerson(*force, fmt.Sprintf("Expire pre-auth key %s? No more nodes can join with it.", id)); err != nil {
				return err
			}
			return t.done("Expired pre-auth key %s", id)(answer(client.ExpirePreAuthKey(cmd.Context(), apiclient.PreAuthKeySelection{Key: &id, User: ifSet(user)})))
		},
	}
	keyFlag(cmd, &key, t.completePreAuthKeys)
	cmd.Flags().StringVar(&user, "user", "", "fail unless the key belongs to this `user`, by name or ID")
	complete(cmd, "user", t.completeUserFlag)
	force = skippable(cmd)
	return cmd
}

func (t *tool) preAuthKeysDelete() *cobra.Command {
	var (
		key   string
		force *bool
	)
	cmd := &cobra.Command{
		Use:   "delete <key>...",
		Short: "Delete pre-auth keys",
		Long: `Delete pre-auth keys: no more nodes can join with them, and they are no longer
listed. Nodes that have already joined are not affected.

` + keyForms,
		Example: `  fairlead preauthkeys delete 7
  fairlead preauthkeys delete 7 8 9`,
		Args:              takesKeys(&key),
		ValidArgsFunction: t.completePreAuthKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return t.changePreAuthKeys(cmd.Context(), *force, args, "", apiclient.PreAuthKeysChangeActionDelete, "Delete %s? No more nodes can join with them.", "Deleted %s")
			}
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Delete pre-auth key %s? No more nodes can join with it.", id)); err != nil {
				return err
			}
			return t.done("Deleted pre-auth key %s", id)(answer(client.DeletePreAuthKey(cmd.Context(), &apiclient.DeletePreAuthKeyParams{ID: id})))
		},
	}
	keyFlag(cmd, &key, t.completePreAuthKeys)
	force = confirmable(cmd)
	return cmd
}

// changePreAuthKeys changes several keys. A user, if given, must own all of them.
func (t *tool) changePreAuthKeys(ctx context.Context, force bool, keys []string, user string, action apiclient.PreAuthKeysChangeAction, question, done string) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	list, err := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(ctx, &apiclient.ListPreAuthKeysParams{User: ifSet(user)})))
	if err != nil {
		return err
	}
	var chosen choice
	for _, key := range keys {
		name := keyID(key)
		i := slices.IndexFunc(list.PreAuthKeys, func(k apiclient.PreAuthKey) bool { return k.ID == name || keyID(k.Key) == name })
		if i < 0 {
			return fmt.Errorf("unknown pre-auth key %q; list pre-auth keys with: fairlead preauthkeys list", name)
		}
		chosen.add(list.PreAuthKeys[i].ID, name)
	}
	if err := t.confirmIf(action != apiclient.PreAuthKeysChangeActionExpire, force, fmt.Sprintf(question, chosen.text("pre-auth key"))); err != nil {
		return err
	}
	return t.changeMany(chosen, "pre-auth key", done, func(chunk []string) ([]byte, error) {
		return answer(client.ChangePreAuthKeys(ctx, apiclient.PreAuthKeysChange{Ids: chunk, Action: action}))
	})
}

// userName returns the owner of a key or node as shown in lists.
func userName(u *apiclient.User) string {
	if u == nil {
		return ""
	}
	return u.Name
}
