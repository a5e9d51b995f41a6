package chaos

import (
	"fmt"
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// claims records which object holds each value that must be unique.
type claims struct {
	holder map[string]string   // claim → object
	held   map[string][]string // object → claims
}

// put replaces the claims of an object and describes the conflicts with claims of other objects.
func (c *claims) put(object string, wants ...string) (clashes []string) {
	c.drop(object)
	for _, w := range wants {
		if other, taken := c.holder[w]; taken {
			clashes = append(clashes, fmt.Sprintf("%s has %s of %s", object, w, other))
			continue
		}
		c.holder[w] = object
		c.held[object] = append(c.held[object], w)
	}
	return clashes
}

func (c *claims) drop(object string) {
	for _, w := range c.held[object] {
		delete(c.holder, w)
	}
	delete(c.held, object)
}

func userObject(id mesh.UserID) string   { return fmt.Sprintf("user %d", id) }
func nodeObject(id mesh.NodeID) string   { return fmt.Sprintf("node %d", id) }
func preAuthObject(id mesh.KeyID) string { return fmt.Sprintf("pre-auth key %d", id) }
func apiObject(id mesh.KeyID) string     { return fmt.Sprintf("API key %d", id) }

func userClaims(u *mesh.User) []string { return []string{"the user name " + mesh.FoldName(u.Name)} }

func nodeClaims(n *mesh.Node) []string {
	wants := []string{
		"the name " + n.Name, "the machine key " + n.MachineKey.String(), "the node key " + n.NodeKey.String(),
	}
	for _, a := range []netip.Addr{n.IPv4, n.IPv6} {
		wants = append(wants, "the address "+a.String())
	}
	return wants
}

func preAuthClaims(k *mesh.PreAuthKey) []string { return []string{"the prefix " + k.Prefix} }
func apiClaims(k *mesh.APIKey) []string         { return []string{"the API prefix " + k.Prefix} }

// event checks one event against everything before it.
func (c *Checker) event(e Entry, ev mesh.Event) {
	c.Tally.Events[ev.Kind()]++
	if Audited(ev) {
		c.Tally.Audited++
	}
	switch ev := ev.(type) {
	case mesh.UserPut:
		c.remember(ev)
		c.put(e, userObject(ev.User.ID), fmt.Sprint(ev.User.CreatedAt), userClaims(ev.User)...)
	case mesh.UserGone:
		c.gone(e, userObject(ev.ID))
	case mesh.NodePut:
		c.remember(ev)
		c.nodePut(e, ev.Node)
	case mesh.NodeGone:
		c.gone(e, nodeObject(ev.ID))
	case mesh.NodeNet:
		c.present(e, nodeObject(ev.ID))
	case mesh.Online:
		c.present(e, nodeObject(ev.ID))
	case mesh.Offline:
		c.present(e, nodeObject(ev.ID))
	case mesh.PreAuthKeyPut:
		c.put(e, preAuthObject(ev.Key.ID), ev.Key.Prefix, preAuthClaims(ev.Key)...)
	case mesh.PreAuthKeyGone:
		c.gone(e, preAuthObject(ev.ID))
	case mesh.APIKeyPut:
		c.put(e, apiObject(ev.Key.ID), ev.Key.Prefix, apiClaims(ev.Key)...)
	case mesh.APIKeyGone:
		c.gone(e, apiObject(ev.ID))
	case mesh.AddressCursor, mesh.ClockSet, mesh.HistoryReset, mesh.SessionPut, mesh.SessionGone, mesh.GroupPut, mesh.GroupGone, mesh.LoginPut, mesh.LoginGone, mesh.SettingPut, mesh.SettingGone,
		mesh.PolicyPut, mesh.SSHGrantPut, mesh.SSHGrantGone,
		mesh.WebhookPut, mesh.WebhookGone, mesh.WebhookMoved, mesh.DeadLetterPut, mesh.DeadLetterGone,
		mesh.NodeFacts, mesh.PreAuthKeyUsed, mesh.APIKeyUsed, mesh.SessionUsed, mesh.ReceiptPut, mesh.ReceiptGone,
		mesh.PasskeyPut, mesh.PasskeyGone, mesh.InvitationPut, mesh.InvitationGone, mesh.RecheckPut, mesh.RecheckGone,
		mesh.ReservationPut, mesh.ReservationGone, mesh.RelayPut, mesh.RelayGone, mesh.RelayReported:
	}
}

func (c *Checker) remember(ev mesh.Event) {
	encoded, err := mesh.EncodeEvents([]mesh.Event{ev})
	if err != nil {
		c.Report(Error, "%v", err)
		return
	}
	c.facts[c.fact(string(encoded))] = struct{}{}
}

// put checks that an id always means the same object, and that no other object holds what this one claims
// now.
func (c *Checker) put(e Entry, object, identity string, wants ...string) {
	was, known := c.born[object]
	switch {
	case known && was == "":
		c.Report(Reused, "%s came back at %d", object, e.Rev)
	case known && was != identity:
		c.Report(Reused, "%s was %s and is %s at %d", object, was, identity, e.Rev)
	}
	c.born[object] = identity
	for _, clash := range c.claims.put(object, wants...) {
		c.Report(Shared, "%s at %d", clash, e.Rev)
	}
}

func (c *Checker) gone(e Entry, object string) {
	c.present(e, object)
	c.born[object] = ""
	c.claims.drop(object)
}

func (c *Checker) present(e Entry, object string) {
	if c.born[object] == "" {
		c.Report(Stale, "revision %d is about %s, which is not there", e.Rev, object)
	}
}

func (c *Checker) nodePut(e Entry, n *mesh.Node) {
	object := nodeObject(n.ID)
	if _, known := c.born[object]; !known {
		c.admit(e, n)
	}
	c.put(e, object, n.MachineKey.String(), nodeClaims(n)...)
}

// admit checks the key with which a new node joined, as of the log before this entry.
func (c *Checker) admit(e Entry, n *mesh.Node) {
	k, ok := c.replay.PreAuthKeys.Get(n.PreAuthKey)
	if !ok {
		c.Report(Admitted, "node %d joined at %d with key %d, which does not exist", n.ID, e.Rev, n.PreAuthKey)
		return
	}
	first, again := c.admitted[k.ID]
	c.admitted[k.ID] = n.ID
	c.Tally.Enrolments[k.Reusable]++
	switch {
	case again && !k.Reusable:
		c.Report(Admitted, "node %d joined with single-use key %d and, at %d, node %d did", first, k.ID, e.Rev, n.ID)
	case k.Used && !k.Reusable:
		c.Report(Admitted, "node %d joined at %d with key %d, which was used up", n.ID, e.Rev, k.ID)
	case k.Expiry.Reached(e.At):
		c.Report(Admitted, "node %d joined at %d with key %d, which had expired", n.ID, e.Rev, k.ID)
	}
}
