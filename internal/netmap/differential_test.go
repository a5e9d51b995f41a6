package netmap_test

// The maps that nodes are sent, evaluated by the clients' own filter, and the explanations
// of a policy allow exactly what the definition of the language allows. Nodes also get
// exactly the peers that it prescribes.

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go4.org/netipx"
	"tailscale.com/tailcfg"
	"tailscale.com/types/ipproto"
	"tailscale.com/types/logger"
	"tailscale.com/wgengine/filter"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

var packets = flag.Int("packets", 150_000, "random packets on which the policy and the clients must agree")

// packetsPerWorld is enough to match most rules of a small mesh, and few enough to try
// many worlds.
const packetsPerWorld = 600

// packet is the first packet of a connection, as it arrives.
type packet struct {
	src, dst netip.Addr
	protocol int
	port     uint16
}

func (p packet) String() string {
	return fmt.Sprintf("protocol %d from %s to %s port %d", p.protocol, p.src, p.dst, p.port)
}

// echo reports whether the packet is an echo request.
func (p packet) echo() bool { return p.protocol == echoProtocol(p.dst) }

func echoProtocol(to netip.Addr) int {
	if to.Is4() {
		return int(ipproto.ICMPv4)
	}
	return int(ipproto.ICMPv6)
}

// client is a node that was sent its map.
type client struct {
	*mesh.Node
	sent   *tailcfg.MapResponse
	rules  []tailcfg.FilterRule
	filter *filter.Filter
}

// newClient processes a full map like a client.
func newClient(n *mesh.Node, sent *tailcfg.MapResponse) (*client, error) {
	c := &client{Node: n, sent: sent}
	for _, name := range keys(sent.PacketFilters) {
		c.rules = append(c.rules, sent.PacketFilters[name]...)
	}
	if n.CapVersion < 109 && slices.ContainsFunc(c.rules, func(rule tailcfg.FilterRule) bool {
		return slices.ContainsFunc(rule.SrcIPs, func(src string) bool { return strings.HasPrefix(src, "cap:") })
	}) {
		return nil, errors.New("capabilities of sources are not known before version 109")
	}
	matches, err := filter.MatchesFromFilterRules(c.rules)
	if err != nil {
		return nil, err
	}
	local, err := c.local()
	if err != nil {
		return nil, err
	}
	c.filter = filter.New(matches, c.hasCap, local, local, nil, logger.Discard)
	return c, nil
}

// local returns the destinations of packets that a client accepts at all: itself and what
// it announces, approved or not. An exit node never forwards into private networks.
func (c *client) local() (*netipx.IPSet, error) {
	var b, world netipx.IPSetBuilder
	for _, own := range c.sent.Node.Addresses {
		b.AddPrefix(own)
	}
	for _, route := range c.RoutableIPs {
		if route.Bits() == 0 {
			world.AddPrefix(route)
		} else {
			b.AddPrefix(route)
		}
	}
	for _, never := range []string{
		"192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "100.64.0.0/10", "fe80::/10", "ff00::/8", "fd7a:115c:a1e0::/48",
	} {
		world.RemovePrefix(netip.MustParsePrefix(never))
	}
	exit, err := world.IPSet()
	if err != nil {
		return nil, err
	}
	b.AddSet(exit)
	return b.IPSet()
}

// hasCap reports whether the peer with this address has a capability, according to what
// the client was sent.
func (c *client) hasCap(src netip.Addr, name tailcfg.NodeCapability) bool {
	for _, peer := range c.sent.Peers {
		if slices.Contains(peer.Addresses, netip.PrefixFrom(src, src.BitLen())) {
			return peer.HasCap(name)
		}
	}
	return false
}

// accepts evaluates the filter. Only outgoing packets change its state, so results are
// independent of each other.
func (c *client) accepts(p packet) bool {
	return c.filter.Check(p.src, p.dst, p.port, ipproto.Proto(p.protocol)) == filter.Accept
}

func (c *client) grants(p packet, name tailcfg.PeerCapability) bool {
	return c.filter.CapsWithValues(p.src, p.dst).HasCapability(name)
}

// knowsByCapability reports whether some rule identifies the source by a capability. The
// filter of the clients then ignores the destination of an echo request.
func (c *client) knowsByCapability(p packet) bool {
	return slices.ContainsFunc(c.rules, func(rule tailcfg.FilterRule) bool {
		return slices.ContainsFunc(rule.SrcIPs, func(src string) bool {
			name, ok := strings.CutPrefix(src, "cap:")
			return ok && c.hasCap(p.src, tailcfg.NodeCapability(name))
		})
	})
}

