package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// expiration holds the options of nodes expire.
type expiration struct {
	set   nodeSet
	at    string
	never bool
}

// check validates the arguments before any confirmation question.
func (e *expiration) check(args []string) error {
	s := &e.set
	s.name(args)
	for _, n := range s.refs {
		if n == "" {
			return errors.New("argument <node> must not be empty")
		}
	}
	switch {
	case s.filtered() && (len(s.refs) > 0 || s.all || s.offline):
		return errors.New("--user and --tag cannot be combined with nodes, --all or --all-offline")
	case s.all && s.offline:
		return errors.New("use only one of --all and --all-offline")
	case (s.all || s.offline) && len(s.refs) > 0:
		return errors.New("--all and --all-offline cannot be combined with nodes")
	case !s.filtered() && !s.all && !s.offline && len(s.refs) == 0:
		return errors.New("missing argument <node>: specify nodes, or use --user, --tag, --all or --all-offline")
	case e.at != "" && e.never:
		return errors.New("use only one of --at and --never")
	}
	return nil
}

// change returns the change to make to each node. Without --at and --never it is empty, which means
// that the node expires now.
func (e *expiration) change(now time.Time) (c apiclient.NodeExpiryChange, err error) {
	if e.never {
		c.DisableExpiry = new(true)
	}
	if e.at == "" {
		return c, nil
	}
	at, err := time.Parse(time.RFC3339, e.at)
	if in, bad := config.ParseDuration(e.at); bad == nil {
		at, err = now.Add(in).UTC(), nil
	}
	if err != nil {
		return c, wrongUsage("invalid --at %q: use a time such as 2027-01-31T12:00:00Z or a duration such as 30d", e.at)
	}
	c.Expiry = &at
	return c, nil
}

const expireQuestion = "Expire %s? Expired nodes have no access until they sign in again."

// work describes the change for many nodes. ends means that they lose access.
func (e *expiration) work(c apiclient.NodeExpiryChange, ends bool) nodesWork {
	w := nodesWork{
		change:   apiclient.NodesChange{Action: apiclient.NodesChangeActionExpire, Expiry: c.Expiry, DisableExpiry: c.DisableExpiry},
		question: "Disable expiry for %s? Expired nodes regain access immediately.", done: "Disabled expiry for %s",
	}
	switch {
	case ends:
		w.question, w.done = expireQuestion, "Expired %s"
		w.skips, w.skipped = func(n apiclient.Node) bool { return n.Expired }, "%d had already expired"
	case !e.never:
		at := timeText(*c.Expiry)
		w.question, w.done = "Set the expiry of %s to "+at+"? Expired nodes regain access immediately.", "Set the expiry of %s to "+at
	}
	return w
}

func (t *tool) nodesExpire() *cobra.Command {
	var (
		e     expiration
		force *bool
	)
	cmd := &cobra.Command{
		Use:   "expire (<node>...|--user|--tag|--all|--all-offline)",
		Short: "Expire nodes, or change when they expire",
		Long: `Expire nodes. They lose access until they sign in again, and keep their names
and addresses. Nodes that have already expired are skipped and counted.

--at and --never change when nodes expire. An expired node whose new expiry is
in the future regains access immediately, unless somebody has started to log in
on it again: then approve that login. "--all --never" therefore reactivates all
expired nodes and disables expiry for every node.

` + nodeForms,
		Example: `  fairlead nodes expire alices-laptop 100.64.0.7
  fairlead nodes expire --identifier 7
  fairlead nodes expire --user alice
  fairlead nodes expire --all-offline
  fairlead nodes expire alices-laptop --at 30d
  fairlead nodes expire printer --never
  fairlead nodes expire --user alice --at 180d`,
		Args:              func(_ *cobra.Command, args []string) error { return e.check(args) },
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := t.Now()
			change, err := e.change(now)
			if err != nil {
				return err
			}
			ends := !e.never && (change.Expiry == nil || !change.Expiry.After(now))
			ref, one := e.set.one()
			switch plain := e.at == "" && !e.never; {
			case plain && !e.set.filtered():
				return t.expireNow(cmd.Context(), &e.set, *force)
			case one:
				return t.changeExpiry(cmd.Context(), ref, change, *force || !ends)
			}
			return t.changeNodes(cmd.Context(), &e.set, *force, e.work(change, ends))
		},
	}
	flags := cmd.Flags()
	e.set.flags(t, cmd)
	flags.BoolVar(&e.set.all, "all", false, "all nodes, including tagged ones")
	flags.BoolVar(&e.set.offline, "all-offline", false, "all nodes that are offline")
	flags.StringVar(&e.at, "at", "", "expire at this `time`, such as 2027-01-31T12:00:00Z, or after a duration, such as 30d")
	flags.BoolVar(&e.never, "never", false, "disable expiry")
	complete(cmd, "at", cobra.NoFileCompletions)
	force = confirmableUnlessNamed(cmd)
	return cmd
}

// expireNow expires the named nodes, or all, in one request.
func (t *tool) expireNow(ctx context.Context, set *nodeSet, force bool) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	which, err := t.whichExpire(ctx, client, set, force)
	if err != nil {
		return err
	}
	if err := t.confirmIf(len(set.refs) == 0, force, fmt.Sprintf(expireQuestion, which)); err != nil {
		return err
	}
	done, err := decode[apiclient.NodesExpiry](answer(client.ExpireNodes(ctx, apiclient.NodeSelection{
		All: &set.all, AllOffline: &set.offline, Nodes: set.refs,
	})))
	if err != nil {
		return err
	}
	text := "Expired " + count(done.Expired, "node")
	if done.AlreadyExpired > 0 {
		text += fmt.Sprintf("; %d had already expired", done.AlreadyExpired)
	}
	return t.show(done, text+"\n")
}

// whichExpire names or counts the nodes for a question.
func (t *tool) whichExpire(ctx context.Context, client *apiclient.Client, set *nodeSet, force bool) (string, error) {
	switch {
	case len(set.refs) == 1:
		return "node " + set.refs[0], nil
	case len(set.refs) > 0:
		return "nodes " + strings.Join(set.refs, ", "), nil
	case force:
		return "", nil
	}
	nodes, err := set.find(ctx, client)
	if set.all {
		return fmt.Sprintf("ALL %s in the network", count(len(nodes), "node")), err
	}
	return fmt.Sprintf("all %s that are offline", count(len(nodes), "node")), err
}

// changeExpiry sets when one node expires.
func (t *tool) changeExpiry(ctx context.Context, ref string, change apiclient.NodeExpiryChange, force bool) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	if err := t.confirmPerson(force, fmt.Sprintf(expireQuestion, "node "+ref)); err != nil {
		return err
	}
	result, err := decode[apiclient.NodeResult](answer(client.ExpireNode(ctx, ref, nil, change)))
	if err != nil {
		return err
	}
	var text string
	switch n := result.Node; {
	case n.Expired:
		text = "Expired 1 node\n"
	case n.Expiry == nil:
		text = fmt.Sprintf("Disabled expiry for node %s\n", n.GivenName)
	default:
		text = fmt.Sprintf("Set the expiry of node %s to %s\n", n.GivenName, timeText(*n.Expiry))
	}
	return t.show([]apiclient.Node{result.Node}, text)
}
