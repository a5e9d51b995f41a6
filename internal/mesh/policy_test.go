package mesh_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func TestRoutesAreIdentity(t *testing.T) {
	plain, announces, routes := meshgen.Node(1, 1), meshgen.Node(1, 1), meshgen.Node(1, 1)
	announces.RoutableIPs = []netip.Prefix{prefix("10.0.0.0/8"), prefix("0.0.0.0/0")}
	routes.RoutableIPs, routes.Routes = announces.RoutableIPs, announces.RoutableIPs[1:]
	s := mesh.Empty()
	for _, step := range []struct {
		put  *mesh.Node
		want mesh.Revision
	}{{plain, 1}, {plain, 1}, {announces, 3}, {routes, 4}, {routes, 4}, {announces, 6}, {plain, 7}} {
		before := s
		s, _ = mesh.Apply(s, s.Rev+1, mesh.NodePut{Node: step.put})
		if s.IdentityRev != step.want {
			t.Errorf("revision %d: the last change of identity is %d, want %d", s.Rev, s.IdentityRev, step.want)
		}
		if s.SameIdentities(before) != (step.want != s.Rev) {
			t.Errorf("revision %d: same identities as before: %t", s.Rev, s.SameIdentities(before))
		}
	}
}

func TestPolicyRevMovesWithTheTextAlone(t *testing.T) {
	first := mesh.Policy{Version: 1, Text: "{}", SavedAt: 1, ConfirmBy: 2}
	confirmed, second, rewritten, late := first, first, first, first
	confirmed.ConfirmBy = 0
	second.Version = 2
	rewritten.Version, rewritten.Text = 2, ""
	late.Reason = "late"
	s := mesh.Empty()
	if _, ok := s.Policy(); ok {
		t.Fatal("there is a policy before the first")
	}
	for _, step := range []struct {
		put, want mesh.Policy
		rev       mesh.Revision
	}{
		{first, first, 1},
		{confirmed, confirmed, 1},
		{second, second, 3},
		{late, second, 3},
		{rewritten, rewritten, 5},
	} {
		before := s
		var touched []mesh.NodeID
		s, touched = mesh.Apply(s, s.Rev+1, mesh.PolicyPut{Policy: &step.put})
		if got, ok := s.Policy(); !ok || *got != step.want || s.PolicyRev != step.rev || len(touched) != 0 {
			t.Errorf("revision %d: policy %+v since %d, touched %v; want %+v since %d", s.Rev, got, s.PolicyRev, touched, step.want, step.rev)
		}
		if s.SamePolicy(before) != (step.rev != s.Rev) {
			t.Errorf("revision %d: same policy as before: %t", s.Rev, s.SamePolicy(before))
		}
	}
	if s.Counters.Policy != 2 {
		t.Errorf("the last version is %v", s.Counters.Policy)
	}
	loaded := mesh.Empty().Edit()
	loaded.Apply(0, mesh.PolicyPut{Policy: &rewritten})
	loaded.Restore(s.Rev, s.At, s.Batch, s.Counters)
	other := loaded.Freeze()
	if other.Digest() != s.Digest() || other.PolicyRev != s.Rev || s.SamePolicy(other) {
		t.Error("a snapshot that was loaded knows no more than its own revision")
	}
}

func TestSSHGrantAnswersOneAskAlone(t *testing.T) {
	grant := mesh.SSHGrant{ID: 7, Src: 1, Dst: 2, User: "root", By: "key:a", Until: 9}
	s, touched := mesh.Apply(mesh.Empty(), 1, mesh.SSHGrantPut{Grant: &grant})
	if got, ok := s.SSHGrants.For(1, 2, "root"); !ok || *got != grant || len(touched) != 0 || s.Counters.SSHGrant != 7 {
		t.Fatalf("got %+v, touched %v, last id %d", got, touched, s.Counters.SSHGrant)
	}
	for _, ask := range []mesh.SSHGrant{{Src: 2, Dst: 1, User: "root"}, {Src: 1, Dst: 2, User: "Root"}, {Src: 1, Dst: 2}, {Src: 1, Dst: 3, User: "root"}} {
		if got, ok := s.SSHGrants.For(ask.Src, ask.Dst, ask.User); ok {
			t.Errorf("%+v answers %+v", got, ask)
		}
	}
	moved := grant
	moved.User = "admin"
	s, _ = mesh.Apply(s, 2, mesh.SSHGrantPut{Grant: &moved})
	if _, ok := s.SSHGrants.For(1, 2, "root"); ok {
		t.Error("a grant answers what it was replaced for")
	}
	s, _ = mesh.Apply(s, 3, mesh.SSHGrantGone{ID: 7})
	if _, ok := s.SSHGrants.For(1, 2, "admin"); ok || s.Counters.SSHGrant != 7 {
		t.Error("a grant outlived its end, or its id may come again")
	}
}

func TestSSHGrantsGoWithTheirNodes(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1,
		mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)},
		mesh.NodePut{Node: meshgen.Node(1, 1)}, mesh.NodePut{Node: meshgen.Node(2, 2)}, mesh.NodePut{Node: meshgen.Node(3, 2)},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 1, Src: 1, Dst: 2}},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 2, Src: 3, Dst: 1}},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 3, Src: 3, Dst: 2}},
	)
	for name, gone := range map[string]mesh.Event{"node": mesh.NodeGone{ID: 1}, "user": mesh.UserGone{ID: 1}} {
		next, _ := mesh.Apply(s, 2, mesh.Settle(s, []mesh.Event{gone})...)
		var left []mesh.SSHGrantID
		for g := range next.SSHGrants.All() {
			left = append(left, g.ID)
		}
		if !slices.Equal(left, []mesh.SSHGrantID{3}) {
			t.Errorf("after the %s is gone grants %v are left, want 3 alone", name, left)
		}
	}
}

func TestSSHGrantEndsWhenItsNodesBecomeSomebodyElses(t *testing.T) {
	src, dst, other := meshgen.Node(1, 1), meshgen.Node(2, 1), meshgen.Node(3, 1)
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)},
		mesh.NodePut{Node: src}, mesh.NodePut{Node: dst}, mesh.NodePut{Node: other},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 1, Src: 1, Dst: 2, User: "root"}})
	changed := func(n *mesh.Node, change func(*mesh.Node)) mesh.Event {
		c := *n
		change(&c)
		return mesh.NodePut{Node: &c}
	}
	for _, c := range []struct {
		what string
		e    mesh.Event
		ends bool
	}{
		{"the source is renamed", changed(src, func(n *mesh.Node) { n.Name = "other-name" }), false},
		{"the source gets another owner", changed(src, func(n *mesh.Node) { n.Owner = 2 }), true},
		{"the source is tagged", changed(src, func(n *mesh.Node) { n.Owner, n.Tags = 0, []string{"tag:ci"} }), true},
		{"the destination gets another owner", changed(dst, func(n *mesh.Node) { n.Owner = 2 }), true},
		{"another node gets another owner", changed(other, func(n *mesh.Node) { n.Owner = 2 }), false},
	} {
		settled := mesh.Settle(s, []mesh.Event{c.e})
		if ends := slices.Contains(settled, mesh.Event(mesh.SSHGrantGone{ID: 1})); ends != c.ends {
			t.Errorf("%s: the grant ends: %v, want %v", c.what, ends, c.ends)
		}
	}
}
