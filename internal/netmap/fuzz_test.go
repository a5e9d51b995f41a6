package netmap_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailscale.com/tailcfg"
	"tailscale.com/wgengine/filter"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// For every valid policy, clients can read everything they are sent, and never mistake it
// for a filter that denies everything.
func FuzzClientsReadEveryPolicy(f *testing.F) {
	files, err := filepath.Glob("../policy/lang/testdata/language/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if policyText, _, ok := strings.Cut(string(text), "-- means --\n"); ok {
			f.Add(policyText)
		}
	}
	s := villageOf(f)
	f.Fuzz(func(t *testing.T, text string) {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			return
		}
		sc := netmap.SceneOf(policy.WorldOf(s, doc), nil)
		for n := range s.Nodes.All() {
			var theirs tailcfg.MapResponse
			if err := json.Unmarshal([]byte(encoded(t, netmap.Full(sc, n.ID))), &theirs); err != nil {
				t.Fatalf("node %d: %v", n.ID, err)
			}
			for name, rules := range theirs.PacketFilters {
				if _, err := filter.MatchesFromFilterRules(rules); err != nil {
					t.Errorf("node %d, filter %s: %v", n.ID, name, err)
				}
				for _, r := range rules {
					if len(r.SrcBits) > 0 || len(r.SrcIPs) == 0 || (len(r.DstPorts) == 0) == (len(r.CapGrant) == 0) {
						t.Errorf("node %d, filter %s: %+v", n.ID, name, r)
					}
				}
			}
			for _, r := range theirs.SSHPolicy.Rules {
				if len(r.Principals) == 0 || len(r.SSHUsers) == 0 || r.Action == nil || r.SSHUsers["root"] == "=" {
					t.Errorf("node %d: %+v", n.ID, r)
				}
			}
		}
	})
}

// villageOf returns a mesh with a node of every kind.
func villageOf(tb testing.TB) *mesh.Snapshot {
	tb.Helper()
	d := mesh.Empty().Edit()
	alice, bob := meshgen.User(1), meshgen.User(2)
	alice.Name, bob.Name, bob.Email = "alice", "bob", "bob@example.com"
	d.Apply(1, mesh.UserPut{User: alice}, mesh.UserPut{User: bob})
	routes := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("fd00:1::/64")}
	for id, change := range map[mesh.NodeID]func(*mesh.Node){
		1: func(*mesh.Node) {},
		2: func(n *mesh.Node) { n.CapVersion = 106 },
		3: func(n *mesh.Node) { n.Owner = 2 },
		4: func(n *mesh.Node) { n.Owner, n.Tags = 0, []string{"tag:server"} },
		5: func(n *mesh.Node) {
			n.Owner, n.Tags, n.RoutableIPs, n.Routes = 0, []string{"tag:router"}, routes, routes
		},
		6: func(n *mesh.Node) { n.RoutableIPs = routes[:1] },
	} {
		n := meshgen.Node(id, 1)
		n.CapVersion = 140
		change(n)
		d.Apply(2, mesh.NodePut{Node: n})
	}
	return d.Freeze()
}
