package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// bulkChunk is how many objects one request names: few enough for a person to see progress.
const bulkChunk = 200

// nodeSet is the set of nodes of a command: its arguments and --identifier, or all that match the filters.
type nodeSet struct {
	refs         []string
	identifiers  []uint
	user, tag    string
	all, offline bool
}

func (s *nodeSet) flags(t *tool, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.UintSliceVar(&s.identifiers, "identifier", nil, "`ID` of a node, in addition to the arguments")
	flags.Lookup("identifier").DefValue = "" // otherwise help shows an empty list
	complete(cmd, "identifier", cobra.NoFileCompletions)
	cmd.Flags().StringVar(&s.user, "user", "", "all nodes of this `user`, by name or ID")
	cmd.Flags().StringVar(&s.tag, "tag", "", "all nodes with this `tag`, such as tag:web")
	complete(cmd, "user", t.completeUserFlag)
	complete(cmd, "tag", t.completeTags)
}

func (s *nodeSet) filtered() bool { return s.user != "" || s.tag != "" }

// name sets the nodes that the arguments and --identifier name.
func (s *nodeSet) name(args []string) {
	s.refs = slices.Clone(args)
	for _, id := range s.identifiers {
		s.refs = append(s.refs, strconv.FormatUint(uint64(id), 10))
	}
}

// takes validates the arguments of a command.
func (s *nodeSet) takes(_ *cobra.Command, args []string) error {
	s.name(args)
	switch {
	case slices.Contains(s.refs, ""):
		return errors.New("argument <node> must not be empty")
	case s.filtered() && len(s.refs) > 0:
		return errors.New("use either the arguments <node>..., or --user and --tag")
	case !s.filtered() && len(s.refs) == 0:
		return errors.New("missing argument <node>: specify nodes, or use --user or --tag")
	}
	return nil
}

// one returns the node if the command names exactly one.
func (s *nodeSet) one() (ref string, ok bool) {
	if len(s.refs) != 1 {
		return "", false
	}
	return s.refs[0], true
}

func (s *nodeSet) find(ctx context.Context, client *apiclient.Client) (nodes []apiclient.Node, err error) {
	if len(s.refs) == 0 {
		var online *bool
		if s.offline {
			online = new(false)
		}
		return allPages(func(limit *int, cursor *string) ([]apiclient.Node, *string, error) {
			list, err := decode[apiclient.NodeList](answer(client.ListNodes(ctx, &apiclient.ListNodesParams{
				User: ifSet(s.user), Tag: ifSet(s.tag), Online: online, Limit: limit, Cursor: cursor,
			})))
			return list.Nodes, list.Next, err
		})
	}
	for _, ref := range s.refs {
		found, err := decode[apiclient.NodeResult](answer(client.ShowNode(ctx, ref)))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, found.Node)
	}
	return nodes, nil
}

// nodesWork describes a command for many nodes. The confirmation question and the final message contain %s
// for the names or the number of nodes. Nodes that need no change are counted separately, with %d in
// skipped.
type nodesWork struct {
	change         apiclient.NodesChange
	question, done string
	skips          func(apiclient.Node) bool
	skipped        string
}

// changeNodes makes the change after confirmation.
func (t *tool) changeNodes(ctx context.Context, set *nodeSet, force bool, work nodesWork) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	nodes, err := set.find(ctx, client)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return t.show([]apiclient.NodeBulkResult{}, "No matching nodes\n")
	}
	var chosen choice
	skips := map[string]bool{}
	for _, n := range nodes {
		chosen.add(n.ID, n.GivenName)
		skips[n.ID] = work.skips != nil && work.skips(n)
	}
	destructive := len(set.refs) == 0 || work.change.Action == apiclient.NodesChangeActionDelete
	if err := t.confirmIf(destructive, force, fmt.Sprintf(work.question, chosen.text("node"))); err != nil {
		return err
	}
	results, err := inChunks(t, chosen.ids, func(chunk []string) ([]apiclient.NodeBulkResult, error) {
		work.change.Ids = chunk
		out, err := decode[apiclient.NodeBulkResults](answer(client.ChangeNodes(ctx, work.change)))
		return out.Results, err
	})
	out := bulkOutcome{asked: len(results), refused: map[int]string{}, names: chosen.names, thing: "node", done: work.done}
	for i, r := range results {
		switch {
		case r.Error != nil:
			out.refused[i] = r.Error.Message
		case skips[r.ID]:
			out.skipped++
		}
	}
	if out.skipped > 0 {
		out.done += "; " + fmt.Sprintf(work.skipped, out.skipped)
	}
	return t.showBulk(results, out, err)
}