// grants reports whether a source has the capability of the random policies at an address
// of a node.
func (f *reference) grants(s, d netip.Addr, at *mesh.Node) bool {
	for _, rule := range f.rules {
		if _, ok := rule.app[capability]; !ok || at.KeyExpired || at.NeedsApproval || !f.hasSource(rule, s) {
			continue
		}
		if slices.ContainsFunc(rule.dst, func(dst place) bool { return f.leads(rule, dst.name, s, d, at) }) {
			return true
		}
	}
	return false
}

// answers reports whether a node whose address is d may use a relay at s, so that its client looks
// for one there.
func (f *reference) answers(s, d netip.Addr, at *mesh.Node) bool {
	for _, rule := range f.rules {
		if _, ok := rule.app[relay]; !ok || len(rule.via) > 0 || at.KeyExpired || at.NeedsApproval || !f.hasSource(rule, d) {
			continue
		}
		if slices.ContainsFunc(rule.dst, func(dst place) bool { return f.mayBeRelay(dst.name, s, at) }) {
			return true
		}
	}
	return false
}

func (f *reference) mayBeRelay(name string, s netip.Addr, user *mesh.Node) bool {
	n := f.nodeAt(s)
	switch {
	case name == "*":
		return within("100.64.0.0/10", s) || within("fd7a:115c:a1e0::/48", s)
	case name == "autogroup:self":
		return n != nil && len(n.Tags) == 0 && len(user.Tags) == 0 && n.Owner == user.Owner
	case f.namesAddresses(name):
		return f.contains(name, s)
	}
	return n != nil && f.is(name, n)
}

// mayAsk reports whether a source may reach any address of a node, or behind it.
func (f *reference) mayAsk(s netip.Addr, at *mesh.Node) bool {
	return slices.ContainsFunc(f.reachable(at), func(d netip.Addr) bool {
		return s.Is4() == d.Is4() && f.allowed(s, d, at, echoProtocol(d), 0)
	})
}

// traffic generates packets for one world.
type traffic struct {
	*rand.Rand
	nodes []*mesh.Node
	addrs []netip.Addr // edges of all ranges, and some unrelated addresses
	// announced lists the addresses that a node announces, approved or not.
	announced map[mesh.NodeID][]netip.Addr
}

func newTraffic(w world, f *reference) *traffic {
	tr := &traffic{Rand: rand.New(rand.NewPCG(w.seed, 11)), nodes: f.nodes, announced: map[mesh.NodeID][]netip.Addr{}}
	for _, edge := range f.edges {
		tr.addrs = append(tr.addrs, edge)
		if before := edge.Prev(); before.IsValid() {
			tr.addrs = append(tr.addrs, before)
		}
	}
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "192.0.2.1", "10.1.2.200", "10.200.0.1", "172.20.3.4", "198.51.100.4", "100.100.100.100", "100.64.0.200", "2001:4860::8888", "2001:db8:1:2::9",
		"fd00:dead::1", "fd00:1::5", "fd7a:115c:a1e0::ffff",
	} {
		tr.addrs = append(tr.addrs, netip.MustParseAddr(text))
	}
	for _, n := range f.nodes {
		for _, addr := range tr.addrs {
			if slices.ContainsFunc(n.RoutableIPs, func(route netip.Prefix) bool { return route.Contains(addr) }) {
				tr.announced[n.ID] = append(tr.announced[n.ID], addr)
			}
		}
	}
	return tr
}

// packet generates a packet that may arrive at a node. It never comes from the node itself
// or uses the other family's ICMP, because such packets are never sent.
func (tr *traffic) packet(at *mesh.Node) packet {
	p := packet{dst: pick(tr.Rand, at.Addrs()), protocol: pick(tr.Rand, []int{6, 6, 6, 17, 17, 132, 47, 50, 0}), port: tr.port()}
	switch {
	case oneIn(tr.Rand, 12):
		p.dst = pick(tr.Rand, tr.addrs)
	case len(tr.announced[at.ID]) > 0 && !oneIn(tr.Rand, 3):
		p.dst = pick(tr.Rand, tr.announced[at.ID])
	}
	if p.protocol == 0 {
		p.protocol = echoProtocol(p.dst)
	}
	for !p.src.IsValid() || p.src.Is4() != p.dst.Is4() || slices.Contains(at.Addrs(), p.src) {
		if p.src = pick(tr.Rand, tr.addrs); !oneIn(tr.Rand, 3) {
			p.src = pick(tr.Rand, pick(tr.Rand, tr.nodes).Addrs())
		}
	}
	return p
}

func (tr *traffic) port() uint16 {
	if oneIn(tr.Rand, 10) {
		return uint16(tr.IntN(1 << 16))
	}
	return pick(tr.Rand, []uint16{
		0, 1, 2, 21, 22, 23, 53, 79, 80, 81, 90, 91, 442, 443, 444, 999, 1000, 2000, 2001, 7999, 8000, 8080, 8100, 8101, 32768, 64999, 65000, 65534, 65535,
	})
}

