package policy

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
)

// lookups holds lists that are derived from users, owners, tags, addresses and routes.
// Worlds in which these are equal share them. Each list is computed when it is first
// needed.
type lookups struct {
	routes, owned, holders, people sync.Once

	routeList []netip.Prefix
	ownedBy   map[mesh.UserID][]mesh.NodeID
	heldBy    map[int][]netip.Addr // the addresses of a selector's nodes
	users     map[int][]*mesh.User // the users of a selector
}

// Routes returns the approved routes, sorted, except exit routes.
func (w *World) Routes() []netip.Prefix {
	w.lookups.routes.Do(func() {
		var list []netip.Prefix
		for n := range w.Nodes.All() {
			for _, p := range n.Routes {
				if p.Bits() > 0 {
					list = append(list, p)
				}
			}
		}
		slices.SortFunc(list, netip.Prefix.Compare)
		w.lookups.routeList = slices.Compact(list)
	})
	return w.lookups.routeList
}

// Owned returns the nodes of a user, sorted, except those that need approval.
func (w *World) Owned(u mesh.UserID) []mesh.NodeID {
	w.lookups.owned.Do(func() {
		w.lookups.ownedBy = make(map[mesh.UserID][]mesh.NodeID, w.Users.Len())
		for n := range w.Nodes.Approved() {
			if n.Owner != 0 {
				w.lookups.ownedBy[n.Owner] = append(w.lookups.ownedBy[n.Owner], n.ID)
			}
		}
	})
	return w.lookups.ownedBy[u]
}

// Holders returns the sorted addresses of the nodes of a source that has a mark or is one of Mirrored.
func (w *World) Holders(s Source) []netip.Addr {
	w.lookups.holders.Do(func() {
		w.lookups.heldBy = map[int][]netip.Addr{}
		for n := range w.Nodes.All() {
			for s := range w.rules.info(w.PeerClass(n)).own.All() {
				if sel := &w.rules.selectors[s]; sel.mark != "" || sel.held {
					w.lookups.heldBy[s] = append(w.lookups.heldBy[s], n.Addrs()...)
				}
			}
		}
		for _, addrs := range w.lookups.heldBy {
			slices.SortFunc(addrs, netip.Addr.Compare)
		}
	})
	return w.lookups.heldBy[s.selector]
}

// peopleOf returns the users that a selector refers to.
func (w *World) peopleOf(selector int) []*mesh.User {
	w.lookups.people.Do(func() {
		w.lookups.users = map[int][]*mesh.User{}
		for u := range w.Users.All() {
			var selectors bitset.Set
			selectors.AddList(w.rules.member)
			selectors.AddList(w.rules.all)
			w.rules.addUser(&selectors, u)
			for s := range selectors.All() {
				w.lookups.users[s] = append(w.lookups.users[s], u)
			}
		}
	})
	return w.lookups.users[selector]
}
