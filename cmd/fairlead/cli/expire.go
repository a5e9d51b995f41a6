package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// expiration is what nodes expire was asked for.
type expiration struct {
	nodes           []string
	identifiers     []uint
	all, allOffline bool
	at              string
	never           bool
	found           nodeSet // by filters alone
}

// check says what is wrong with the arguments, before anybody is asked.
func (e *expiration) check(args []string) error {
	e.nodes = args
	for _, id := range e.identifiers {
		e.nodes = append(e.nodes, strconv.FormatUint(uint64(id), 10))
	}
	for _, n := range e.nodes {
		if n == "" {
			return errors.New("node must not be empty")
		}
	}
	if e.found.filtered() {
		if len(e.nodes) > 0 || e.all || e.allOffline || e.at != "" || e.never {
			return errors.New("--user and --tag take no nodes, and no --all, --all-offline, --at or --never")
		}
		return nil
	}
	switch {
	case e.all && e.allOffline:
		return errors.New("give only one of --all and --all-offline")
	case (e.all || e.allOffline) && len(e.nodes) > 0:
		return errors.New("--all and --all-offline take no nodes")
	case !e.all && !e.allOffline && len(e.nodes) == 0:
		return errors.New("name nodes, or use --all or --all-offline")
	case e.at != "" && e.never:
		return errors.New("give only one of --at and --never")
	case (e.at != "" || e.never) && len(e.nodes) == 0:
		return errors.New("--at and --never are for nodes that are named")
	}
	return nil
}

// change is what happens to each node when it is not to expire now.
func (e *expiration) change(now time.Time) (apiclient.NodeExpiryChange, error) {
	if e.never {
		return apiclient.NodeExpiryChange{DisableExpiry: new(true)}, nil
	}
	if in, err := config.ParseDuration(e.at); err == nil {
		return apiclient.NodeExpiryChange{Expiry: new(now.Add(in).UTC())}, nil
	}
	at, err := time.Parse(time.RFC3339, e.at)
	if err != nil {
		return apiclient.NodeExpiryChange{}, wrongUsage("%q is neither a time such as 2027-01-31T12:00:00Z nor a duration such as 30d", e.at)
	}
	return apiclient.NodeExpiryChange{Expiry: &at}, nil
}

// which names the nodes in a question.
func (e *expiration) which() string {
	switch {
	case e.all:
		return "ALL nodes of the network"
	case e.allOffline:
		return "all nodes that are offline"
	case len(e.nodes) == 1:
		return "node " + e.nodes[0]
	}
	return "nodes " + strings.Join(e.nodes, ", ")
}

func (t *tool) nodesExpire() *cobra.Command {
	var (
		e     expiration
		force *bool
	)
	cmd := &cobra.Command{
		Use:   "expire (<node>...|--user|--tag|--all|--all-offline)",
		Short: "Make nodes sign in again, now, at a time or never",
		Long: `Expire nodes: they lose access until they sign in again, and keep their names
and addresses. Nodes that have expired already are skipped and counted.

--at and --never change when the named nodes expire; a node that has expired is
back at once if its time is yet to come.

` + nodeForms,
		Example: `  fairlead nodes expire alices-laptop 100.64.0.7
  fairlead nodes expire --identifier 7
  fairlead nodes expire --user alice
  fairlead nodes expire --all-offline
  fairlead nodes expire alices-laptop --at 30d
  fairlead nodes expire printer --never`,
		Args:              func(_ *cobra.Command, args []string) error { return e.check(args) },
		ValidArgsFunction: t.completeNodes,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case e.at != "" || e.never:
				return t.changeExpiry(cmd.Context(), &e)
			case e.found.filtered():
				return t.changeNodes(cmd.Context(), &e.found, *force, nodesWork{
					change:   apiclient.NodesChange{Action: apiclient.NodesChangeActionExpire},
					question: "Expire %s, with no access until the next sign-in?", done: "Expired %s",
				})
			}
			client, err := t.connect()
			if err != nil {
				return err
			}
			if err := t.confirm(*force, fmt.Sprintf("Expire %s, with no access until the next sign-in?", e.which())); err != nil {
				return err
			}
			done, err := decode[apiclient.NodesExpiry](answer(client.ExpireNodes(cmd.Context(), apiclient.NodeSelection{
				All: &e.all, AllOffline: &e.allOffline, Nodes: e.nodes,
			})))
			if err != nil {
				return err
			}
			text := "Expired " + count(done.Expired, "node")
			if done.AlreadyExpired > 0 {
				text += fmt.Sprintf("; %d had expired already", done.AlreadyExpired)
			}
			return t.show(done, text+"\n")
		},
	}
	flags := cmd.Flags()
	flags.UintSliceVar(&e.identifiers, "identifier", nil, "`id` of a node, beside the arguments")
	flags.Lookup("identifier").DefValue = "" // or help shows an empty list
	e.found.filters(t, cmd)
	flags.BoolVar(&e.all, "all", false, "all nodes, those with tags included")
	flags.BoolVar(&e.allOffline, "all-offline", false, "all nodes that hold no connection")
	flags.StringVar(&e.at, "at", "", "expire at this `time`, such as 2027-01-31T12:00:00Z, or after a while, such as 30d")
	flags.BoolVar(&e.never, "never", false, "let the nodes never expire")
	complete(cmd, "identifier", cobra.NoFileCompletions)
	complete(cmd, "at", cobra.NoFileCompletions)
	force = confirmable(cmd)
	return cmd
}

// changeExpiry sets when nodes expire, one after the other.
func (t *tool) changeExpiry(ctx context.Context, e *expiration) error {
	change, err := e.change(t.Now())
	if err != nil {
		return err
	}
	client, err := t.connect()
	if err != nil {
		return err
	}
	nodes := []apiclient.Node{}
	var text strings.Builder
	expired := 0
	for _, ref := range e.nodes {
		result, err := decode[apiclient.NodeResult](answer(client.ExpireNode(ctx, ref, nil, change)))
		if err != nil {
			return errors.Join(t.show(nodes, text.String()), err)
		}
		nodes = append(nodes, result.Node)
		switch n := result.Node; {
		case n.Expired:
			expired++
		case n.Expiry == nil:
			fmt.Fprintf(&text, "Node %s never expires\n", n.GivenName)
		default:
			fmt.Fprintf(&text, "Node %s expires at %s\n", n.GivenName, timeText(*n.Expiry))
		}
	}
	if expired > 0 {
		fmt.Fprintf(&text, "Expired %s\n", count(expired, "node"))
	}
	return t.show(nodes, text.String())
}
