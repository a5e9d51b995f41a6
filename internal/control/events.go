package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// What a webhook is told beside changes: a test, and that the history does not
// reach back to what comes next.
const (
	EventTest  = "webhook.test"
	EventReset = "reset"
)

// EventName is the name of a change: the kind of the object and the verb.
func EventName(row history.AuditRow) string {
	if row.Verb == "" {
		return row.Kind
	}
	return row.Kind + "." + row.Verb
}

// EventID is by what a receiver knows an event that it has taken before. A test
// is like no other.
func EventID(row history.AuditRow) string {
	if EventName(row) == EventTest {
		return fmt.Sprintf("test-%d", row.At)
	}
	return row.Position.String()
}

// eventKinds are the kinds of objects that changes are about.
func eventKinds() []string {
	return []string{"user", "node", "preauthkey", "apikey", "login", "sshgrant", "policy", "dns", "webhook", "clock"}
}

// changeVerbs are what happens to objects.
func changeVerbs() []string { return []string{"created", "changed", "deleted"} }

// eventTypes are the names by which other services of this kind call some of the
// changes.
func eventTypes() []string {
	return []string{"nodeCreated", "nodeApproved", "nodeKeyExpired", "nodeDeleted", "userCreated", "userDeleted", "policyUpdate"}
}

// EventType is the name by which other services of this kind call a change, or
// its own name if they have none.
func EventType(row history.AuditRow) string {
	switch name := EventName(row); {
	case name == "node.created", name == "node.deleted", name == "user.created", name == "user.deleted":
		return row.Kind + strings.ToUpper(row.Verb[:1]) + row.Verb[1:]
	case name == "policy.created":
		return "policyUpdate"
	case name == "login.created" && !rejects(row.After):
		return "nodeApproved"
	case name == "node.changed" && expires(row):
		return "nodeKeyExpired"
	default:
		return name
	}
}

func rejects(login []byte) bool {
	var shape struct {
		Rejected string `json:"rejected"`
	}
	return json.Unmarshal(login, &shape) != nil || shape.Rejected != ""
}

// expires finds the change by which a node's key expired: somebody ended it, or
// its time had come and the sweeper says so.
func expires(row history.AuditRow) bool {
	if row.Actor.Kind == mesh.ActorServer && row.Actor.Reason == mesh.ReasonExpired {
		return true
	}
	var before, after struct {
		Expired bool `json:"expired"`
	}
	return json.Unmarshal(row.Before, &before) == nil && json.Unmarshal(row.After, &after) == nil && !before.Expired && after.Expired
}

// EventWanted reports whether a webhook asks for a change. What is no change
// comes always.
func EventWanted(w *mesh.Webhook, row history.AuditRow) bool {
	name := EventName(row)
	if len(w.Events) == 0 || name == EventTest || name == EventReset {
		return true
	}
	return slices.ContainsFunc(w.Events, func(want string) bool {
		if kind, all := strings.CutSuffix(want, ".*"); all {
			return kind == row.Kind
		}
		return want == name || want == EventType(row)
	})
}

// KnownEvent reports whether there are changes of a name, or with .* in place of
// the verb of a kind. A name with a mistake would never be told of.
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
