package control_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestEventsHaveTheNamesOfTheField(t *testing.T) {
	server := mesh.Actor{Kind: mesh.ActorServer, Reason: "expired"}
	for _, c := range []struct {
		row        history.AuditRow
		name, kind string
	}{
		{history.AuditRow{Kind: "node", Verb: "created"}, "node.created", "nodeCreated"},
		{history.AuditRow{Kind: "node", Verb: "created", After: []byte(`{"needsApproval":true}`)}, "node.created", "nodeNeedsApproval"},
		{history.AuditRow{Kind: "node", Verb: "changed", Before: []byte(`{"needsApproval":true}`), After: []byte(`{}`)}, "node.changed", "nodeApproved"},
		{history.AuditRow{Kind: "node", Verb: "changed", Before: []byte(`{}`), After: []byte(`{"needsApproval":true}`)}, "node.changed", "nodeNeedsApproval"},
		{history.AuditRow{Kind: "node", Verb: "changed", Before: []byte(`{"needsApproval":true}`), After: []byte(`{"needsApproval":true}`)}, "node.changed", "node.changed"},
		{history.AuditRow{Kind: "node", Verb: "deleted"}, "node.deleted", "nodeDeleted"},
		{history.AuditRow{Kind: "node", Verb: "online"}, "node.online", "node.online"},
		{history.AuditRow{Kind: "node", Verb: "changed", Before: []byte(`{"expired":false}`), After: []byte(`{"expired":true}`)}, "node.changed", "nodeKeyExpired"},
		{history.AuditRow{Kind: "node", Verb: "changed", Before: []byte(`{"expired":true}`), After: []byte(`{"expired":true}`)}, "node.changed", "node.changed"},
		{history.AuditRow{Kind: "node", Verb: "changed", Actor: server, Before: []byte(`{"expired":true}`), After: []byte(`{"expired":true}`)}, "node.changed", "nodeKeyExpired"},
		{history.AuditRow{Kind: "login", Verb: "created", After: []byte(`{"rejected":""}`)}, "login.created", "nodeApproved"},
		{history.AuditRow{Kind: "login", Verb: "created", After: []byte(`{"rejected":"not ours"}`)}, "login.created", "login.created"},
		{history.AuditRow{Kind: "user", Verb: "created"}, "user.created", "userCreated"},
		{history.AuditRow{Kind: "user", Verb: "created", After: []byte(`{"needsApproval":true}`)}, "user.created", "userNeedsApproval"},
		{history.AuditRow{Kind: "user", Verb: "changed", Before: []byte(`{"needsApproval":true}`), After: []byte(`{}`)}, "user.changed", "userApproved"},
		{history.AuditRow{Kind: "user", Verb: "deleted"}, "user.deleted", "userDeleted"},
		{history.AuditRow{Kind: "user", Verb: "changed"}, "user.changed", "user.changed"},
		{history.AuditRow{Kind: "user", Verb: "changed", Before: []byte(`{"suspendedAt":null}`), After: []byte(`{"suspendedAt":"2026-01-01T00:00:00Z"}`)}, "user.changed", "userSuspended"},
		{history.AuditRow{Kind: "user", Verb: "changed", Before: []byte(`{"suspendedAt":"2026-01-01T00:00:00Z"}`), After: []byte(`{"suspendedAt":null}`)}, "user.changed", "userRestored"},
		{history.AuditRow{Kind: "user", Verb: "changed", Before: []byte(`{"suspendedAt":null}`), After: []byte(`{"suspendedAt":null}`)}, "user.changed", "user.changed"},
		{history.AuditRow{Kind: "policy", Verb: "created"}, "policy.created", "policyUpdate"},
		{history.AuditRow{Kind: "policy", Verb: "changed"}, "policy.changed", "policy.changed"},
		{history.AuditRow{Kind: "dns", Verb: "changed"}, "dns.changed", "dns.changed"},
	} {
		name, kind := control.EventName(c.row), control.EventType(c.row)
		if name != c.name || kind != c.kind {
			t.Errorf("%+v is %s and %s, want %s and %s", c.row, name, kind, c.name, c.kind)
		}
		for _, asked := range []string{name, kind, c.row.Kind + ".*"} {
			if !control.KnownEvent(asked) || !control.EventWanted(&mesh.Webhook{Events: []string{"apikey.*", asked}}, c.row) {
				t.Errorf("%s does not ask for %+v", asked, c.row)
			}
		}
		if c.row.Verb == "created" && (c.row.Kind == "node" || c.row.Kind == "user") && !control.EventWanted(&mesh.Webhook{Events: []string{c.row.Kind + "Created"}}, c.row) {
			t.Errorf("%sCreated does not ask for %+v", c.row.Kind, c.row)
		}
		if control.EventWanted(&mesh.Webhook{Events: []string{"apikey.*", "webhook.created"}}, c.row) || !control.EventWanted(&mesh.Webhook{}, c.row) {
			t.Errorf("%+v comes when it is not asked for, or not when all are", c.row)
		}
	}
}

func TestUnknownEventsAreNotAskedFor(t *testing.T) {
	for _, name := range []string{"", "*", ".*", "node", "node.", "nodes.*", "node.exploded", "user.online", "nodecreated", "webhook.test", "reset", "node.created.*"} {
		if control.KnownEvent(name) {
			t.Errorf("%q counts as an event", name)
		}
	}
}
