package mesh_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// belongings returns one object of each kind that belongs to a user, with this id.
func belongings(id int64, user mesh.UserID) []mesh.Event {
	prefix := fmt.Sprint(id)
	return []mesh.Event{
		mesh.NodePut{Node: meshgen.Node(mesh.NodeID(id), user)},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: mesh.KeyID(id), Prefix: prefix, User: user}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: mesh.KeyID(id), Prefix: prefix, User: user}},
		mesh.LoginPut{Login: &mesh.Login{ID: mesh.LoginID(id), NodeKey: meshgen.NodeKey(uint64(id)), User: user}},
		mesh.SessionPut{Session: &mesh.Session{ID: mesh.SessionID(id), Prefix: prefix, User: user}},
		mesh.PasskeyPut{Passkey: &mesh.Passkey{ID: mesh.PasskeyID(id), Credential: prefix, User: user}},
		mesh.InvitationPut{Invitation: &mesh.Invitation{ID: mesh.InvitationID(id), Prefix: prefix, User: user}},
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: mesh.ReservationID(id), Name: "r" + prefix, User: user}},
	}
}

func goneOf(id int64) []mesh.Event {
	return []mesh.Event{
		mesh.NodeGone{ID: mesh.NodeID(id)},
		mesh.PreAuthKeyGone{ID: mesh.KeyID(id)},
		mesh.APIKeyGone{ID: mesh.KeyID(id)},
		mesh.LoginGone{ID: mesh.LoginID(id)},
		mesh.SessionGone{ID: mesh.SessionID(id)},
		mesh.PasskeyGone{ID: mesh.PasskeyID(id)},
		mesh.InvitationGone{ID: mesh.InvitationID(id)},
		mesh.ReservationGone{ID: mesh.ReservationID(id)},
	}
}

// left returns the ids of all objects of belongings, by kind.
func left(s *mesh.Snapshot) map[string][]int64 {
	return map[string][]int64{
		"nodes":         idsOf(s.Nodes.All(), func(v *mesh.Node) int64 { return int64(v.ID) }),
		"pre-auth keys": idsOf(s.PreAuthKeys.All(), func(v *mesh.PreAuthKey) int64 { return int64(v.ID) }),
		"API keys":      idsOf(s.APIKeys.All(), func(v *mesh.APIKey) int64 { return int64(v.ID) }),
		"logins":        idsOf(s.Logins.All(), func(v *mesh.Login) int64 { return int64(v.ID) }),
		"sessions":      idsOf(s.Sessions.All(), func(v *mesh.Session) int64 { return int64(v.ID) }),
		"passkeys":      idsOf(s.Passkeys.All(), func(v *mesh.Passkey) int64 { return int64(v.ID) }),
		"invitations":   idsOf(s.Invitations.All(), func(v *mesh.Invitation) int64 { return int64(v.ID) }),
		"reservations":  idsOf(s.Reservations.All(), func(v *mesh.Reservation) int64 { return int64(v.ID) }),
	}
}

func idsOf[V any](all iter.Seq[*V], id func(*V) int64) (ids []int64) {
	for v := range all {
		ids = append(ids, id(v))
	}
	return ids
}

