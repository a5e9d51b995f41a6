package netmap

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// The names of the parts of a filter. Clients are sent only the parts that change,
// so rules that change at different times are in different parts.
const (
	filterBase   = "base"   // rules that identify nodes by their marks
	filterListed = "listed" // rules that list the addresses of nodes
	filterOwn    = "own"    // rules about the nodes of the viewer's owner
)

// marksSince is the first capability version of clients that support marks.
const marksSince = 109

// isRouter reports whether a node advertises or has routes. Its filter lists its own
// addresses, because "*" would include its routes.
func isRouter(n *mesh.Node) bool { return len(n.RoutableIPs)+len(n.Routes) > 0 }

// filtersOf returns the filters of a router, or, if n is nil, of all viewers that are not
// routers. Empty parts are omitted, except for the base: clients keep an older part until
// something replaces it.
func filtersOf(s *Scene, v Viewpoint, n *mesh.Node) map[string][]Rule {
	filters := map[string][]Rule{filterBase: {}}
	base, listed := rules{}, rules{}
	for _, in := range s.Rules().Inbound(v.Class) {
		marked := slices.ContainsFunc(in.Src, func(src policy.Source) bool { return src.Mark != "" })
		list := marked && (v.Old || in.Listed)
		to := &base
		if list {
			to = &listed
		}
		to.add(&in, sources(s, in.Src, list), n)
	}
	for _, in := range s.Rules().Mirrored(v.Class) {
		to := &base
		if slices.ContainsFunc(in.Src, func(src policy.Source) bool { return src.Kind.IsIdentity() }) {
			to = &listed
		}
		to.add(&in, sources(s, in.Src, true), n)
	}
	if len(base.list) > 0 {
		filters[filterBase] = base.list
	}
	if len(listed.list) > 0 {
		filters[filterListed] = listed.list
	}
	if own := ownRules(s, v, n); len(own) > 0 {
		filters[filterOwn] = own
	}
	return filters
}

func ownRules(s *Scene, v Viewpoint, n *mesh.Node) []Rule {
	if v.Owner == 0 {
		return nil
	}
	own := rules{}
	for _, in := range s.Rules().OwnInbound(v.Class) {
		srcs := []string{"cap:" + policy.OwnMark(v.Owner)}
		if v.Old || in.Listed {
			var addrs []netip.Addr
			for _, id := range s.Owned(v.Owner) {
				if peer, ok := s.Nodes.Get(id); ok {
					addrs = append(addrs, peer.Addrs()...)
				}
			}
			slices.SortFunc(addrs, netip.Addr.Compare)
			srcs = ranges(addrs)
		}
		own.add(&in, srcs, n)
	}
	return own.list
}

// changedFilters returns the parts of to that differ from those of from; nil if
// none does. A part that to does not have is empty in the result.
func changedFilters(from, to map[string][]Rule) map[string][]Rule {
	var changed map[string][]Rule
	set := func(name string, rules []Rule) {
		if changed == nil {
			changed = map[string][]Rule{}
		}
		changed[name] = rules
	}
	for name, rules := range to {
		if !reflect.DeepEqual(from[name], rules) {
			set(name, rules)
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			set(name, []Rule{})
		}
	}
	return changed
}

// dropped returns a response that removes the parts of a viewer's filters, and the messages,
// that no longer exist, or nil if there are none. A full map cannot do that: a client that is sent
// another full map on the same stream keeps the parts that the map does not name.
func dropped(from, to *Scene, before, after *mesh.Node) *Response {
	gone := changedFilters(viewerFilters(from, before), viewerFilters(to, after))
	maps.DeleteFunc(gone, func(name string, rules []Rule) bool { return len(rules) > 0 || name == filterBase })
	r := &Response{}
	if len(gone) > 0 {
		r.PacketFilters = gone
	}
	r.addDialPlan(from, to, after.ID)
	r.addMessages(before, after)
	if r.empty() {
		return nil
	}
	return r
}