// bug is a fault injected between a world and what clients are sent: they are sent the
// result for another world, or a modified result.
type bug struct {
	name  string
	world func(world) world
	sent  func(world, *tailcfg.MapResponse)
	// packets means that only packets can reveal the bug, not the visible peers.
	packets bool
}

// tally counts what a trial covered.
type tally struct {
	packets, accepted, beyond, granted, answered, echoes, pairs, seen int
}

// sceneOf returns the scene under test.
func sceneOf(w world) (*netmap.Scene, error) {
	var doc *lang.Doc
	if w.text != "" {
		var problems lang.Problems
		if doc, problems = lang.Parse([]byte(w.text)); len(problems) > 0 {
			return nil, problems
		}
	}
	return netmap.SceneOf(policy.WorldOf(w.snapshot, doc), nil), nil
}

// trial sends every node of a world its map and random packets. It returns the first
// difference, or an empty string.
func (n *tally) trial(w world, b bug) (string, error) {
	rendered := w
	if b.world != nil {
		rendered = b.world(w)
	}
	scene, err := sceneOf(rendered)
	if err != nil {
		return "", err
	}
	said, err := sceneOf(w) // not affected by the bug
	if err != nil {
		return "", err
	}
	f, err := newReference(w)
	if err != nil {
		return "", err
	}
	clients := map[mesh.NodeID]*client{}
	for _, node := range f.nodes {
		sent, err := decoded(netmap.Full(scene, node.ID))
		if err != nil {
			return "", err
		}
		if b.sent != nil {
			b.sent(w, sent)
		}
		if clients[node.ID], err = newClient(node, sent); err != nil {
			return fmt.Sprintf("node %d is sent rules that it does not take: %v", node.ID, err), nil
		}
		if diff := n.visibility(f, clients[node.ID]); diff != "" && !b.packets {
			return diff, nil
		}
	}
	tr := newTraffic(w, f)
	for range packetsPerWorld {
		c := clients[pick(tr.Rand, f.nodes).ID]
		p := tr.packet(c.Node)
		for range tr.IntN(6) { // retry, because most random packets are refused
			if !f.allowed(p.src, p.dst, c.Node, p.protocol, p.port) {
				p = tr.packet(c.Node)
			}
		}
		if diff := n.agree(f, said, c, p); diff != "" {
			return diff, nil
		}
	}
	return "", nil
}

// decoded returns a response as clients decode it.
func decoded(r *netmap.Response) (*tailcfg.MapResponse, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	sent := &tailcfg.MapResponse{}
	return sent, json.Unmarshal(text, sent)
}

func (n *tally) visibility(f *reference, c *client) string {
	for _, node := range f.nodes {
		want := f.sees(c.Node, node)
		got := slices.ContainsFunc(c.sent.Peers, func(p *tailcfg.Node) bool { return mesh.NodeID(p.ID) == node.ID })
		if got != want {
			return fmt.Sprintf("node %d sees node %d: %t, want %t", c.ID, node.ID, got, want)
		}
		if n.pairs++; got {
			n.seen++
		}
	}
	return ""
}

func (n *tally) agree(f *reference, scene *netmap.Scene, c *client, p packet) string {
	want, got := f.allowed(p.src, p.dst, c.Node, p.protocol, p.port), c.accepts(p)
	if said := explain.Allows(scene.World, p.src, p.dst, c.Node, p.protocol, p.port); said != want {
		return fmt.Sprintf("node %d is said to accept %s: %t, want %t", c.ID, p, said, want)
	}
	if n.packets++; got {
		n.accepted++
		if !slices.Contains(c.Addrs(), p.dst) {
			n.beyond++
		}
	}
	if got && !want && p.echo() && c.knowsByCapability(p) {
		if !f.mayAsk(p.src, c.Node) {
			return fmt.Sprintf("node %d answers %s, of whose family it should let nothing in from there: a rule with cap: names a destination that is not at this node; its rules: %s",
				c.ID, p, inJSON(c.rules))
		}
		n.echoes++
		want = true
	}
	if got != want {
		return fmt.Sprintf("node %d accepts %s: %t, want %t; its rules: %s", c.ID, p, got, want, inJSON(c.rules))
	}
	if !slices.Contains(c.Addrs(), p.dst) {
		return "" // capabilities are checked at the node itself
	}
	if want, got = f.answers(p.src, p.dst, c.Node), c.grants(p, relayTarget); got != want {
		return fmt.Sprintf("node %d looks for a relay at %s: %t, want %t; its rules: %s", c.ID, p.src, got, want, inJSON(c.rules))
	}
	if got {
		n.answered++
	}
	if want, got = f.grants(p.src, p.dst, c.Node), c.grants(p, capability); got != want {
		return fmt.Sprintf("node %d grants the capability to %s: %t, want %t; its rules: %s", c.ID, p.src, got, want, inJSON(c.rules))
	}
	if got {
		n.granted++
	}
	return ""
}

