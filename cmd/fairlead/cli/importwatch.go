package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// HeadscaleNetwork is what Headscale's own database holds, as an import reads it.
type HeadscaleNetwork struct {
	Nodes []HeadscaleNode
	// Users, PreAuthKeys and APIKeys are names or prefixes by id.
	Users, PreAuthKeys, APIKeys map[string]string
	Policy                      string
}

// HeadscaleNode is a node in Headscale's database.
type HeadscaleNode struct {
	ID, Name, NodeKey string
	Tags, Approved    []string
	// LastSeen is when it last connected to Headscale, or joined.
	LastSeen  time.Time
	Ephemeral bool
}

// moveProgress says which imported nodes have connected, and what a return to Headscale's own database would lose.
type moveProgress struct {
	Imported int           `json:"imported"`
	Back     int           `json:"back"`
	NotBack  []absentNode  `json:"notBack"`
	Lost     []lostByGoing `json:"lost"`
}

type absentNode struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	LastSeen time.Time `json:"lastSeen"`
}

// lostByGoing is a change that Headscale's own database does not have.
type lostByGoing struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func (t *tool) importWatch() *cobra.Command {
	in := HeadscaleImport{From: headscaleConfig}
	var where string
	var once bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show who is back, and what going back would lose",
		Long: `Show how many of the imported nodes have connected to this server, which have
not, and what you would lose if you went back to Headscale's own database now:
nodes that joined or signed in again, and changes to names, tags, routes, users,
keys and the policy. "fairlead export headscale" keeps most of these.

The command compares the running server with the database of Headscale, which it
only reads. It keeps running and updates the output when something changes.`,
		Example: `  fairlead import watch
  fairlead import watch --once --output json`,
		Args: takes(),
	}
	look := func(ctx context.Context) error {
		client, err := t.connect()
		if err != nil {
			return err
		}
		c, err := t.ownConfig()
		if err != nil {
			return err
		}
		if t.ReadHeadscale == nil {
			return errNoDatabases
		}
		old, err := t.ReadHeadscale(ctx, c, in)
		if err != nil {
			return err
		}
		p, err := moved(ctx, client, old)
		if err != nil {
			return err
		}
		return t.show(p, p.text())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := in.locate(where); err != nil {
			return err
		}
		if once {
			return look(cmd.Context())
		}
		return t.watchList(cmd.Context(), func() error { return look(cmd.Context()) })
	}
	flags := cmd.Flags()
	in.locatedBy(cmd, &where)
	flags.BoolVar(&once, "once", false, "show it once")
	return cmd
}

// moved compares the server with what Headscale had.
func moved(ctx context.Context, client *apiclient.Client, old HeadscaleNetwork) (p moveProgress, err error) {
	nodes, err := decode[apiclient.NodeList](answer(client.ListNodes(ctx, &apiclient.ListNodesParams{})))
	if err != nil {
		return p, err
	}
	users, err := decode[apiclient.UserList](answer(client.ListUsers(ctx, &apiclient.ListUsersParams{})))
	if err != nil {
		return p, err
	}
	preAuth, err := decode[apiclient.PreAuthKeyList](answer(client.ListPreAuthKeys(ctx, &apiclient.ListPreAuthKeysParams{})))
	if err != nil {
		return p, err
	}
	keys, err := decode[apiclient.APIKeyList](answer(client.ListAPIKeys(ctx, &apiclient.ListAPIKeysParams{})))
	if err != nil {
		return p, err
	}
	now := map[string]apiclient.Node{}
	for _, n := range nodes.Nodes {
		now[n.ID] = n
	}
	for _, n := range old.Nodes {
		if own, ok := now[n.ID]; ok {
			p.take(n, own)
			delete(now, n.ID)
			continue
		}
		p.lose("deleted", "node %s (%s)", n.ID, n.Name)
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		p.lose("joined", "node %s (%s)", id, now[id].GivenName)
	}
	ids := map[string]string{}
	for _, u := range users.Users {
		ids[u.ID] = u.Name
	}
	p.objects("user", old.Users, ids)
	ids = map[string]string{}
	for _, k := range preAuth.PreAuthKeys {
		ids[k.ID] = ""
	}
	p.objects("pre-auth key", old.PreAuthKeys, ids)
	ids = map[string]string{}
	for _, k := range keys.APIKeys {
		ids[k.ID] = k.Prefix
	}
	p.objects("API key", old.APIKeys, ids)
	policy, err := getPolicy(ctx, client, "")
	if err == nil && policy.Policy != old.Policy {
		p.lose("changed", "the policy")
	}
	return p, err
}

func (p *moveProgress) lose(kind, format string, args ...any) {
	p.Lost = append(p.Lost, lostByGoing{kind, fmt.Sprintf(format, args...)})
}

// take compares a node.
func (p *moveProgress) take(old HeadscaleNode, now apiclient.Node) {
	p.Imported++
	name := fmt.Sprintf("node %s (%s)", old.ID, old.Name)
	seen := now.LastSeen.After(old.LastSeen.Add(time.Second)) && !old.Ephemeral // whose time starts with the import
	if now.Online || seen {
		p.Back++
	} else {
		p.NotBack = append(p.NotBack, absentNode{old.ID, now.GivenName, old.LastSeen})
	}
	if now.NodeKey != old.NodeKey {
		p.lose("signed in again", "%s", name)
	}
	if now.GivenName != old.Name {
		p.lose("renamed", "%s is now %s", name, now.GivenName)
	}
	if !sameTexts(now.Tags, old.Tags) {
		p.lose("tags", "%s has the tags %s", name, cmp.Or(strings.Join(now.Tags, ", "), "none"))
	}
	if !sameTexts(now.ApprovedRoutes, old.Approved) {
		p.lose("routes", "%s has the approved routes %s", name, cmp.Or(strings.Join(now.ApprovedRoutes, ", "), "none"))
	}
}

func sameTexts(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// objects compares which users or keys there are.
func (p *moveProgress) objects(noun string, old, now map[string]string) {
	label := func(id, name string) string {
		if name == "" {
			return noun + " " + id
		}
		return fmt.Sprintf("%s %s (%s)", noun, id, name)
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if _, ok := old[id]; !ok {
			p.lose("created", "%s", label(id, now[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[id]; !ok {
			p.lose("deleted", "%s", label(id, old[id]))
		}
	}
}

func (p moveProgress) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %s are back\n", p.Back, count(p.Imported, "imported node"))
	for _, n := range p.NotBack {
		fmt.Fprintf(&text, "  not back: node %s (%s), last seen %s\n", n.ID, n.Name, timeText(n.LastSeen))
	}
	if len(p.Lost) == 0 {
		text.WriteString("Going back to Headscale's own database now loses nothing\n")
		return text.String()
	}
	fmt.Fprintf(&text, "Going back to Headscale's own database now loses %s:\n", count(len(p.Lost), "change"))
	for _, l := range p.Lost {
		fmt.Fprintf(&text, "  %s: %s\n", l.Kind, l.Text)
	}
	return text.String()
}