// choice is a list of objects without duplicates.
type choice struct {
	ids, names []string
	seen       map[string]bool
}

func (c *choice) add(id, name string) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if !c.seen[id] {
		c.seen[id] = true
		c.ids, c.names = append(c.ids, id), append(c.names, name)
	}
}

// text lists a few of many objects: "7 nodes (a, b, c, d, e and 2 more)".
func (c *choice) text(thing string) string {
	const shown = 5
	list := strings.Join(c.names[:min(shown, len(c.names))], ", ")
	if more := len(c.names) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s (%s)", count(len(c.names), thing), list)
}

// inChunks calls a function for one chunk of ids after another, and shows progress to a person.
func inChunks[T any](t *tool, ids []string, call func(chunk []string) ([]T, error)) (all []T, err error) {
	shown := t.Terminal && len(ids) > bulkChunk
	if shown {
		defer fmt.Fprint(t.Stderr, "\r\x1b[K")
	}
	for chunk := range slices.Chunk(ids, bulkChunk) {
		if shown {
			fmt.Fprintf(t.Stderr, "\r%d of %d", len(all), len(ids))
		}
		results, err := call(chunk)
		if err != nil && len(all) > 0 {
			err = fmt.Errorf("stopped after %d of %d: %w", len(all), len(ids), err)
		}
		if err != nil {
			return all, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// bulkOutcome is the result for many objects. done contains %s for the number of changed objects.
type bulkOutcome struct {
	asked, skipped int
	refused        map[int]string
	names          []string
	thing, done    string
}

// refusals returns a line for each reason.
func (o *bulkOutcome) refusals() string {
	var reasons []string
	of := map[string]*choice{}
	for i := range o.asked {
		why, refused := o.refused[i]
		if !refused {
			continue
		}
		if of[why] == nil {
			reasons, of[why] = append(reasons, why), &choice{}
		}
		of[why].add(strconv.Itoa(i), o.names[i])
	}
	var b strings.Builder
	for _, why := range reasons {
		who := of[why].names[0]
		if len(of[why].names) > 1 {
			who = of[why].text(o.thing)
		}
		fmt.Fprintf(&b, "%s: %s\n", who, why)
	}
	return b.String()
}

// showBulk prints what was done, and on stderr what was not. Any refusal is a failure.
func (t *tool) showBulk(results any, o bulkOutcome, err error) error {
	if o.asked == 0 {
		return err
	}
	text := fmt.Sprintf(o.done, count(o.asked-len(o.refused)-o.skipped, o.thing)) + "\n"
	if shown := t.show(results, text); shown != nil {
		return errors.Join(shown, err)
	}
	fmt.Fprint(t.Stderr, printable(o.refusals()))
	if len(o.refused) > 0 {
		err = errors.Join(err, fmt.Errorf("failed for %d of %s", len(o.refused), count(o.asked, o.thing)))
	}
	return err
}

// changeMany changes many objects other than nodes.
func (t *tool) changeMany(chosen choice, thing, done string, call func(ids []string) ([]byte, error)) error {
	results, err := inChunks(t, chosen.ids, func(chunk []string) ([]apiclient.BulkResult, error) {
		out, err := decode[apiclient.BulkResults](call(chunk))
		return out.Results, err
	})
	return t.showMany(results, chosen, thing, done, err)
}

func (t *tool) showMany(results []apiclient.BulkResult, chosen choice, thing, done string, err error) error {
	refused := map[int]string{}
	for i, r := range results {
		if r.Error != nil {
			refused[i] = r.Error.Message
		}
	}
	return t.showBulk(results, bulkOutcome{asked: len(results), refused: refused, names: chosen.names, thing: thing, done: done}, err)
}
