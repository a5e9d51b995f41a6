package netmap

import (
	"maps"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// messagesSince is the first capability version of clients that support DisplayMessages.
// Older ones are sent the texts as Health.
const messagesSince = 117

// DisplayMessage is a message about the viewer's own node that its client shows to people.
type DisplayMessage struct {
	Title, Text, Severity string
	ImpactsConnectivity   bool
}

// messagesOf returns the messages for a node by their id: why it has no access, or when it
// will lose it.
func messagesOf(n *mesh.Node) map[string]DisplayMessage {
	messages := map[string]DisplayMessage{}
	if n.NeedsApproval {
		messages["needs-approval"] = DisplayMessage{
			"Waiting for approval", "An administrator must approve this device before it can connect. There is nothing to do on this device.", "medium", true,
		}
	}
	if n.Suspended() {
		messages["account-suspended"] = DisplayMessage{
			"Account suspended", "The account of this device's owner is suspended. Contact an administrator.", "high", true,
		}
	}
	if n.ExpiresSoon() {
		messages["sign-in-expires"] = DisplayMessage{
			"Sign-in expires soon", n.Expiry.Time().UTC().Format("The sign-in of this device expires on 2 January 2006 at 15:04 UTC. ") +
				"Sign in again before then to stay connected, for example with: tailscale up --force-reauth", "medium", false,
		}
	}
	return messages
}

// hasMessages reports whether messagesOf returns any.
func hasMessages(n *mesh.Node) bool { return n.NeedsApproval || n.Suspended() || n.ExpiresSoon() }

// sameMessages reports whether the client of a node is sent the same messages, in the same
// form, for two values of the node.
func sameMessages(a, b *mesh.Node) bool {
	return a.NeedsApproval == b.NeedsApproval && a.Suspended() == b.Suspended() && a.ExpiresSoon() == b.ExpiresSoon() &&
		(!a.ExpiresSoon() || a.Expiry == b.Expiry) &&
		(!hasMessages(a) || (a.CapVersion < messagesSince) == (b.CapVersion < messagesSince))
}

// forms returns the messages for a node in the form that its client understands.
func forms(n *mesh.Node) (health []string, messages map[string]DisplayMessage) {
	if n == nil {
		return nil, nil
	}
	messages = messagesOf(n)
	if n.CapVersion >= messagesSince {
		return nil, messages
	}
	for _, id := range slices.Sorted(maps.Keys(messages)) {
		health = append(health, messages[id].Title+". "+messages[id].Text)
	}
	return health, nil
}

// addMessages adds what changed in the messages for the viewer. before is nil if the viewer
// has been sent none.
func (r *Response) addMessages(before, after *mesh.Node) {
	if before != nil && sameMessages(before, after) || before == nil && !hasMessages(after) {
		return
	}
	wasHealth, was := forms(before)
	isHealth, is := forms(after)
	if !slices.Equal(wasHealth, isHealth) {
		r.Health = append([]string{}, isHealth...) // an empty list clears the texts
	}
	for id := range was {
		if _, ok := is[id]; !ok {
			r.setMessage(id, nil)
		}
	}
	for id, m := range is {
		if was[id] != m {
			r.setMessage(id, &m)
		}
	}
}

// setMessage adds a message; nil removes the message that the client has.
func (r *Response) setMessage(id string, m *DisplayMessage) {
	if r.DisplayMessages == nil {
		r.DisplayMessages = map[string]*DisplayMessage{}
	}
	r.DisplayMessages[id] = m
}
