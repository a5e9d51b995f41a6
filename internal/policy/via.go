package policy

import (
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Steers reports whether rules send nodes of a class through certain routers, so that
// they get different routes from other nodes.
func (c *Rules) Steers(class Class) bool { return c.info(class).steered }

// RoutesFor returns the routes that nodes of a class use through n. By default these are
// the routes for which n is everyone's router. A route that is reachable only by rules
// with via is used through the best of the routers that they name.
func (w *World) RoutesFor(c Class, n *mesh.Node) (list []netip.Prefix) {
	for _, p := range n.Routes {
		tags := w.viaTags(c, p)
		named := func(n *mesh.Node) bool {
			return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(n.Tags, tag) })
		}
		switch {
		case len(tags) == 0 && (mesh.Exit(p) || slices.Contains(n.Primary, p)),
			len(tags) > 0 && (mesh.Exit(p) && named(n) || !mesh.Exit(p) && w.Nodes.BestRouter(p, named) == n):
			list = append(list, p)
		}
	}
	return list
}

// viaTags returns the tags of the routers through which a class reaches a route; none if
// any router may be used.
func (w *World) viaTags(c Class, route netip.Prefix) (tags []string) {
	for r := range w.rules.info(c).src.any().All() {
		rule := &w.rules.rules[r]
		if !slices.ContainsFunc(rule.Dst, func(d lang.Destination) bool { return behind(&d, route) }) {
			continue
		}
		if len(rule.Via) == 0 {
			return nil
		}
		tags = append(tags, rule.Via...)
	}
	return tags
}

// behind reports whether a destination and a route overlap.
func behind(d *lang.Destination, route netip.Prefix) bool {
	switch d.Kind {
	case lang.Any:
		return true
	case lang.Internet:
		return mesh.Exit(route)
	case lang.Addresses:
		return !mesh.Exit(route) && slices.ContainsFunc(d.Prefixes, route.Overlaps)
	case lang.User, lang.Group, lang.Tag, lang.Member, lang.Admin, lang.Tagged, lang.Self, lang.DangerAll:
	}
	return false
}

// Forbids returns the mesh addresses whose traffic a route would attract, if any: a
// reserved range, or the address of a node from an earlier range.
func (w *World) Forbids(route netip.Prefix) (netip.Prefix, bool) {
	if own, ok := w.Reserved.Overlap(route); ok {
		return own, true
	}
	if _, held := w.Nodes.ByAddr(route.Addr().Unmap()); held && route.IsSingleIP() {
		return route, true
	}
	return netip.Prefix{}, false
}
