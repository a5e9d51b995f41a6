package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const completionLimit = time.Second

func (t *tool) users() *cobra.Command {
	return group(&cobra.Command{
		Use:   "users",
		Short: "Manage users",
		Example: `  fairlead users create alice
  fairlead users list`,
	}, t.usersCreate(), t.usersList(), t.usersShow(), t.usersRename(), t.usersSetRole(), t.usersApprove(), t.usersLink(), t.usersUnlink(), t.usersSuspend(), t.usersRestore(), t.usersDelete(), t.usersInvite(), t.usersPasskeys())
}

func (t *tool) usersCreate() *cobra.Command {
	var displayName, email, picture string
	cmd := &cobra.Command{
		Use:   "create <name>",
		Short: "Create a user",
		Long: `Create a user.

A name starts with a letter and may contain letters, digits, ".", "_", "-" and
"@". Lowercase is recommended. Names that differ only in case are the same
name.`,
		Example: `  fairlead users create alice
  fairlead users create bob --display-name "Bob Example" --email bob@example.com`,
		Args:              takes("name"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			client, err := t.connect()
			if err != nil {
				return err
			}
			created, err := decode[apiclient.UserResult](answer(client.CreateUser(cmd.Context(), apiclient.UserCreation{
				Name: name, DisplayName: ifSet(displayName), Email: ifSet(email), PictureURL: ifSet(picture),
			})))
			if err != nil {
				return err
			}
			if name != strings.ToLower(name) {
				t.note("Warning: the user name %s contains uppercase letters; lowercase is recommended", name)
			}
			return t.show(created.User, fmt.Sprintf("Created user %s (ID %s)\n", created.User.Name, created.User.ID))
		},
	}
	cmd.Flags().StringVar(&displayName, "display-name", "", "full `name` to display")
	cmd.Flags().StringVar(&email, "email", "", "email `address`")
	cmd.Flags().StringVar(&picture, "picture-url", "", "`URL` of a profile picture")
	return cmd
}

func (t *tool) usersList() *cobra.Command {
	return t.watchable(&cobra.Command{
		Use:   "list",
		Short: "List users",
		Example: `  fairlead users list
  fairlead users list --output json`,
		Args: takes(),
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			list, err := decode[apiclient.UserList](answer(client.ListUsers(ctx, nil)))
			if err != nil {
				return err
			}
			shown := columns{names: "ID, NAME, EMAIL, ROLE, NODES, STATUS, CREATED, GROUPS, DISPLAY NAME", wide: "GROUPS, DISPLAY NAME", spare: "CREATED, EMAIL"}
			return showList(t, shown, list.Users, func(u apiclient.User) []string {
				return []string{
					u.ID, u.Name, u.Email, cmp.Or(currentRole(u), "-"), strconv.Itoa(u.NodeCount), userStatus(u), optionalTimeText(u.CreatedAt), strings.Join(u.Groups, ", "),
					u.DisplayName,
				}
			})
		}),
	})
}

func (t *tool) usersShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show <user>",
		Short: "Show a user",
		Long:  `Show a user. Identify the user by name or ID.`,
		Example: `  fairlead users show alice
  fairlead users show 3 --output yaml`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			found, err := decode[apiclient.UserResult](answer(client.ShowUser(ctx, args[0])))
			if err != nil {
				return err
			}
			u := found.User
			return t.show(u, details([][]string{
				{"ID", u.ID},
				{"Name", u.Name},
				{"Display name", u.DisplayName},
				{"Email", u.Email},
				{"Account", u.ProviderID},
				{"Groups", strings.Join(u.Groups, ", ")},
				{"Role", roleText(u)},
				{"Nodes", strconv.Itoa(u.NodeCount)},
				{"Status", userDetails(u)},
				{"Created", optionalTimeText(u.CreatedAt)},
			}))
		}),
	}
}

func (t *tool) usersRename() *cobra.Command {
	return &cobra.Command{
		Use:   "rename <user> <new-name>",
		Short: "Rename a user",
		Long:  `Rename a user. Identify the user by name or ID.`,
		Example: `  fairlead users rename alice alice.example
  fairlead users rename 3 bob`,
		Args:              takes("user", "new-name"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			renamed, err := decode[apiclient.UserResult](answer(client.RenameUser(ctx, args[0], args[1], nil)))
			if err != nil {
				return err
			}
			return t.show(renamed.User, fmt.Sprintf("Renamed user %s to %s\n", args[0], renamed.User.Name))
		}),
	}
}

