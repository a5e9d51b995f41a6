package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Events that webhooks receive in addition to changes: a test, and a notice that the next
// events are no longer in the history.
const (
	EventTest  = "webhook.test"
	EventReset = "reset"
)

// KindHistory is the kind of audit rows about lost changes. To receivers of events they are resets.
const KindHistory = "history"

// EventName returns the name of a change: the object's kind and the verb.
func EventName(row history.AuditRow) string {
	if row.Kind == KindHistory {
		return EventReset
	}
	if row.Verb == "" {
		return row.Kind
	}
	return row.Kind + "." + row.Verb
}

// EventID returns the id by which a receiver recognizes an event that it has already
// processed. Each test has an id of its own.
func EventID(row history.AuditRow) string {
	if EventName(row) == EventTest {
		return fmt.Sprintf("test-%d", row.At)
	}
	return row.Position.String()
}

// eventKinds returns the kinds of objects that changes are about.
func eventKinds() []string {
	return []string{"user", "node", "preauthkey", "apikey", "session", "login", "passkey", "invitation", "sshgrant", "policy", "dns", "webhook", "relay", "reservation", "clock", "noisekey"}
}

// changeVerbs returns the verbs that apply to every kind of object.
func changeVerbs() []string { return []string{"created", "changed", "deleted"} }

// eventTypes returns the event names of Tailscale's webhooks that EventType uses.
func eventTypes() []string {
	return []string{"nodeCreated", "nodeNeedsApproval", "nodeApproved", "nodeKeyExpired", "nodeDeleted", "userCreated", "userNeedsApproval", "userApproved", "userDeleted", "userSuspended", "userRestored", "policyUpdate"}
}

// EventType returns the name of a change in Tailscale's webhooks, or our own name if there
// is none.
func EventType(row history.AuditRow) string {
	switch name := EventName(row); {
	case name == "node.created" && needsApproval(row.After), name == "node.changed" && needsApproval(row.After) && !needsApproval(row.Before):
		return "nodeNeedsApproval"
	case name == "node.changed" && needsApproval(row.Before) && !needsApproval(row.After):
		return "nodeApproved"
	case name == "user.created" && needsApproval(row.After):
		return "userNeedsApproval"
	case name == "user.changed" && needsApproval(row.Before) && !needsApproval(row.After):
		return "userApproved"
	case name == "node.created", name == "node.deleted", name == "user.created", name == "user.deleted":
		return row.Kind + strings.ToUpper(row.Verb[:1]) + row.Verb[1:]
	case name == "policy.created":
		return "policyUpdate"
	case name == "login.created" && !rejects(row.After):
		return "nodeApproved"
	case name == "user.changed" && suspension(row) != "":
		return suspension(row)
	case name == "node.changed" && expires(row):
		return "nodeKeyExpired"
	default:
		return name
	}
}

func needsApproval(object []byte) bool {
	var shape struct {
		NeedsApproval bool `json:"needsApproval"`
	}
	return json.Unmarshal(object, &shape) == nil && shape.NeedsApproval
}

func rejects(login []byte) bool {
	var shape struct {
		Rejected string `json:"rejected"`
	}
	return json.Unmarshal(login, &shape) != nil || shape.Rejected != ""
}

// expires reports whether a change expired a node's key, either because somebody expired it
// or because the sweep noticed that it was due.
func expires(row history.AuditRow) bool {
	if row.Actor.Kind == mesh.ActorServer && row.Actor.Reason == mesh.ReasonExpired {
		return true
	}
	var before, after struct {
		Expired bool `json:"expired"`
	}
	return json.Unmarshal(row.Before, &before) == nil && json.Unmarshal(row.After, &after) == nil && !before.Expired && after.Expired
}

// suspension returns the event type of a change that suspended or restored a user, or "".
func suspension(row history.AuditRow) string {
	var before, after struct {
		SuspendedAt *string `json:"suspendedAt"`
	}
	switch {
	case json.Unmarshal(row.Before, &before) != nil || json.Unmarshal(row.After, &after) != nil || (before.SuspendedAt == nil) == (after.SuspendedAt == nil):
		return ""
	case before.SuspendedAt == nil:
		return "userSuspended"
	default:
		return "userRestored"
	}
}

// EventWanted reports whether a webhook subscribes to an event. Events that are not changes
// are always sent.
func EventWanted(w *mesh.Webhook, row history.AuditRow) bool {
	name := EventName(row)
	if len(w.Events) == 0 || name == EventTest || name == EventReset {
		return true
	}
	return slices.ContainsFunc(w.Events, func(want string) bool {
		if kind, all := strings.CutSuffix(want, ".*"); all {
			return kind == row.Kind
		}
		return want == name || want == EventType(row) || want == "nodeCreated" && name == "node.created" || want == "userCreated" && name == "user.created"
	})
}

// KnownEvent reports whether a subscription names an event type, a change, or all changes
// of a kind with .* for the verb. Unknown names are refused, because a misspelled one would
// never match.
func KnownEvent(name string) bool {
	kind, verb, whole := strings.Cut(name, ".")
	if !whole {
		return slices.Contains(eventTypes(), name)
	}
	verbs := append(changeVerbs(), "*")
	if kind == "node" {
		verbs = append(verbs, "online", "offline")
	}
	return slices.Contains(eventKinds(), kind) && slices.Contains(verbs, verb)
}
