package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// The effects of a clock that was a year ahead are undone as far as possible. Revoked keys
// stay revoked.
func TestTimeIsTakenBack(t *testing.T) {
	const now = mesh.Time(1_800_000_000_000_000)
	day := func(n int) mesh.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	bad := day(365)
	s, _ := mesh.Apply(mesh.Empty(), 1,
		mesh.UserPut{User: &mesh.User{ID: 1, Name: "ada"}},
		mesh.NodePut{Node: &mesh.Node{ID: 1, Name: "expired", Owner: 1, Expiry: day(90), KeyExpired: true}},
		mesh.NodePut{Node: &mesh.Node{ID: 2, Name: "revoked", Owner: 1, Expiry: bad, KeyExpired: true, UpdatedAt: bad}},
		mesh.NodePut{Node: &mesh.Node{ID: 3, Name: "long-expired", Owner: 1, Expiry: day(-1), KeyExpired: true}},
		mesh.NodePut{Node: &mesh.Node{ID: 4, Name: "joined", Owner: 1, Expiry: bad.Add(90 * 24 * time.Hour), CreatedAt: bad, UpdatedAt: bad}},
		mesh.NodePut{Node: &mesh.Node{ID: 5, Name: "forever", Owner: 1}},
		mesh.Online{ID: 5, Replica: "a", Conn: 7, At: bad},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 1, Prefix: "good", Expiry: day(90)}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 2, Prefix: "stolen", Expiry: bad}},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 1, Prefix: "auth", Expiry: day(1)}},
		mesh.LoginPut{Login: &mesh.Login{ID: 1, Until: bad.Add(time.Minute)}},
		mesh.SSHGrantPut{Grant: &mesh.SSHGrant{ID: 1, Src: 1, Dst: 2, User: "root", GrantedAt: bad, Until: bad.Add(time.Hour)}},
		mesh.WebhookPut{Webhook: &mesh.Webhook{ID: 1}},
		mesh.WebhookMoved{ID: 1, Progress: mesh.WebhookProgress{Replica: "dead", Until: bad, LastSuccess: bad}},
		mesh.ReceiptPut{Receipt: &mesh.Receipt{ID: 1, Until: bad.Add(mesh.ReceiptLifetime)}},
		mesh.UserPut{User: &mesh.User{ID: 2, Name: "eve", CreatedAt: bad, SuspendedAt: bad, SuspendedBy: mesh.SuspendedByAdmin}},
		mesh.NodePut{Node: &mesh.Node{ID: 6, Name: "suspended", Owner: 2, SuspendedAt: bad}},
		mesh.GroupPut{Group: &mesh.Group{ID: 1, Name: "staff", CreatedAt: bad}},
		mesh.SessionPut{Session: &mesh.Session{ID: 1, Prefix: "s", User: 1, Expiry: day(1)}},
		mesh.PasskeyPut{Passkey: &mesh.Passkey{ID: 1, User: 1, CreatedAt: bad, LastUse: bad}},
		mesh.InvitationPut{Invitation: &mesh.Invitation{ID: 1, Prefix: "open", User: 1, Expiry: day(7)}},
		mesh.InvitationPut{Invitation: &mesh.Invitation{ID: 2, Prefix: "made", User: 1, CreatedAt: bad, Expiry: bad.Add(time.Hour)}},
		mesh.InvitationPut{Invitation: &mesh.Invitation{ID: 3, Prefix: "code", User: 1, Recovery: true, CreatedAt: bad}},
		mesh.PolicyPut{Policy: &mesh.Policy{Version: 1, SavedAt: bad, ConfirmBy: bad.Add(time.Minute)}},
	)
	d := s.Edit()
	d.Stamp(bad, mesh.BatchID{})
	s = d.Freeze()
	f := future{touched: map[string]map[mesh.Time]bool{"node 2": {bad: true}, "apikey 2": {bad: true}}, lost: []string{"node 9"}, changes: 3}

	evs, plan := f.repair(s, now)
	want := ClockRepair{
		Was: bad, Now: now, Valid: []string{"node expired", "API key good", "session 1", "pre-auth key auth", "invitation open"}, Revoked: []string{"node revoked", "API key stolen"},
		Late: []string{"node joined", "invitation made"}, Lost: []string{"node 9"}, Changes: 3,
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	after, _ := mesh.Apply(s, 2, mesh.Settle(s, evs)...)
	mustBePast(t, after, now)
	for id, lapsed := range map[mesh.NodeID]bool{1: false, 2: true, 3: true, 4: false, 5: false} {
		if n, _ := after.Nodes.Get(id); n.KeyExpired != lapsed || n.Expired(now) != lapsed || n.CreatedAt > now || n.UpdatedAt > now || n.Presence.LastSeen > now {
			t.Errorf("%s: %+v", n.Name, n)
		}
	}
	if n, _ := after.Nodes.Get(5); !n.Presence.Online || n.Presence.Conn != 7 {
		t.Errorf("a node that is online lost its stream: %+v", n.Presence)
	}
	for id, ended := range map[mesh.KeyID]bool{1: false, 2: true} {
		if k, _ := after.APIKeys.Get(id); k.Expiry.Reached(now) != ended {
			t.Errorf("API key %s expires at %v", k.Prefix, k.Expiry.Time())
		}
	}
	for range after.Logins.All() {
		t.Error("a login is approved for a year")
	}
	for range after.SSHGrants.All() {
		t.Error("an SSH session is approved for a year")
	}
	for m := range after.Receipts.All() {
		if m.Until != now.Add(mesh.ReceiptLifetime) {
			t.Errorf("a request is remembered until %v", m.Until.Time())
		}
	}
	for w := range after.Webhooks.All() {
		if p := w.Progress; p.Until > now || p.LastSuccess > now {
			t.Errorf("a dead replica keeps its lease: %+v", p)
		}
	}
	if p, _ := after.Policy(); p.ConfirmBy != now.Add(time.Minute) || p.SavedAt != now {
		t.Errorf("the policy reverts at %v", p.ConfirmBy.Time())
	}
}

// mustBePast checks what must not be dated in the future about people.
func mustBePast(t *testing.T, s *mesh.Snapshot, now mesh.Time) {
	t.Helper()
	for u := range s.Users.All() {
		if u.CreatedAt > now || u.SuspendedAt > now || (u.ID == 2) != u.Suspended() {
			t.Errorf("user %+v", u)
		}
	}
	if n, _ := s.Nodes.Get(6); n.SuspendedAt != now {
		t.Errorf("node %+v", n)
	}
	for g := range s.Groups.All() {
		if g.CreatedAt > now {
			t.Errorf("group %+v", g)
		}
	}
	for k := range s.Passkeys.All() {
		if k.CreatedAt > now || k.LastUse > now {
			t.Errorf("passkey %+v", k)
		}
	}
	for v := range s.Invitations.All() {
		if v.CreatedAt > now || v.Recovery != (v.Expiry == 0) {
			t.Errorf("invitation %+v", v)
		}
	}
}
