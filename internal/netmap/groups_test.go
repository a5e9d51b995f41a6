package netmap_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// A change of membership reaches exactly the viewers whose maps it changes, like a change of the policy.
func TestMembershipChangeIsSentOnlyToThoseItAffects(t *testing.T) {
	const doc = `{"tagOwners": {"tag:db": [], "tag:web": []}, "acls": [
		{"action": "accept", "src": ["group:dev"], "dst": ["tag:db:5432"]},
		{"action": "accept", "src": ["autogroup:member"], "dst": ["tag:web:80"]}],
		"ssh": [{"action": "accept", "src": ["user2@"], "dst": ["tag:web"], "users": ["root"]}]}`
	const laptop, phone, other, db, web = 1, 2, 3, 4, 5
	d := mesh.Empty().Edit()
	d.Apply(1, mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: doc}},
		mesh.NodePut{Node: meshgen.Node(laptop, 1)}, mesh.NodePut{Node: meshgen.Node(phone, 1)}, mesh.NodePut{Node: meshgen.Node(other, 2)})
	for id, tag := range map[mesh.NodeID]string{db: "tag:db", web: "tag:web"} {
		n := meshgen.Node(id, 0)
		n.Tags = []string{tag}
		d.Apply(1, mesh.NodePut{Node: n})
	}
	from := netmap.SceneOf(policy.NewWorld(d.Freeze(), nil), nil)
	change := func(groups ...string) *netmap.Scene {
		u := *meshgen.User(1)
		u.Groups = groups
		s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.UserPut{User: &u})
		if len(touched) > 0 {
			t.Errorf("touched %v", touched)
		}
		return netmap.SceneOf(from.Next(s, touched), from)
	}
	told := func(to *netmap.Scene) (list []mesh.NodeID) {
		cache := netmap.NewCache("")
		for _, id := range []mesh.NodeID{laptop, phone, other, db, web} {
			u, err := cache.Update(from, to, netmap.Viewer{Node: id, Compress: true}, nil)
			if err != nil || u.Full || u.Gone {
				t.Errorf("node %d: %+v, %v", id, u, err)
			}
			if len(u.Messages) > 0 {
				list = append(list, id)
			}
		}
		return list
	}
	same := func(got []mesh.NodeID, want ...mesh.NodeID) bool {
		if len(got) != len(want) {
			return false
		}
		for i := range got {
			if got[i] != want[i] {
				return false
			}
		}
		return true
	}
	if got := told(change("unused")); len(got) != 0 {
		t.Errorf("a group that no rule names is told to %v", got)
	}
	joined := change("dev", "unused")
	// The web server is told the new marks of its peers laptop and phone.
	if got := told(joined); !same(got, laptop, phone, db, web) {
		t.Errorf("a new member is told to %v", got)
	}
	if n, _ := joined.Nodes.Get(other); joined.Class(n) != from.Class(n) || joined.Rules() != from.Rules() {
		t.Error("another user's node changed its class, or the policy was compiled again")
	}
	if got := policy.Reclassified(from.World, joined.World); !same(got, laptop, phone) {
		t.Errorf("reclassified %v", got)
	}
	from = joined
	if got := told(change("unused")); !same(got, laptop, phone, db, web) {
		t.Errorf("a member who left is told to %v", got)
	}
}

// A person who gets or loses the role admin gets or loses what autogroup:admin may do, without a new policy.
func TestRoleChangeMovesTheNodesOfOnePerson(t *testing.T) {
	const doc = `{"tagOwners": {"tag:vault": []}, "acls": [{"action": "accept", "src": ["autogroup:admin"], "dst": ["tag:vault:22"]}]}`
	const laptop, other, vault = 1, 2, 3
	server := meshgen.Node(vault, 0)
	server.Tags = []string{"tag:vault"}
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: doc}},
		mesh.NodePut{Node: meshgen.Node(laptop, 1)}, mesh.NodePut{Node: meshgen.Node(other, 2)}, mesh.NodePut{Node: server})
	w := policy.NewWorld(s, nil)
	for _, c := range []struct {
		role mesh.Role
		sees bool
	}{{"", false}, {mesh.RoleOperator, false}, {mesh.RoleAdmin, true}, {mesh.RoleMember, false}} {
		u := *meshgen.User(1)
		u.Role = c.role
		s, touched := mesh.Apply(w.Snapshot, w.Rev+1, mesh.UserPut{User: &u})
		next := w.Next(s, touched)
		if next.Rules() != w.Rules() {
			t.Error("the policy was compiled again")
		}
		w = next
		for id, want := range map[mesh.NodeID]bool{laptop: c.sees, other: false} {
			n, _ := w.Nodes.Get(id)
			if got := w.Sees(w.Class(n), n.Owner, server); got != want {
				t.Errorf("with the role %q, node %d sees the vault: %v", c.role, id, got)
			}
		}
	}
}