// currentRole returns the role that a user has now, or "" if the user has none.
func currentRole(u apiclient.User) string {
	if u.Role == nil {
		return ""
	}
	return *u.Role
}

// roleText returns the role of a user, and where it comes from.
func roleText(u apiclient.User) string {
	switch role := currentRole(u); {
	case role == "":
		return "none"
	case u.AssignedRole != nil:
		return role + " (assigned)"
	case u.RoleGroup != nil:
		return fmt.Sprintf("%s (group %s)", role, *u.RoleGroup)
	default:
		return role
	}
}

func (t *tool) usersSetRole() *cobra.Command {
	return &cobra.Command{
		Use:   "set-role <user> <role>",
		Short: "Assign a role to a user",
		Long: `Assign a role to a user: member, read, operator or admin. Identify the user by
name or ID.

An assigned role takes precedence over the roles that the configuration gives
to groups (oidc.roles). The role "default" removes the assignment.`,
		Example: `  fairlead users set-role alice admin
  fairlead users set-role bob default`,
		Args:              takes("user", "role"),
		ValidArgsFunction: t.completeUserRole,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			changed, err := decode[apiclient.UserResult](answer(client.SetUserRole(ctx, args[0], nil, apiclient.UserRoleChange{Role: args[1]})))
			if err != nil {
				return err
			}
			return t.show(changed.User, fmt.Sprintf("Role of user %s: %s\n", changed.User.Name, roleText(changed.User)))
		}),
	}
}

func (t *tool) usersApprove() *cobra.Command {
	return &cobra.Command{
		Use:   "approve <user>",
		Short: "Approve a user who waits for approval",
		Long: `Approve a user who waits for approval. Their devices get access immediately,
unless node.approval_required makes each device wait for its own approval.
Identify the user by name or ID.

People who sign in for the first time wait if oidc.user_approval_required is
set. To reject a user, delete the user.`,
		Example:           `  fairlead users approve alice`,
		Args:              takes("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			approved, err := decode[apiclient.UserResult](answer(client.ApproveUser(ctx, args[0], nil)))
			if err != nil {
				return err
			}
			return t.show(approved.User, fmt.Sprintf("Approved user %s\n", approved.User.Name))
		}),
	}
}

func (t *tool) completeUserRole(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return []string{"member", "read", "operator", "admin", "default"}, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeUsers(cmd, args, "")
}

func (t *tool) usersDelete() *cobra.Command {
	var force *bool
	var tagged bool
	cmd := &cobra.Command{
		Use:   "delete <user>...",
		Short: "Delete users, their nodes and their pre-auth keys",
		Long: `Delete users with all their nodes and pre-auth keys. Identify users by name or
ID.

The nodes lose access immediately. Tagged nodes belong to their tags and are
kept. The output lists the kept nodes that the users added; to delete them in
the same step, use --delete-tagged.`,
		Example: `  fairlead users delete alice
  fairlead users delete alice --delete-tagged
  fairlead users delete 3 --force
  fairlead users delete alice bob`,
		Args:              takesSome("user"),
		ValidArgsFunction: t.completeUsers,
		RunE: t.connected(func(ctx context.Context, client *apiclient.Client, args []string) error {
			if len(args) > 1 {
				return t.deleteUsers(ctx, client, *force, tagged, args)
			}
			if !*force {
				if _, err := t.confirmUsers(ctx, client, *force, tagged, args); err != nil {
					return err
				}
			}
			deleted, err := decode[apiclient.UserDeletion](answer(client.DeleteUser(ctx, args[0], &apiclient.DeleteUserParams{DeleteTagged: &tagged})))
			if err != nil {
				return err
			}
			return t.show(deleted, fmt.Sprintf("Deleted user %s and %s\n", args[0], count(deleted.DeletedNodes, "node"))+
				keptNodes("the user", deleted.TaggedNodes))
		}),
	}
	cmd.Flags().BoolVar(&tagged, "delete-tagged", false, "also delete the tagged nodes that the users added")
	force = confirmable(cmd)
	return cmd
}

