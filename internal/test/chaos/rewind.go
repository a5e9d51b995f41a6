package chaos

import (
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// resetOf returns the epoch that an entry begins.
func resetOf(e Entry) (mesh.Epoch, bool) {
	if len(e.Events) != 1 {
		return mesh.Epoch{}, false
	}
	reset, ok := e.Events[0].(mesh.HistoryReset)
	return reset.Epoch, ok
}

// rewind goes back to the revision after which a new epoch begins, because a failover lost later ones. What they
// contained may be written again, but their revisions and IDs must never mean something else.
func (c *Checker) rewind(e Entry, epoch mesh.Epoch) {
	if e.Rev <= c.replay.Rev {
		c.Report(Log, "an epoch begins at revision %d, and %d was seen before", e.Rev, c.replay.Rev)
	}
	kept := c.past[epoch.After%memory]
	if kept == nil || kept.Rev != epoch.After {
		c.Report(Error, "an epoch begins after revision %d, which is not known any more", epoch.After)
		return
	}
	c.Tally.Rewound += int(c.replay.Rev - kept.Rev)
	c.replay = kept
	c.claims = claims{holder: map[string]string{}, held: map[string][]string{}}
	there := map[string]bool{}
	restore := func(object, identity string, wants ...string) {
		there[object] = true
		c.born[object] = identity
		c.claims.put(object, wants...)
	}
	for u := range kept.Users.All() {
		restore(userObject(u.ID), fmt.Sprint(u.CreatedAt), userClaims(u)...)
	}
	for n := range kept.Nodes.All() {
		restore(nodeObject(n.ID), n.MachineKey.String(), nodeClaims(n)...)
	}
	for k := range kept.PreAuthKeys.All() {
		restore(preAuthObject(k.ID), k.Prefix, preAuthClaims(k)...)
	}
	for k := range kept.APIKeys.All() {
		restore(apiObject(k.ID), k.Prefix, apiClaims(k)...)
	}
	for object := range c.born {
		if !there[object] {
			c.born[object] = "" // like a deleted one, it must not come back
		}
	}
	for key, node := range c.admitted {
		if _, ok := kept.Nodes.Get(node); !ok {
			delete(c.admitted, key)
		}
	}
}
