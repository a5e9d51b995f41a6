package explain

import (
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// This file defines what a policy means, rule by rule and packet by packet. The results
// of package policy for whole classes of nodes must agree with it.

// endpoint is the source or destination of a packet as rules see it: an address of a
// node, an address that no node has, or an address of a hypothetical node, of which only
// the identity is known.
type endpoint struct {
	name string // empty for an address that no node has
	// span contains the address. For a hypothetical node it is a whole mesh prefix.
	span netip.Prefix
	// own says that the address belongs to a node, which has tags or an owner. The owner
	// of a hypothetical node is 0.
	own   bool
	owner mesh.UserID
	lang.Identity

	// For a destination: the node where its packets arrive. A nil node stands for any
	// router to that address.
	at             *mesh.Node
	behind, beyond bool // within a route of at; in the internet behind at
}

// Allows reports whether node at accepts a packet; the port matters only for protocols
// that have ports. It checks the rules one by one, which is slow but simple.
func Allows(world *policy.World, src, dst netip.Addr, at *mesh.Node, protocol int, port uint16) bool {
	w := newWorld(world)
	if at.CutOff() || at.NeedsApproval || src.Is4() != dst.Is4() {
		return false
	}
	if n, ok := w.Nodes.ByAddr(src); ok && n.Suspended() {
		return false
	}
	s, d, ask := w.source(src), w.destination(dst, at), portQuery{protocol: protocol, port: port}
	for i := range w.rules {
		if w.judge(&w.rules[i], &s, &d, ask).allowed() {
			return true
		}
	}
	return false
}

// source returns the endpoint that sends from an address.
func (w *world) source(a netip.Addr) endpoint {
	p := endpoint{span: netip.PrefixFrom(a, a.BitLen())}
	if n, ok := w.Nodes.ByAddr(a); ok && !n.NeedsApproval {
		w.identify(&p, n)
	}
	return p
}

// destination returns the endpoint of an address whose packets arrive at a node.
func (w *world) destination(a netip.Addr, at *mesh.Node) endpoint {
	p := endpoint{span: netip.PrefixFrom(a, a.BitLen()), at: at}
	if slices.Contains(at.Addrs(), a) {
		w.identify(&p, at)
	}
	for _, route := range at.Routes {
		if route.Contains(a) {
			p.behind = p.behind || route.Bits() > 0
			p.beyond = p.beyond || route.Bits() == 0 && policy.IsPublic(a)
		}
	}
	return p
}

func (w *world) identify(p *endpoint, n *mesh.Node) {
	p.name, p.own, p.owner, p.Identity = n.Name, true, n.Owner, lang.IdentityOf(w.Snapshot, n)
}

// means reports whether a target matches an endpoint, by its identity or its address.
func (w *world) means(t *lang.Target, p *endpoint) bool {
	if t.Kind == lang.Addresses {
		return slices.ContainsFunc(t.Prefixes, p.within)
	}
	return p.own && t.Identifies(&p.Identity, w.groups)
}

// within reports whether a prefix contains all of the span of p.
func (p *endpoint) within(q netip.Prefix) bool {
	return q.Bits() <= p.span.Bits() && q.Contains(p.span.Addr())
}

// called returns the name of p for use in sentences.
func (p *endpoint) called() string {
	if p.name == "" {
		return p.span.Addr().String()
	}
	return p.name
}

func (p *endpoint) six() bool { return p.span.Addr().Is6() }

// imagined reports whether only the identity of p is known.
func (p *endpoint) imagined() bool { return !p.span.IsSingleIP() }

// isSource reports whether a source of a rule matches s.
func (w *world) isSource(t *lang.Target, s *endpoint) bool {
	switch t.Kind {
	case lang.DangerAll:
		return true
	case lang.Any:
		return slices.ContainsFunc(policy.MeshPrefixes(), s.within) || slices.ContainsFunc(w.Routes(), s.within)
	default:
		return w.means(t, s)
	}
}

// sourceIn returns the index of the rule's source that matches s, or -1.
func (w *world) sourceIn(targets []lang.Target, s *endpoint) int {
	for i := range targets {
		if w.isSource(&targets[i], s) {
			return i
		}
	}
	return -1
}

// isDestination reports whether a destination of a rule matches d, for packets from s.
func (w *world) isDestination(t *lang.Target, s, d *endpoint) bool {
	switch t.Kind {
	case lang.Any:
		return d.own || d.behind || d.beyond
	case lang.Internet:
		return d.beyond
	case lang.Self:
		return d.own && samePerson(s, d)
	case lang.Addresses:
		return (d.own || d.behind) && w.means(t, d)
	default:
		return w.means(t, d)
	}
}

func samePerson(a, b *endpoint) bool {
	if !a.own || !b.own || len(a.Tags) > 0 || len(b.Tags) > 0 {
		return false
	}
	if a.owner != 0 && b.owner != 0 {
		return a.owner == b.owner
	}
	return slices.ContainsFunc(a.Names, func(name string) bool { return slices.Contains(b.Names, name) })
}

// appliesAt reports whether a rule applies where the packets for d arrive: a rule with
// via applies only behind the routers that it names.
func appliesAt(r *lang.Rule, d *endpoint) bool {
	return len(r.Via) == 0 || !d.own &&
		(d.at == nil || slices.ContainsFunc(r.Via, func(tag string) bool { return slices.Contains(d.at.Tags, tag) }))
}

// portQuery is the protocol and the port of a connection.
type portQuery struct {
	protocol int
	port     uint16
	anyPort  bool // any one port is enough
}

// serves reports whether services include what is asked for. Clients respond to echo
// requests from anyone who may reach anything on them.
func (q portQuery) serves(services []lang.Service, six bool) bool {
	return slices.ContainsFunc(services, func(s lang.Service) bool {
		if !six && q.protocol == lang.ICMP || six && q.protocol == lang.ICMPv6 {
			return true
		}
		if !s.Has(q.protocol) {
			return false
		}
		if !lang.HasPorts(q.protocol) {
			return slices.Contains(s.Ports, lang.AllPorts())
		}
		return q.anyPort || slices.ContainsFunc(s.Ports, func(p lang.PortRange) bool { return p.First <= q.port && q.port <= p.Last })
	})
}

// verdict is how much of a rule matches a packet: the first source and the first
// destination that match, or -1. If several destinations match, the first that has the
// service is preferred.
type verdict struct {
	src, dst int
	service  bool
}

func (v verdict) allowed() bool { return v.src >= 0 && v.reached() }

// reached reports whether a destination matches with its service, for any source.
func (v verdict) reached() bool { return v.dst >= 0 && v.service }

func (w *world) judge(r *lang.Rule, s, d *endpoint, ask portQuery) verdict {
	v := verdict{src: w.sourceIn(r.Src, s), dst: -1}
	if !appliesAt(r, d) {
		return v
	}
	for i := range r.Dst {
		dst := &r.Dst[i]
		if !w.isDestination(&dst.Target, s, d) {
			continue
		}
		if ask.serves(dst.Services, d.six()) {
			v.dst, v.service = i, true
			return v
		}
		if v.dst < 0 {
			v.dst = i
		}
	}
	return v
}