func (t *tool) deleteUsers(ctx context.Context, client *apiclient.Client, force, tagged bool, refs []string) error {
	chosen, err := t.confirmUsers(ctx, client, force, tagged, refs)
	if err != nil {
		return err
	}
	var kept []apiclient.TaggedNode
	results, err := inChunks(t, chosen.ids, func(chunk []string) ([]apiclient.BulkResult, error) {
		out, err := decode[apiclient.BulkResults](answer(client.ChangeUsers(ctx, apiclient.UsersChange{
			Ids: chunk, Action: apiclient.UsersChangeActionDelete, DeleteTagged: &tagged,
		})))
		kept = append(kept, out.TaggedNodes...)
		return out.Results, err
	})
	err = t.showMany(results, chosen, "user", "Deleted %s", err)
	fmt.Fprint(t.Stderr, printable(keptNodes("the users", kept)))
	return err
}

// confirmUsers finds the users to delete, and asks for confirmation.
func (t *tool) confirmUsers(ctx context.Context, client *apiclient.Client, force, tagged bool, refs []string) (choice, error) {
	var chosen choice
	nodes := 0
	for _, ref := range refs {
		found, err := decode[apiclient.UserResult](answer(client.ShowUser(ctx, ref)))
		if err != nil {
			return chosen, err
		}
		if !chosen.seen[found.User.ID] {
			nodes += found.User.NodeCount
		}
		chosen.add(found.User.ID, found.User.Name)
	}
	if force {
		return chosen, nil
	}
	users := "user " + chosen.names[0]
	if len(chosen.names) > 1 {
		users = chosen.text("user")
	}
	lost := []string{users, "their pre-auth keys"}
	brought := broughtIn(ctx, client, chosen)
	switch {
	case len(brought.names) == 0:
	case tagged:
		lost = append(lost, brought.text("tagged node"))
	default:
		t.note("Tagged nodes added by %s are kept: %s. To delete them too, use --delete-tagged", users, brought.text("node"))
	}
	if nodes > 0 {
		lost = append(lost, count(nodes, "node"))
	}
	last := len(lost) - 1
	question := fmt.Sprintf("Delete %s and %s?", strings.Join(lost[:last], ", "), lost[last])
	if last > 1 {
		question += " The nodes lose access immediately."
	}
	return chosen, t.confirm(force, question)
}

// broughtIn returns the tagged nodes that users added. With a key that cannot list nodes, it returns none;
// the server's response lists them when the users are deleted.
func broughtIn(ctx context.Context, client *apiclient.Client, users choice) (found choice) {
	nodes, _ := (&nodeSet{}).find(ctx, client)
	for _, n := range nodes {
		if n.CreatedBy != nil && len(n.Tags) > 0 && users.seen[n.CreatedBy.ID] {
			found.add(n.ID, n.GivenName)
		}
	}
	return found
}

// keptNodes lists the tagged nodes that outlive the users who added them, and says how
// to delete them.
func keptNodes(who string, nodes []apiclient.TaggedNode) string {
	if len(nodes) == 0 {
		return ""
	}
	var kept choice
	for _, n := range nodes {
		name := cmp.Or(n.Name, "node "+n.ID)
		if len(n.Tags) > 0 {
			name += " " + strings.Join(n.Tags, " ")
		}
		kept.add(n.ID, name)
	}
	return fmt.Sprintf("Tagged nodes added by %s are kept: %s\nTo delete them: fairlead nodes delete --identifier %s\n",
		who, kept.text("node"), strings.Join(kept.ids, ","))
}

// completeUsers completes the first argument with user names.
func (t *tool) completeUsers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.completeUserFlag(cmd, nil, "")
}

// completeUserFlag completes a flag with user names.
func (t *tool) completeUserFlag(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	t.ask(cmd, func(ctx context.Context, client *apiclient.Client) {
		list, _ := decode[apiclient.UserList](answer(client.ListUsers(ctx, nil)))
		for _, u := range list.Users {
			names = append(names, u.Name)
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// ask requests something useful but not essential from the server, within a second. It ignores errors,
// because shell completion cannot show them.
func (t *tool) ask(cmd *cobra.Command, question func(context.Context, *apiclient.Client)) {
	silent := *t
	silent.Stderr = io.Discard
	if client, err := silent.connect(); err == nil {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		question(ctx, client)
	}
}

// ifSet returns an optional field of a request: nil for an empty string.
func ifSet[T comparable](v T) *T {
	var unset T
	if v == unset {
		return nil
	}
	return &v
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
