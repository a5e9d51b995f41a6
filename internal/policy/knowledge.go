package policy

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// knowledge is what follows from who is there. Worlds with the same users, owners,
// tags, addresses and routes share it; each part is found when it is first asked
// for.
type knowledge struct {
	routes, owned, holders, people sync.Once

	routeList []netip.Prefix
	ownedBy   map[mesh.UserID][]mesh.NodeID
	heldBy    map[int][]netip.Addr // the addresses of a selector's members
	users     map[int][]*mesh.User // the people of a selector
}

// Routes returns where routers lead to, in order and once; the internet is not
// among them.
func (w *World) Routes() []netip.Prefix {
	w.known.routes.Do(func() {
		var list []netip.Prefix
		for n := range w.Nodes() {
			for _, p := range n.Routes {
				if p.Bits() > 0 {
					list = append(list, p)
				}
			}
		}
		slices.SortFunc(list, netip.Prefix.Compare)
		w.known.routeList = slices.Compact(list)
	})
	return w.known.routeList
}

// Owned returns the nodes of a user, in order.
func (w *World) Owned(u mesh.UserID) []mesh.NodeID {
	w.known.owned.Do(func() {
		w.known.ownedBy = make(map[mesh.UserID][]mesh.NodeID, w.UserCount())
		for n := range w.Nodes() {
			if n.Owner != 0 {
				w.known.ownedBy[n.Owner] = append(w.known.ownedBy[n.Owner], n.ID)
			}
		}
	})
	return w.known.ownedBy[u]
}

// Holders returns the addresses of the nodes that carry a source's mark, in order.
func (w *World) Holders(s Source) []netip.Addr {
	w.known.holders.Do(func() {
		w.known.heldBy = map[int][]netip.Addr{}
		for n := range w.Nodes() {
			for s := range w.rules.info(w.Kin(n)).own.All() {
				if w.rules.selectors[s].mark != "" {
					w.known.heldBy[s] = append(w.known.heldBy[s], n.Addrs()...)
				}
			}
		}
		for _, addrs := range w.known.heldBy {
			slices.SortFunc(addrs, netip.Addr.Compare)
		}
	})
	return w.known.heldBy[s.selector]
}

// peopleOf returns the users that a selector means.
func (w *World) peopleOf(selector int) []*mesh.User {
	w.known.people.Do(func() {
		w.known.users = map[int][]*mesh.User{}
		for u := range w.Users() {
			var selectors bitset.Set
			selectors.AddList(w.rules.member)
			selectors.AddList(w.rules.all)
			for _, name := range lang.NamesOf(u) {
				selectors.AddList(w.rules.byUser[name])
			}
			for s := range selectors.All() {
				w.known.users[s] = append(w.known.users[s], u)
			}
		}
	})
	return w.known.users[selector]
}