// sources returns the sources of a rule in the syntax of clients.
func sources(s *Scene, srcs []policy.Source, list bool) []string {
	var words []string
	var listed []netip.Addr
	for _, src := range srcs {
		switch {
		case src.Kind.IsIdentity() && list:
			listed = append(listed, s.Holders(src)...)
		case src.Mark != "":
			words = append(words, "cap:"+src.Mark)
		case src.Kind == lang.DangerAll:
			words = append(words, "*")
		case src.Kind == lang.Any:
			for _, p := range append(policy.MeshPrefixes(), s.Routes()...) {
				words = append(words, prefixText(p))
			}
		default:
			for _, p := range src.Prefixes {
				words = append(words, prefixText(p))
			}
		}
	}
	slices.SortFunc(listed, netip.Addr.Compare)
	return append(words, ranges(slices.Compact(listed))...)
}

// prefixText returns a prefix in the syntax of clients.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// ranges returns sorted addresses in the syntax of clients, consecutive ones as a range.
func ranges(addrs []netip.Addr) (words []string) {
	for len(addrs) > 0 {
		n := 1
		for n < len(addrs) && addrs[n] == addrs[n-1].Next() {
			n++
		}
		if n == 1 {
			words = append(words, addrs[0].String())
		} else {
			words = append(words, addrs[0].String()+"-"+addrs[n-1].String())
		}
		addrs = addrs[n:]
	}
	return words
}

// rules collects the rules of a filter. Rules with the same sources and protocols are
// merged.
type rules struct {
	list []Rule
	at   map[string]int
	has  map[opening]bool
}

// opening is a destination with ports in a rule of the list.
type opening struct {
	rule int
	PortRange
}

func (rs *rules) add(in *policy.Inbound, srcs []string, n *mesh.Node) {
	if len(srcs) == 0 {
		return
	}
	for _, d := range in.Dst {
		dsts := destinations(&d, n)
		if len(dsts) == 0 {
			continue
		}
		for _, service := range d.Services {
			rs.reach(rs.rule(srcs, service.Protocols), dsts, service.Ports)
		}
		if len(in.App) > 0 {
			rs.list = append(rs.list, Rule{SrcIPs: srcs, CapGrant: []CapGrant{{Dsts: dsts, CapMap: in.App}}})
		}
	}
}

// reach adds destinations with ports to a rule, without duplicates.
func (rs *rules) reach(rule int, dsts []netip.Prefix, ports []lang.PortRange) {
	words := make([]string, len(dsts))
	for i, dst := range dsts {
		words[i] = prefixText(dst)
	}
	if slices.Equal(dsts, everywhere()) {
		words = []string{"*"}
	}
	for _, w := range words {
		for _, p := range ports {
			o := opening{rule, PortRange{IP: w, Ports: Ports(p)}}
			if !rs.has[o] {
				rs.has[o] = true
				rs.list[rule].DstPorts = append(rs.list[rule].DstPorts, o.PortRange)
			}
		}
	}
}

// rule returns the index of the rule for sources and protocols. It adds the rule if
// there is none.
func (rs *rules) rule(srcs []string, protocols []int) int {
	key := fmt.Sprint(protocols, strings.Join(srcs, " "))
	i, ok := rs.at[key]
	if !ok {
		if rs.at == nil {
			rs.at, rs.has = map[string]int{}, map[opening]bool{}
		}
		i = len(rs.list)
		rs.at[key] = i
		rs.list = append(rs.list, Rule{SrcIPs: srcs, IPProto: protocols, DstPorts: []PortRange{}})
	}
	return i
}

// destinations returns the prefixes that a rule opens on the router n, or, if n is nil,
// on any node that is not a router. Such nodes take "*" to mean their own addresses.
func destinations(d *policy.Reach, n *mesh.Node) []netip.Prefix {
	switch {
	case n != nil:
		return d.On(n)
	case d.Kind == lang.Addresses:
		return d.Prefixes
	default:
		return everywhere()
	}
}

func everywhere() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}