func TestDeletedUserTakesWhatIsTheirsAfterTheChange(t *testing.T) {
	start := []mesh.Event{mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)}, mesh.UserPut{User: meshgen.User(3)}}
	start = slices.Concat(start, belongings(5, 1), belongings(6, 1), belongings(7, 2))
	s, _ := mesh.Apply(mesh.Empty(), 1, start...)
	userGone := []mesh.Event{mesh.UserGone{ID: 1}}
	for _, c := range []struct {
		what string
		evs  []mesh.Event
		left []int64
	}{
		{"nothing else changes", userGone, []int64{7}},
		{"moved after the deletion", slices.Concat(userGone, belongings(5, 2)), []int64{5, 7}},
		{"moved before the deletion", slices.Concat(belongings(5, 2), userGone), []int64{5, 7}},
		{"changed, but not moved", slices.Concat(userGone, belongings(5, 1)), []int64{7}},
		{"moved and moved back", slices.Concat(userGone, belongings(5, 2), belongings(5, 1)), []int64{7}},
		{"changed, then moved", slices.Concat(userGone, belongings(5, 1), belongings(5, 2)), []int64{5, 7}},
		{"moved, then deleted", slices.Concat(userGone, belongings(5, 2), goneOf(5)), []int64{7}},
		{"deleted, then put again for another user", slices.Concat(userGone, goneOf(5), belongings(5, 2)), []int64{5, 7}},
		{"deleted, then put again for the same user", slices.Concat(userGone, goneOf(5), belongings(5, 1)), []int64{7}},
		{"moved to the user", slices.Concat(userGone, belongings(7, 1)), nil},
		{"new", slices.Concat(belongings(8, 1), belongings(9, 2), userGone), []int64{7, 9}},
		{"moved to a user who is deleted too", slices.Concat(userGone, belongings(5, 3), []mesh.Event{mesh.UserGone{ID: 3}}), []int64{7}},
		{"the user is changed before", slices.Concat([]mesh.Event{mesh.UserPut{User: meshgen.User(1)}}, userGone), []int64{7}},
	} {
		settled := mesh.Settle(s, c.evs)
		after, _ := mesh.Apply(s, 2, settled...)
		for kind, got := range left(after) {
			if !slices.Equal(got, c.left) {
				t.Errorf("%s: %s %v are left, want %v", c.what, kind, got, c.left)
			}
		}
		if !slices.Equal(settled[:len(c.evs)], c.evs) {
			t.Errorf("%s: the events themselves were changed", c.what)
		}
		if n := after.Nodes.OwnedCount(1); n != 0 {
			t.Errorf("%s: the deleted user owns %d nodes", c.what, n)
		}
	}
}

func TestNodeThatIsTaggedOutlivesItsOwner(t *testing.T) {
	tagged := meshgen.Node(5, 0)
	tagged.Tags, tagged.CreatedBy = []string{"tag:a"}, 1
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1).Suspend(mesh.SuspendedByAdmin, 7)}, mesh.NodePut{Node: meshgen.Node(5, 1)},
		mesh.NodePut{Node: meshgen.Node(6, 1)}, mesh.NodeNet{ID: 5, Net: meshgen.Net(5)},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 5, Prefix: "5", User: 1, Tags: []string{"tag:a"}}},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 1, Src: 5, Dst: 5, User: "root"}})
	settled := mesh.Settle(s, []mesh.Event{
		mesh.UserGone{ID: 1}, mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 5, Prefix: "5", Tags: []string{"tag:a"}}}, mesh.NodePut{Node: tagged},
	})
	s, _ = mesh.Apply(s, 2, settled...)
	n, ok := s.Nodes.Get(5)
	if !ok {
		t.Fatal("the node was deleted with its former owner")
	}
	if diff := cmp.Diff(meshgen.Net(5).Endpoints, n.Net.Endpoints, cmp.Comparer(func(a, b fmt.Stringer) bool { return a.String() == b.String() })); diff != "" || n.Suspended() || s.Nodes.Len() != 1 {
		t.Errorf("suspended: %t, %d nodes, endpoints (-want +got):\n%s", n.Suspended(), s.Nodes.Len(), diff)
	}
	if s.PreAuthKeys.Len() != 1 || s.SSHGrants.Len() != 0 {
		t.Errorf("%d pre-auth keys and %d SSH grants are left, want 1 and none", s.PreAuthKeys.Len(), s.SSHGrants.Len())
	}
}

// A person who signs in with another account gets a session in the same change.
func TestNewSessionOutlivesTheChangeOfTheAccount(t *testing.T) {
	linked := *meshgen.User(1)
	linked.Provider, linked.ProviderID = mesh.ProviderOIDC, "https://id.example.com/other"
	s, _ := mesh.Apply(mesh.Empty(), 1, slices.Concat([]mesh.Event{mesh.UserPut{User: meshgen.User(1)}}, belongings(5, 1), belongings(6, 1))...)
	s, _ = mesh.Apply(s, 2, mesh.Settle(s, slices.Concat([]mesh.Event{mesh.UserPut{User: &linked}}, belongings(6, 2), belongings(7, 1)))...)
	got := left(s)
	for kind, want := range map[string][]int64{"nodes": {5, 6, 7}, "sessions": {6, 7}, "passkeys": {5, 6, 7}} {
		if !slices.Equal(got[kind], want) {
			t.Errorf("%s %v are left, want %v", kind, got[kind], want)
		}
	}
}
