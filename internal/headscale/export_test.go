package headscale_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/headscale"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const someHash = "$2a$10$abcdefghijklmnopqrstuuFzMPzUS1bzXxI1b8Ql2wS9kq7eT0kqa"

// imported returns a mesh with the nodes, users and keys of Headscale, and with changes that were made since.
func imported(t *testing.T, in tables, changes ...mesh.Event) *mesh.Snapshot {
	t.Helper()
	p := headscale.Map(in, options())
	if len(p.Repairs)+len(p.Refusals) > 0 {
		t.Fatalf("repairs %q, refusals %q", p.Repairs, p.Refusals)
	}
	var evs []mesh.Event
	for _, u := range p.Users {
		evs = append(evs, mesh.UserPut{User: u})
	}
	for _, k := range p.PreAuthKeys {
		evs = append(evs, mesh.PreAuthKeyPut{Key: k})
	}
	for _, k := range p.APIKeys {
		evs = append(evs, mesh.APIKeyPut{Key: k})
	}
	for _, n := range p.Nodes {
		n.Host = string(n.HostInfo)
		for i, r := range n.Approved {
			n.AddRoute(mesh.Route{ID: mesh.RouteID(i + 1), Prefix: r, Enabled: true})
		}
		evs = append(evs, mesh.NodePut{Node: n.Node}, mesh.NodeNet{ID: n.ID, Net: n.Net}, mesh.Offline{ID: n.ID, At: n.LastSeen})
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, append(evs, changes...)...)
	return s
}

func source() tables {
	return tables{
		"users": {
			{"id": int64(1), "name": "ann", "created_at": "2025-01-02 03:04:05+00:00"},
			{"id": int64(2), "name": "bob", "email": "bob@example.com", "provider": "oidc", "provider_identifier": "https://id.example.com/7", "display_name": "Bob"},
		},
		"pre_auth_keys": {
			{"id": int64(1), "prefix": "aaaaaaaaaaaa", "hash": []byte(someHash), "user_id": int64(1), "reusable": int64(1), "ephemeral": int64(1), "expiration": "2099-01-01 00:00:00+00:00"},
			{"id": int64(2), "prefix": "bbbbbbbbbbbb", "hash": []byte(someHash), "user_id": nil, "tags": `["tag:web"]`, "used": int64(1)},
		},
		"api_keys": {{"id": int64(1), "prefix": "cccccccccccc", "hash": []byte(someHash), "expiration": "2099-01-01 00:00:00+00:00"}},
		"nodes": {
			node(1, "auth_key_id", int64(1), "endpoints", `["192.0.2.1:41641"]`, "host_info", `{"OS":"linux","Hostname":"host1","NetInfo":{"PreferredDERP":999}}`),
			node(2, "user_id", nil, "tags", `["tag:web"]`, "auth_key_id", int64(2), "approved_routes", `["10.0.0.0/8"]`),
			node(3, "user_id", int64(2), "register_method", "oidc", "expiry", "2025-06-01 00:00:00+00:00"),
		},
	}
}

// What was imported and not changed is exported as it was.
func TestExportIsMappedToTheSameObjects(t *testing.T) {
	before := headscale.Map(source(), options())
	out := headscale.Export(imported(t, source()), "{}", now)
	after := headscale.Map(out.Tables, options())
	if len(out.Lost)+len(after.Repairs)+len(after.Refusals) > 0 {
		t.Errorf("lost %q, repairs %q, refusals %q", out.Lost, after.Repairs, after.Refusals)
	}
	for _, c := range []struct{ before, after any }{{before.Users, after.Users}, {before.PreAuthKeys, after.PreAuthKeys}, {before.APIKeys, after.APIKeys}} {
		if diff := cmp.Diff(c.before, c.after); diff != "" {
			t.Errorf("-before +after:\n%s", diff)
		}
	}
	for i, n := range before.Nodes {
		got := after.Nodes[i]
		if fmt.Sprint(*n.Node, n.Approved, n.Net, n.LastSeen) != fmt.Sprint(*got.Node, got.Approved, got.Net, got.LastSeen) {
			t.Errorf("before %+v %+v\nafter  %+v %+v", *n.Node, n, *got.Node, got)
		}
	}
	if after.Policy != "{}" || after.Version != headscale.ExportedVersion {
		t.Errorf("policy %q, version %q", after.Policy, after.Version)
	}
}

