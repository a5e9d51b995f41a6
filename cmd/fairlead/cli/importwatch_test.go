package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

func TestImportWatchTellsWhoIsBackAndWhatWouldBeLost(t *testing.T) {
	then := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	node := func(id string) HeadscaleNode {
		return HeadscaleNode{ID: id, Name: "host" + id, NodeKey: "nodekey:" + id, Tags: []string{"tag:a", "tag:b"}, Approved: []string{"10.0.0.0/8"}, LastSeen: then}
	}
	own := func(id string, change func(*apiclient.Node)) apiclient.Node {
		n := apiclient.Node{ID: id, GivenName: "host" + id, NodeKey: "nodekey:" + id, Tags: []string{"tag:b", "tag:a"}, ApprovedRoutes: []string{"10.0.0.0/8"}, LastSeen: then}
		change(&n)
		return n
	}
	var p moveProgress
	p.take(node("1"), own("1", func(n *apiclient.Node) { n.Online = true }))
	p.take(node("2"), own("2", func(n *apiclient.Node) { n.LastSeen = then.Add(time.Hour) }))
	if p.text() != "2 of 2 imported nodes are back\nGoing back to Headscale's own database now loses nothing\n" {
		t.Errorf("%s", p.text())
	}
	ephemeral := node("3")
	ephemeral.Ephemeral = true
	p.take(ephemeral, own("3", func(n *apiclient.Node) { n.LastSeen = then.Add(time.Hour) }))
	p.take(node("4"), own("4", func(n *apiclient.Node) {
		n.NodeKey, n.GivenName, n.Tags, n.ApprovedRoutes = "nodekey:44", "desk", nil, nil
	}))
	p.objects("user", map[string]string{"1": "ann", "2": "bob"}, map[string]string{"1": "ann", "3": "eve"})
	for _, want := range []string{
		"2 of 4 imported nodes are back", "not back: node 3 (host3), last seen 2026-03-01", "not back: node 4 (desk)", "loses 6 changes:", "signed in again: node 4 (host4)",
		"renamed: node 4 (host4) is now desk", "tags: node 4 (host4) has the tags none", "routes: node 4 (host4) has the approved routes none",
		"created: user 3 (eve)", "deleted: user 2 (bob)",
	} {
		if !strings.Contains(p.text(), want) {
			t.Errorf("%q is missing:\n%s", want, p.text())
		}
	}
}