// company returns a mesh of people with two nodes and two of the provider's groups each, so that hardly two people
// have nodes of the same class, and one server for each group, which its members can reach. The servers have the first
// ids. more holds further rules.
func company(people, groups int, more string) *netmap.Scene {
	rules, tags := more, ""
	d := mesh.Empty().Edit()
	for g := range groups {
		rules += fmt.Sprintf(`{"action": "accept", "src": ["group:team%d"], "dst": ["tag:team%d:22"]},`, g, g)
		tags += fmt.Sprintf(`"tag:team%d": [],`, g)
		n := meshgen.Node(mesh.NodeID(g+1), 0)
		n.Tags, n.CapVersion = []string{fmt.Sprintf("tag:team%d", g)}, 140
		d.Apply(1, mesh.NodePut{Node: n})
	}
	d.Apply(1, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: `{"tagOwners": {` + tags + `}, "acls": [` + rules + `]}`}})
	for i := range people {
		u := *meshgen.User(mesh.UserID(i + 1))
		u.Groups = []string{fmt.Sprintf("team%d", i%groups), fmt.Sprintf("team%d", (i+1+i/groups)%groups)}
		slices.Sort(u.Groups)
		d.Apply(1, mesh.UserPut{User: &u})
		for k := range 2 {
			n := meshgen.Node(mesh.NodeID(groups+2*i+k+1), u.ID)
			n.CapVersion = 140
			d.Apply(1, mesh.NodePut{Node: n})
		}
	}
	return netmap.SceneOf(policy.NewWorld(d.Freeze(), nil), nil)
}

// join returns the scene after a person has joined a group.
func join(from *netmap.Scene, id mesh.UserID, group string) *netmap.Scene {
	was, _ := from.Users.Get(id)
	u := *was
	u.Groups = append(slices.Clone(u.Groups), group)
	slices.Sort(u.Groups)
	s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.UserPut{User: &u})
	return netmap.SceneOf(from.Next(s, touched), from)
}

func TestMembershipChangeCostsOthersNothing(t *testing.T) {
	const people, groups, member, joined = 200, 10, 60, 7
	from := company(people, groups, "")
	to := join(from, member, fmt.Sprintf("team%d", joined))
	if to.Rules() != from.Rules() {
		t.Error("the policy was compiled again")
	}
	if got := policy.Reclassified(from.World, to.World); !slices.Equal(got, from.Owned(member)) {
		t.Errorf("nodes %v got another class", got)
	}
	cache, touched := netmap.NewCache(""), []mesh.NodeID{}
	viewpoints, others := map[netmap.Viewpoint]bool{}, 0
	for n := range to.Nodes.All() {
		concerns := n.Owner == member || slices.ContainsFunc(from.Owned(member), func(id mesh.NodeID) bool {
			peer, _ := to.Nodes.Get(id)
			return to.Shows(to.Viewpoint(n), peer)
		})
		update := func() [][]byte {
			u, err := cache.Update(from, to, netmap.Viewer{Node: n.ID, Compress: true}, touched)
			if err != nil {
				t.Fatal(err)
			}
			return u.Messages
		}
		if messages := update(); len(messages) > 0 != concerns {
			t.Errorf("node %d, which the change concerns: %v, is sent %d messages", n.ID, concerns, len(messages))
		}
		if concerns {
			continue
		}
		others++
		viewpoints[to.Viewpoint(n)] = true
		if allocations := testing.AllocsPerRun(1, func() { update() }); allocations > 0 {
			t.Errorf("node %d costs %v allocations", n.ID, allocations)
		}
	}
	// One delta is for all others, whatever their class, one for the member, and one for each server of the member's three
	// groups, which is told only its own group.
	if got := cache.Deltas(from, to); others < 2*people || len(viewpoints) < 50 || got != 5 {
		t.Errorf("%d deltas for %d others of %d viewpoints, want 5", got, others, len(viewpoints))
	}
}