// Whatever Headscale cannot store is listed, and nobody gets access by going back.
func TestExportListsWhatIsLostAndGivesNoAccess(t *testing.T) {
	ann, own := &mesh.User{ID: 1, Name: "ann", Role: mesh.RoleAdmin}, now+1
	waiting := headscale.Map(tables{"users": users(), "nodes": {node(4)}}, options()).Nodes[0].Node
	waiting.NeedsApproval = true
	orphan := headscale.Map(tables{"users": users(), "nodes": {node(5)}}, options()).Nodes[0].Node
	orphan.Ephemeral, orphan.PreAuthKey = true, 77
	s := imported(
		t, source(),
		mesh.UserPut{User: ann},
		mesh.UserPut{User: (&mesh.User{ID: 2, Name: "bob"}).Suspend(mesh.SuspendedByAdmin, now)},
		mesh.NodePut{Node: waiting}, mesh.NodePut{Node: orphan},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 3, Prefix: "own1", User: 1, Reusable: true, Expiry: own, Hash: mesh.Secret{1}}},
		mesh.PreAuthKeyPut{Key: &mesh.PreAuthKey{ID: 4, Prefix: "own2", User: 2, Reusable: true, Bcrypt: someHash}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 2, Prefix: "own3", Expiry: own, Hash: mesh.Secret{1}}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 4, Prefix: "before0.25", Bcrypt: someHash, Access: mesh.Access{Role: mesh.RoleAdmin}}},
		mesh.APIKeyPut{Key: &mesh.APIKey{ID: 3, Prefix: "own4", Expiry: own, Bcrypt: someHash, Access: mesh.Access{Role: mesh.RoleRead}}},
	)
	suspended, _ := s.Nodes.Get(3)
	cut := *suspended
	cut.SuspendedAt, cut.Expiry = now, 0
	s, _ = mesh.Apply(s, 2, mesh.NodePut{Node: &cut})
	out := headscale.Export(s, "", now)
	want := []string{
		"user 1 (ann): the role admin", "user 2 (bob): Headscale cannot suspend", "pre-auth key 3: Headscale's hash", "API key 2 (own3): Headscale's hash",
		"API key 3 (own4): it does not allow everything", "API key 4 (before0.25): Headscale before 0.25 created it", "node 4 (host4): it waits for approval",
	}
	for _, w := range want {
		if !slices.ContainsFunc(out.Lost, func(line string) bool { return strings.Contains(line, w) }) {
			t.Errorf("%q is missing", w)
		}
	}
	if len(out.Lost) != len(want) {
		t.Errorf("lost: %q", out.Lost)
	}
	p := headscale.Map(out.Tables, options())
	for _, k := range p.PreAuthKeys {
		if k.ID > 2 && !k.Expiry.Reached(now) {
			t.Errorf("pre-auth key %s can be used", k.ID)
		}
	}
	for _, n := range p.Nodes {
		switch n.ID {
		case 3:
			if !n.Expiry.Reached(now) {
				t.Error("the node of a suspended person is not expired")
			}
		case 4:
			t.Error("a node that waits for approval is exported")
		case 5:
			if !n.Ephemeral || n.PreAuthKey != 5 {
				t.Errorf("a node whose key was deleted: ephemeral %t with key %s", n.Ephemeral, n.PreAuthKey)
			}
		}
	}
	if len(p.Nodes) != 4 || len(p.APIKeys) != 1 || len(p.Repairs) > 0 {
		t.Errorf("%d nodes, %d API keys, repairs %q", len(p.Nodes), len(p.APIKeys), p.Repairs)
	}
}