func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestClientsAllowWhatThePolicyAllows(t *testing.T) {
	var n tally
	worlds := uint64(0)
	for ; n.packets < *packets; worlds++ {
		w := randomWorld(worlds)
		if diff, err := n.trial(w, bug{}); err != nil || diff != "" {
			t.Fatalf("%s %v\n%s", diff, err, w)
		}
	}
	t.Logf("%d worlds: %+v", worlds, n)
	if n.accepted < n.packets/20 || n.accepted > n.packets*3/4 || n.beyond < n.packets/100 || n.granted == 0 || n.answered == 0 || n.seen < n.pairs/10 || n.seen > n.pairs*9/10 {
		t.Errorf("the worlds are too much alike: %+v", n)
	}
}

// nodes returns a world in which each node is changed by replace.
func (w world) nodes(replace func(*mesh.Node)) world {
	s := w.snapshot
	for n := range w.snapshot.Nodes.All() {
		other := *n
		replace(&other)
		s, _ = mesh.Apply(s, s.Rev+1, mesh.NodePut{Node: &other})
	}
	w.snapshot = s
	return w
}

// says returns a world with a part of the policy text replaced.
func (w world) says(text, other string) world {
	w.text = strings.ReplaceAll(w.text, text, other)
	return w
}

// eachRange applies a change to each address range that a client is sent.
func eachRange(sent *tailcfg.MapResponse, change func(*tailcfg.NetPortRange)) {
	for _, rules := range sent.PacketFilters {
		for i := range rules {
			for j := range rules[i].DstPorts {
				change(&rules[i].DstPorts[j])
			}
		}
	}
}

// wider returns a range that includes one more address than text. Any address ("*") stays
// as it is.
func wider(text string) string {
	if text == "*" {
		return text
	}
	first, last := bounds(text)
	return first.String() + "-" + cmp.Or(last.Next(), last).String()
}

func bugs() []bug {
	return []bug{
		{name: "ranges of ports end too early", sent: func(_ world, sent *tailcfg.MapResponse) {
			eachRange(sent, func(r *tailcfg.NetPortRange) { r.Ports.Last = max(r.Ports.First, r.Ports.Last-1) })
		}},
		{name: "destinations are too wide by one address", sent: func(_ world, sent *tailcfg.MapResponse) {
			eachRange(sent, func(r *tailcfg.NetPortRange) { r.IP = wider(r.IP) })
		}},
		{name: "destinations of IPv6 are left out", sent: func(_ world, sent *tailcfg.MapResponse) {
			eachRange(sent, func(r *tailcfg.NetPortRange) {
				if strings.Contains(r.IP, ":") {
					r.IP = "192.0.2.77"
				}
			})
		}},
		{name: "protocols are forgotten", sent: func(_ world, sent *tailcfg.MapResponse) {
			for _, rules := range sent.PacketFilters {
				for i := range rules {
					rules[i].IPProto = nil
				}
			}
		}},
		{name: "tagged nodes stay their owner's", packets: true, world: func(w world) world {
			return w.nodes(func(n *mesh.Node) {
				if n.Tagged() {
					n.Owner, n.Tags = n.CreatedBy, nil
				}
			})
		}},
		{name: "announced routes need no approval", packets: true, world: func(w world) world {
			return w.nodes(func(n *mesh.Node) { n.Routes = n.RoutableIPs })
		}},
		{name: "a peer that may not be seen stays", sent: func(w world, sent *tailcfg.MapResponse) {
			for n := range w.snapshot.Nodes.All() {
				known := func(p *tailcfg.Node) bool { return p.ID == tailcfg.NodeID(n.ID) }
				if !known(sent.Node) && !slices.ContainsFunc(sent.Peers, known) {
					sent.Peers = append(sent.Peers, &tailcfg.Node{ID: tailcfg.NodeID(n.ID)})
					return
				}
			}
		}},
		{name: "self is every member", packets: true, world: func(w world) world { return w.says("autogroup:self", "autogroup:member") }},
		{name: "the internet is all there is", packets: true, world: func(w world) world { return w.says("autogroup:internet", "*") }},
		{name: "e-mail addresses name nobody", packets: true, world: func(w world) world { return w.says("@example.com", "@example.net") }},
	}
}

func TestBugsAreCaught(t *testing.T) {
	const worlds = 100
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			for seed := range uint64(worlds) {
				diff, err := new(tally).trial(randomWorld(seed), b)
				if err != nil {
					t.Fatalf("world %d: %v", seed, err)
				}
				if diff != "" {
					t.Logf("in world %d: %.200s", seed, diff)
					return
				}
			}
			t.Errorf("%d worlds do not tell", worlds)
		})
	}
}