// What a change sends to many classes is rendered once for all of them.
func TestMembershipChangeIsRenderedOnceForAllClasses(t *testing.T) {
	const people, groups, member = 200, 10, 60
	from := company(people, groups, `{"action": "accept", "src": ["*"], "dst": ["*:443"]},`)
	to := join(from, member, "team7")
	cache, viewpoints := netmap.NewCache(""), map[netmap.Viewpoint]bool{}
	for n := range to.Nodes.All() {
		viewpoints[to.Viewpoint(n)] = true
		u, err := cache.Update(from, to, netmap.Viewer{Node: n.ID, Compress: true}, []mesh.NodeID{})
		if err != nil || len(u.Messages) == 0 {
			t.Fatalf("node %d is sent %d messages, %v", n.ID, len(u.Messages), err)
		}
		if n.ID%20 == 1 || n.Owner == member {
			if diff := netmap.Verify(from, to, netmap.Viewer{Node: n.ID, Compress: true}, u.Messages); diff != "" {
				t.Fatalf("node %d: %s", n.ID, diff)
			}
		}
	}
	if got := cache.Deltas(from, to); got != 5 || len(viewpoints) < 50 {
		t.Errorf("%d deltas for %d viewpoints, want one for the member, three for the servers of the member's groups, and one for everyone else", got, len(viewpoints))
	}
}

// A device is told only the groups by which rules let people reach it.
func TestDevicesAreToldTheGroupsThatRulesForThemName(t *testing.T) {
	const doc = `{"tagOwners": {"tag:db": [], "tag:web": []}, "groups": {"group:local": ["user1@"], "group:away": ["user2@"]}, "acls": [
		{"action": "accept", "src": ["group:dev", "group:local", "group:away"], "dst": ["tag:db:5432"]},
		{"action": "accept", "src": ["group:qa"], "dst": ["group:dev:80"]},
		{"action": "accept", "src": ["autogroup:member"], "dst": ["tag:web:80"]}],
		"ssh": [{"action": "accept", "src": ["group:ops"], "dst": ["tag:web"], "users": ["root"]}]}`
	const laptop, db, web = 1, 2, 3
	u := *meshgen.User(1)
	u.Groups = []string{"dev", "ops", "qa", "secret"}
	d := mesh.Empty().Edit()
	d.Apply(1, mesh.UserPut{User: &u}, mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, Text: doc}}, mesh.NodePut{Node: meshgen.Node(laptop, 1)})
	for id, tag := range map[mesh.NodeID]string{db: "tag:db", web: "tag:web"} {
		n := meshgen.Node(id, 0)
		n.Tags = []string{tag}
		d.Apply(1, mesh.NodePut{Node: n})
	}
	s := netmap.SceneOf(policy.NewWorld(d.Freeze(), nil), nil)
	for id, want := range map[mesh.NodeID][]string{
		laptop: {"group:qa"}, db: {"group:dev", "group:local"}, web: {"group:ops"},
	} {
		i := slices.IndexFunc(netmap.Full(s, id).UserProfiles, func(p netmap.Profile) bool { return p.ID == 1 })
		if i < 0 {
			t.Fatalf("node %d is not told who user 1 is", id)
		}
		if got := netmap.Full(s, id).UserProfiles[i].Groups; !slices.Equal(got, want) {
			t.Errorf("node %d is told the groups %v, want %v", id, got, want)
		}
	}
}

// Only viewers that see a node, and the node itself, are woken when its endpoints change.
func TestAudienceIsThoseWhoSeeTheNode(t *testing.T) {
	const people, groups, server = 200, 10, 4
	from := company(people, groups, "")
	s, touched := mesh.Apply(from.Snapshot, from.Rev+1, mesh.NodeNet{ID: server, Net: meshgen.Net(5)})
	to := netmap.SceneOf(from.Next(s, touched), from)
	node, _ := to.Nodes.Get(server)
	audience := 0
	for n := range to.Nodes.All() {
		want := n.ID == server || to.Shows(to.Viewpoint(n), node)
		if want {
			audience++
		}
		if got := inAudience(from, to, n.ID, touched); got != want {
			t.Errorf("node %d is in the audience: %v", n.ID, got)
		}
	}
	if audience < people/groups || audience > people {
		t.Errorf("%d of %d nodes are in the audience", audience, to.Nodes.Len())
	}
}