// Settings and objects that Headscale has no tables for are listed, each only if it exists.
func TestExportListsWhatHeadscaleHasNoTablesFor(t *testing.T) {
	dns := func(source string) mesh.Event {
		return mesh.SettingPut{Setting: &mesh.Setting{ID: 1, Key: mesh.SettingDNS, Value: `{"magicDNS":true,"baseDomain":"mesh.test"}`, Source: source}}
	}
	noise := func(value string) mesh.Event {
		return mesh.SettingPut{Setting: &mesh.Setting{ID: 2, Key: mesh.SettingNoise, Value: value, Source: "replica"}}
	}
	router := func(change func(*mesh.Node)) mesh.Event {
		n := headscale.Map(source(), options()).Nodes[1]
		n.AddRoute(mesh.Route{ID: 1, Prefix: n.Approved[0], Enabled: true, Decided: true})
		change(n.Node)
		return mesh.NodePut{Node: n.Node}
	}
	disabled := router(func(n *mesh.Node) { n.AllRoutes[0].Enabled = false })
	for _, c := range []struct {
		e      mesh.Event
		policy string
		lost   string
	}{
		{e: mesh.PasskeyPut{Passkey: &mesh.Passkey{ID: 1, User: 1}}, lost: "1 passkeys: "},
		{e: mesh.WebhookPut{Webhook: &mesh.Webhook{ID: 1}}, lost: "1 webhooks: "},
		{e: mesh.InvitationPut{Invitation: &mesh.Invitation{ID: 1, User: 1}}, lost: "1 invitations: "},
		{e: mesh.GroupPut{Group: &mesh.Group{ID: 1}}, lost: "1 groups of the directory: "},
		{e: mesh.UserPut{User: &mesh.User{ID: 1, Name: "ann", Groups: []string{"staff"}}}, lost: "1 users with groups of their identity provider: "},
		{e: mesh.UserPut{User: (mesh.User{ID: 1, Name: "ann"}).Hold(mesh.SuspendedBySCIM, now)}, lost: "user 1 (ann): Headscale does not know that you have to decide"},
		{e: mesh.RecheckPut{Recheck: &mesh.Recheck{ID: 2}}, lost: "1 people who are checked at their identity provider: "},
		{e: mesh.RelayPut{Relay: &mesh.Relay{ID: 1, Name: "ams-1"}}, lost: "1 relays: "},
		{e: mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 1, Name: "printer", User: 1}}, lost: "1 reservations of names and addresses: "},
		{e: router(func(n *mesh.Node) { n.Note.Text = "in the basement" }), lost: "1 notes about nodes: "},
		{e: router(func(n *mesh.Node) { n.AllRoutes[0].Preference = 5 }), lost: "1 preferences of routes: "},
		{e: disabled, policy: `{"autoApprovers": {"routes": {"10.0.0.0/8": ["tag:web"]}}}`, lost: "1 routes that were disabled: "},
		{e: disabled, policy: `{"acls": []}`},
		{e: router(func(*mesh.Node) {}), policy: `{"autoApprovers": {"routes": {"10.0.0.0/8": ["tag:web"]}}}`},
		{e: dns(mesh.SourceAPI), lost: "DNS settings that were changed in Fairlead: "},
		{e: dns("config")},
		{e: noise(`{"number": 2}`), lost: "the Noise key, which was rotated: "},
		{e: noise(`{}`)},
	} {
		out := headscale.Export(imported(t, source(), c.e), c.policy, now)
		if c.lost == "" && len(out.Lost) > 0 || c.lost != "" && (len(out.Lost) != 1 || !strings.HasPrefix(out.Lost[0], c.lost)) {
			t.Errorf("%+v: lost %q, want %q", c.e, out.Lost, c.lost)
		}
	}
}

// A new table is exported, listed, or of no use to Headscale.
func TestExportConsidersEveryTable(t *testing.T) {
	known := []string{
		"Users", "Nodes", "PreAuthKeys", "APIKeys", // exported
		"Settings", "Webhooks", "Passkeys", "Invitations", "Groups", "Rechecks", "Reservations", "Relays", // listed
		"Logins", "SSHGrants", "Sessions", "Receipts", "Facts", // end or change by themselves
	}
	var tables []string
	s := reflect.ValueOf(mesh.Empty()).Elem()
	for i := range s.NumField() {
		if f := s.Type().Field(i); f.IsExported() {
			if _, ok := s.Field(i).Addr().Interface().(interface{ Len() int }); ok {
				tables = append(tables, f.Name)
			}
		}
	}
	slices.Sort(known)
	slices.Sort(tables)
	if diff := cmp.Diff(known, tables); diff != "" {
		t.Errorf("tables that an export considers (-) and that a snapshot has (+):\n%s", diff)
	}
}
