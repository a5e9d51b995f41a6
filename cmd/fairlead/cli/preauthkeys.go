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
		Short: "Create, list, expire and delete the keys with which nodes join",
		Example: `  fairlead preauthkeys create --user alice
  fairlead preauthkeys list --user alice`,
	}, t.preAuthKeysCreate(), t.preAuthKeysList(), t.preAuthKeysExpire(), t.preAuthKeysDelete())
}

func (t *tool) preAuthKeysCreate() *cobra.Command {
	var (
		user                string
		reusable, ephemeral bool
		tags                []string
		life                lifetime
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a pre-auth key and print it, this once",
		Long: `Create a pre-auth key and print it, this once: the server keeps only a hash.

Devices join with it: tailscale up --login-server <server_url> --auth-key <key>.
They belong to the user of the key or, if it has any, to its tags.

Recommended lifetimes are 1 to 24 hours: 1h in production, 24h for testing.`,
		Example: `  fairlead preauthkeys create --user alice
  fairlead preauthkeys create --user alice --reusable --expiration 24h
  fairlead preauthkeys create --tags tag:server,tag:web --ephemeral
  KEY=$(fairlead preauthkeys create --user alice)`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" && len(tags) == 0 {
				return wrongUsage("--user or --tags is missing")
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			created, err := decode[apiclient.PreAuthKeyResult](answer(client.CreatePreAuthKey(cmd.Context(), apiclient.PreAuthKeyCreation{
				User: ifSet(user), Reusable: &reusable, Ephemeral: &ephemeral, ACLTags: tags, Expiration: life.after(t.Now()),
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
			t.note("Pre-auth key %s ends at %s and is not shown again", key.ID, timeText(key.Expiration))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&user, "user", "", "`user` who owns the nodes, by name or id; not needed with --tags")
	flags.BoolVar(&reusable, "reusable", false, "let more than one node join with the key")
	flags.BoolVar(&ephemeral, "ephemeral", false, "remove nodes when they have been offline for a while")
	flags.Var(&life, "expiration", "how long the key can be used, such as 24h or 2w (default 1h, also for 0)")
	flags.StringSliceVar(&tags, "tags", nil, "`tag:name` for the nodes; repeat the flag or put commas between several")
	complete(cmd, "user", t.completeUserFlag)
	complete(cmd, "tags", t.completeTags)
	return cmd
}

func (t *tool) preAuthKeysList() *cobra.Command {
	var user string
	var valid, invalid bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List pre-auth keys",
		Long:  "List pre-auth keys, expired and used ones included. Their secrets are masked.",
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
				names: "ID, KEY, USER, REUSABLE, EPHEMERAL, USED, EXPIRED, EXPIRATION, CREATED, TAGS, USES, LAST USED, FROM",
				wide:  "USES, LAST USED, FROM",
				spare: "CREATED, EPHEMERAL, REUSABLE, TAGS, USED, EXPIRED",
			}
			return showList(t, shown, list.PreAuthKeys, func(k apiclient.PreAuthKey) []string {
				return []string{
					k.ID, k.Key, userName(k.User), yesNo(k.Reusable), yesNo(k.Ephemeral), yesNo(k.Used), yesNo(k.Expired),
					timeText(k.Expiration), timeText(k.CreatedAt), strings.Join(k.ACLTags, ","),
					strconv.FormatInt(k.Uses, 10), lastUsed(k.LastUsed), k.LastUsedFrom,
				}
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only keys of this `user`, by name or id")
	cmd.Flags().BoolVar(&valid, "valid", false, "only keys that let a node in now")
	cmd.Flags().BoolVar(&invalid, "invalid", false, "only keys that have expired or are used up")
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
		Long: `Expire pre-auth keys: no further node can join with them. Nodes that have
joined stay.

` + keyForms,
		Example: `  fairlead preauthkeys expire 7
  fairlead preauthkeys expire --user alice flp_b81KzQx0LmN4_***`,
		Args:              takesKeys(&key),
		ValidArgsFunction: t.completePreAuthKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return t.changePreAuthKeys(cmd.Context(), *force, args, user, apiclient.PreAuthKeysChangeActionExpire, "Expire %s, so that no further node can join with them?", "Expired %s")
			}
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirmPerson(*force, fmt.Sprintf("Expire pre-auth key %s, so that no further node can join with it?", id)); err != nil {
				return err
			}
			return t.done("Expired pre-auth key %s", id)(answer(client.ExpirePreAuthKey(cmd.Context(), apiclient.PreAuthKeySelection{Key: &id, User: ifSet(user)})))
		},
	}
	keyFlag(cmd, &key, t.completePreAuthKeys)
	cmd.Flags().StringVar(&user, "user", "", "fail unless the key belongs to this `user`, by name or id")
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
		Long: `Delete pre-auth keys: no further node can join with them, and they are no longer
listed. Nodes that joined with them stay.

` + keyForms,
		Example: `  fairlead preauthkeys delete 7
  fairlead preauthkeys delete 7 8 9`,
		Args:              takesKeys(&key),
		ValidArgsFunction: t.completePreAuthKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return t.changePreAuthKeys(cmd.Context(), *force, args, "", apiclient.PreAuthKeysChangeActionDelete, "Delete %s, so that no further node can join with them?", "Deleted %s")
			}
			client, id, err := t.selectKey(key)
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Delete pre-auth key %s, so that no further node can join with it?", id)); err != nil {
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
			return fmt.Errorf("there is no pre-auth key %s; list them with: fairlead preauthkeys list", name)
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
