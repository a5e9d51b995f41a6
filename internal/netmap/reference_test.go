package netmap_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// reference evaluates a policy by the definition of the language alone: it parses the text
// itself, checks every rule for every packet and resolves names by checking every user and
// node. It shares no code with the code under test.
type reference struct {
	nodes  []*mesh.Node
	users  []*mesh.User
	groups map[string][]string
	hosts  map[string]string
	sets   map[string][]string
	rules  []statement
	// edges are the first addresses of all ranges in the text and the mesh, and the first
	// ones after them. Between two neighbouring edges no name distinguishes addresses.
	edges []netip.Addr
}

// statement is a rule of acls or of grants.
type statement struct {
	src []string
	dst []place
	via []string
	app map[string]any
}

// place is a destination with its services. Each service is a protocol, which may be empty,
// ":" and ports.
type place struct {
	name     string
	services []string
}

func newReference(w world) (*reference, error) {
	text := w.text
	if text == "" {
		text = "{}"
	}
	var doc struct {
		Groups map[string][]string
		Hosts  map[string]string
		IPSets map[string][]string
		ACLs   *[]struct {
			Proto    any
			Src, Dst []string
		}
		Grants *[]struct {
			Src, Dst, IP, Via []string
			App               map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	f := &reference{
		groups: doc.Groups, hosts: doc.Hosts, sets: doc.IPSets,
		users: slices.Collect(w.snapshot.Users.All()),
	}
	for n := range w.snapshot.Nodes.All() {
		if !n.NeedsApproval { // such a node is as if it did not exist
			f.nodes = append(f.nodes, n)
		}
	}
	if doc.ACLs == nil && doc.Grants == nil {
		f.rules = []statement{{src: []string{"*"}, dst: []place{{"*", []string{":*"}}}}}
	}
	if doc.ACLs != nil {
		for _, acl := range *doc.ACLs {
			rule := statement{src: acl.Src}
			protocol := ""
			if acl.Proto != nil {
				protocol = fmt.Sprint(acl.Proto)
			}
			for _, dst := range acl.Dst {
				colon := strings.LastIndex(dst, ":")
				rule.dst = append(rule.dst, place{dst[:colon], []string{protocol + dst[colon:]}})
			}
			f.rules = append(f.rules, rule)
		}
	}
	if doc.Grants != nil {
		for _, grant := range *doc.Grants {
			rule := statement{src: grant.Src, via: grant.Via, app: grant.App}
			var services []string
			for _, ip := range grant.IP {
				if !strings.Contains(ip, ":") {
					ip = ":" + ip
				}
				services = append(services, ip)
			}
			for _, dst := range grant.Dst {
				rule.dst = append(rule.dst, place{dst, services})
			}
			f.rules = append(f.rules, rule)
		}
	}
	f.findEdges()
	return f, nil
}

// allowed reports whether node at accepts a packet.
func (f *reference) allowed(s, d netip.Addr, at *mesh.Node, protocol int, port uint16) bool {
	if at.KeyExpired || at.NeedsApproval {
		return false
	}
	for _, rule := range f.rules {
		if !f.hasSource(rule, s) {
			continue
		}
		for _, dst := range rule.dst {
			if f.leads(rule, dst.name, s, d, at) && slices.ContainsFunc(dst.services, func(service string) bool { return serves(service, d, protocol, port) }) {
				return true
			}
		}
	}
	return false
}

// sees reports whether node is a peer of viewer: one of them, or a network behind it, may
// reach the other.
func (f *reference) sees(viewer, node *mesh.Node) bool {
	return viewer != node && !viewer.KeyExpired && !viewer.NeedsApproval && !node.NeedsApproval && (f.opens(viewer, node) || f.opens(node, viewer))
}

func (f *reference) opens(from, to *mesh.Node) bool {
	for _, rule := range f.rules {
		for _, s := range f.behind(from) {
			if !f.hasSource(rule, s) {
				continue
			}
			for _, d := range f.reachable(to) {
				for _, dst := range rule.dst {
					if s.Is4() == d.Is4() && f.leads(rule, dst.name, s, d, to) {
						return true
					}
				}
			}
		}
	}
	return false
}

// behind returns one source address of every kind that a node may have.
func (f *reference) behind(n *mesh.Node) []netip.Addr {
	addrs := n.Addrs()
	for _, edge := range f.edges {
		if routed(n, edge) {
			addrs = append(addrs, edge)
		}
	}
	return addrs
}

// reachable returns one destination address of every kind that a node may have.
func (f *reference) reachable(n *mesh.Node) []netip.Addr {
	addrs := f.behind(n)
	for _, somewhere := range []string{"1.1.1.1", "2606:4700::1111"} {
		if addr := netip.MustParseAddr(somewhere); exits(n, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func (f *reference) hasSource(rule statement, s netip.Addr) bool {
	return slices.ContainsFunc(rule.src, func(name string) bool { return f.source(name, s) })
}

func (f *reference) source(name string, s netip.Addr) bool {
	switch {
	case name == "*":
		return within("100.64.0.0/10", s) || within("fd7a:115c:a1e0::/48", s) ||
			slices.ContainsFunc(f.nodes, func(n *mesh.Node) bool { return routed(n, s) })
	case name == "autogroup:danger-all":
		return true
	case f.namesAddresses(name):
		return f.contains(name, s)
	}
	n := f.nodeAt(s)
	return n != nil && f.is(name, n)
}

// leads reports whether a destination of a rule covers d at a node, for a source that
// matches the rule.
func (f *reference) leads(rule statement, name string, s, d netip.Addr, at *mesh.Node) bool {
	own := slices.Contains(at.Addrs(), d)
	if len(rule.via) > 0 && (own || !slices.ContainsFunc(rule.via, func(tag string) bool { return slices.Contains(at.Tags, tag) })) {
		return false
	}
	switch {
	case name == "*":
		return own || routed(at, d) || exits(at, d)
	case name == "autogroup:internet":
		return exits(at, d)
	case name == "autogroup:self":
		asking := f.nodeAt(s)
		return own && asking != nil && len(asking.Tags) == 0 && len(at.Tags) == 0 && asking.Owner == at.Owner
	case f.namesAddresses(name):
		return f.contains(name, d) && (own || routed(at, d))
	}
	return own && f.is(name, at)
}

// is reports whether a name means a node.
func (f *reference) is(name string, n *mesh.Node) bool {
	switch {
	case name == "autogroup:member":
		return len(n.Tags) == 0
	case name == "autogroup:tagged":
		return len(n.Tags) > 0
	case strings.HasPrefix(name, "tag:"):
		return slices.Contains(n.Tags, name)
	case len(n.Tags) > 0:
		return false
	case name == "autogroup:admin":
		return slices.ContainsFunc(f.users, func(u *mesh.User) bool { return u.ID == n.Owner && u.Role == "admin" && !u.NeedsApproval })
	case strings.HasPrefix(name, "group:"):
		if members, defined := f.groups[name]; defined {
			return slices.ContainsFunc(members, func(member string) bool { return f.owns(member, n) })
		}
		return slices.ContainsFunc(f.users, func(u *mesh.User) bool {
			return u.ID == n.Owner && slices.Contains(u.Groups, strings.TrimPrefix(name, "group:"))
		})
	}
	return f.owns(name, n)
}

func (f *reference) owns(name string, n *mesh.Node) bool {
	name = strings.TrimSuffix(name, "@")
	return slices.ContainsFunc(f.users, func(u *mesh.User) bool {
		return u.ID == n.Owner && (strings.EqualFold(u.Name, name) || strings.EqualFold(u.Email, name))
	})
}

func (f *reference) nodeAt(addr netip.Addr) *mesh.Node {
	for _, n := range f.nodes {
		if n.IPv4 == addr || n.IPv6 == addr {
			return n
		}
	}
	return nil
}

func (f *reference) namesAddresses(name string) bool {
	_, isHost := f.hosts[name]
	return isHost || strings.HasPrefix(name, "ipset:") || isLiteral(name)
}

// contains reports whether a name for addresses includes one. The last entry of a set that
// matches an address applies.
func (f *reference) contains(name string, addr netip.Addr) bool {
	if host, ok := f.hosts[name]; ok {
		return within(host, addr)
	}
	if !strings.HasPrefix(name, "ipset:") {
		return within(name, addr)
	}
	in := false
	for _, entry := range f.sets[name] {
		operand, removes := strings.CutPrefix(entry, "remove ")
		if f.contains(strings.TrimPrefix(operand, "add "), addr) {
			in = !removes
		}
	}
	return in
}

// isLiteral reports whether a text is an address, a prefix or a range.
func isLiteral(text string) bool {
	text = strings.Trim(text, "[]")
	from, to, isRange := strings.Cut(text, "-")
	_, err := netip.ParsePrefix(text)
	return err == nil || isAddr(text) || isRange && isAddr(from) && isAddr(to)
}

func isAddr(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// within reports whether an address is inside a text that is an address, a prefix or a
// range.
func within(text string, addr netip.Addr) bool {
	first, last := bounds(text)
	return first.Is4() == addr.Is4() && first.Compare(addr) <= 0 && addr.Compare(last) <= 0
}

func bounds(text string) (first, last netip.Addr) {
	text = strings.Trim(text, "[]")
	if from, to, isRange := strings.Cut(text, "-"); isRange {
		return netip.MustParseAddr(from), netip.MustParseAddr(to)
	}
	if isAddr(text) {
		addr := netip.MustParseAddr(text)
		return addr, addr
	}
	prefix := netip.MustParsePrefix(text)
	b := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(b); bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ = netip.AddrFromSlice(b)
	return prefix.Addr(), last
}

func routed(n *mesh.Node, addr netip.Addr) bool {
	return slices.ContainsFunc(n.Routes, func(route netip.Prefix) bool { return route.Bits() > 0 && route.Contains(addr) })
}

func exits(n *mesh.Node, addr netip.Addr) bool {
	return slices.ContainsFunc(n.Routes, func(route netip.Prefix) bool { return route.Bits() == 0 && route.Contains(addr) }) && public(addr)
}

func private() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
	}
}

func public(addr netip.Addr) bool {
	if addr.Is6() {
		return within("2000::/3", addr)
	}
	return !slices.ContainsFunc(private(), func(text string) bool { return within(text, addr) })
}

// serves reports whether a service accepts a packet, provided that its rule matches d.
func serves(service string, d netip.Addr, protocol int, port uint16) bool {
	name, ports, _ := strings.Cut(service, ":")
	if d.Is4() && protocol == 1 || d.Is6() && protocol == 58 {
		return true // clients respond to echo requests if anything at the address is allowed
	}
	usual := name == "" && slices.Contains([]int{1, 6, 17, 58}, protocol)
	if !usual && !slices.Contains(protocolNames(protocol), strings.ToLower(name)) {
		return false
	}
	if protocol != 6 && protocol != 17 && protocol != 132 {
		return ports == "*" || ports == "0-65535"
	}
	for part := range strings.SplitSeq(ports, ",") {
		part = strings.TrimSpace(part)
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		if part == "*" || number(first) <= int(port) && int(port) <= number(last) {
			return true
		}
	}
	return false
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func protocolNames(protocol int) []string {
	names := map[int]string{1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 58: "ipv6-icmp", 132: "sctp"}
	return []string{strconv.Itoa(protocol), names[protocol]}
}

func (f *reference) findEdges() {
	texts := append(private(), "2000::/3", "100.64.0.0/10", "fd7a:115c:a1e0::/48")
	for _, n := range f.nodes {
		for _, addr := range n.Addrs() {
			texts = append(texts, addr.String())
		}
		for _, route := range n.RoutableIPs {
			texts = append(texts, route.String())
		}
	}
	for _, host := range f.hosts {
		texts = append(texts, host)
	}
	for _, set := range f.sets {
		for _, entry := range set {
			texts = append(texts, strings.TrimPrefix(strings.TrimPrefix(entry, "remove "), "add "))
		}
	}
	for _, rule := range f.rules {
		texts = append(texts, rule.src...)
		for _, dst := range rule.dst {
			texts = append(texts, dst.name)
		}
	}
	for _, text := range texts {
		if isLiteral(text) {
			first, last := bounds(text)
			f.edges = append(f.edges, first, last.Next())
		}
	}
	slices.SortFunc(f.edges, netip.Addr.Compare)
	f.edges = slices.DeleteFunc(slices.Compact(f.edges), func(a netip.Addr) bool { return !a.IsValid() })
}

// smallMesh is the mesh of the examples. Nodes 1 and 2 belong to alice, 3 to bob; 4 and 5
// are tagged, and alice added them. Node 5 is a router for 10.1.0.0/16 and an exit node,
// and announces 10.2.0.0/16 without approval. Node 6 belongs to carol and has expired. Node 7
// belongs to alice and needs approval.
func smallMesh() *mesh.Snapshot {
	alice, bob, carol := meshgen.User(1), meshgen.User(2), meshgen.User(3)
	alice.Name, bob.Name, carol.Name = "alice", "bob", "carol"
	bob.Email = "Robert@example.com"
	evs := []mesh.Event{mesh.UserPut{User: alice}, mesh.UserPut{User: bob}, mesh.UserPut{User: carol}}
	for i, owner := range []mesh.UserID{1, 1, 2, 1, 1, 3, 1} {
		n := meshgen.Node(mesh.NodeID(i+1), owner)
		switch n.ID {
		case 4:
			n.Owner, n.CreatedBy, n.Tags = 0, owner, []string{"tag:web"}
		case 5:
			n.Owner, n.CreatedBy, n.Tags = 0, owner, []string{"tag:router"}
			n.Routes = prefixesOf([]string{"10.1.0.0/16", "0.0.0.0/0", "::/0"})
			n.RoutableIPs = append(prefixesOf([]string{"10.2.0.0/16"}), n.Routes...)
		case 6:
			n.KeyExpired = true
		case 7:
			n.NeedsApproval = true
		}
		evs = append(evs, mesh.NodePut{Node: n})
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

func TestReferenceFollowsTheDefinition(t *testing.T) {
	const prelude = `"groups": {"group:dev": ["ROBERT@example.com"]}, "hosts": {"alice": "10.1.0.9", "nas": "100.64.0.4"},
		"ipsets": {"ipset:a": ["10.1.0.0/24", "remove 10.1.0.5-10.1.0.7", "add 10.1.0.6"], "ipset:b": ["ipset:a", "remove alice"]}, "tagOwners": {"tag:web": [], "tag:router": []}`
	acl := func(src, dst string) string {
		return fmt.Sprintf(`{%s, "acls": [{"action": "accept", "src": [%q], "dst": [%q]}]}`, prelude, src, dst)
	}
	for _, c := range []struct {
		rule, text, packets string // each packet is source, destination, where, protocol and port; ! means refused
	}{
		{"no policy allows all", "", "100.64.0.1 100.64.0.3 3 6 22; 100.64.0.3 10.1.7.7 5 17 9; ! 100.64.0.3 10.2.7.7 5 17 9; ! 8.8.8.8 100.64.0.3 3 6 22; 10.1.0.1 100.64.0.3 3 6 1; 100.64.0.1 8.8.8.8 5 6 1; ! 100.64.0.1 192.168.0.1 5 6 1"},
		{"no rules allow all", "{" + prelude + "}", "100.64.0.1 100.64.0.3 3 6 22"},
		{"an empty list allows nothing", `{"acls": []}`, "! 100.64.0.1 100.64.0.3 3 6 22; ! 100.64.0.1 100.64.0.3 3 1 0"},
		{"a host comes before a user", acl("alice", "*:*"), "10.1.0.9 100.64.0.3 3 6 1; ! 100.64.0.1 100.64.0.3 3 6 1"},
		{"a user has untagged nodes", acl("Alice@", "*:22"), "100.64.0.1 100.64.0.3 3 6 22; ! 100.64.0.1 100.64.0.3 3 6 23; ! 100.64.0.4 100.64.0.3 3 6 22; fd7a:115c:a1e0::2 fd7a:115c:a1e0::3 3 17 22"},
		{"groups hold people by e-mail", acl("group:dev", "tag:web:80-90,443"), "100.64.0.3 100.64.0.4 4 6 90; ! 100.64.0.3 100.64.0.4 4 6 91; 100.64.0.3 100.64.0.4 4 6 443; ! 100.64.0.3 100.64.0.5 5 6 80; ! 100.64.0.1 100.64.0.4 4 6 80"},
		{"ICMP needs any service", acl("bob", "nas:443"), "100.64.0.3 100.64.0.4 4 1 0; ! 100.64.0.3 100.64.0.4 4 47 0; ! 100.64.0.3 100.64.0.5 5 1 0; ! fd7a:115c:a1e0::3 fd7a:115c:a1e0::4 4 58 0"},
		{"people have nothing behind them", acl("*", "autogroup:tagged:*"), "100.64.0.3 100.64.0.5 5 6 1; ! 100.64.0.3 10.1.0.1 5 6 1; ! 100.64.0.3 8.8.8.8 5 6 1"},
		{"addresses are not behind exit nodes", acl("*", "0.0.0.0/0:*"), "100.64.0.3 100.64.0.5 5 6 1; 100.64.0.3 10.1.0.1 5 6 1; ! 100.64.0.3 8.8.8.8 5 6 1"},
		{"the internet is", acl("autogroup:member", "autogroup:internet:443"), "100.64.0.3 8.8.8.8 5 6 443; 100.64.0.3 100.63.255.255 5 6 443; ! 100.64.0.3 10.1.0.1 5 6 443; ! 100.64.0.4 8.8.8.8 5 6 443; fd7a:115c:a1e0::3 2000:: 5 17 443; ! fd7a:115c:a1e0::3 fd00::1 5 17 443"},
		{"self is the nodes of one owner", acl("autogroup:member", "autogroup:self:*"), "100.64.0.1 100.64.0.2 2 6 1; ! 100.64.0.1 100.64.0.3 3 6 1; ! 100.64.0.1 100.64.0.4 4 6 1; ! 100.64.0.4 100.64.0.5 5 6 1"},
		{"sets are built in order", acl("ipset:b", "ipset:a:*"), "10.1.0.6 10.1.0.9 5 6 1; ! 10.1.0.9 10.1.0.9 5 6 1; ! 10.1.0.6 10.1.0.5 5 6 1; ! 10.1.0.7 10.1.0.6 5 6 1; ! 10.1.0.6 10.1.0.9 3 6 1"},
		{"danger-all is everyone", acl("autogroup:danger-all", "bob:1"), "8.8.8.8 100.64.0.3 3 6 1; ! 8.8.8.8 100.64.0.3 3 132 1"},
		{"expired nodes accept nobody", acl("*", "*:*"), "! 100.64.0.1 100.64.0.6 6 6 1; 100.64.0.6 100.64.0.1 1 6 1"},
		{"unapproved nodes accept nobody", acl("*", "*:*"), "! 100.64.0.1 100.64.0.7 7 6 1"},
		{"unapproved nodes are nobody's", acl("alice@", "autogroup:member:*"), "! 100.64.0.7 100.64.0.3 3 6 1; ! 100.64.0.3 100.64.0.7 7 6 1; 100.64.0.1 100.64.0.3 3 6 1"},
		{"protocols", `{"acls": [{"action": "accept", "proto": 132, "src": ["*"], "dst": ["bob:1-9"]}, {"action": "accept", "proto": "GRE", "src": ["*"], "dst": ["bob:*"]}]}`, "100.64.0.1 100.64.0.3 3 132 9; ! 100.64.0.1 100.64.0.3 3 6 9; 100.64.0.1 100.64.0.3 3 47 0; ! 100.64.0.1 100.64.0.4 4 47 0"},
		{"via", `{"tagOwners": {"tag:router": [], "tag:web": []}, "grants": [{"src": ["*"], "dst": ["*"], "ip": ["udp:53", "80"], "via": ["tag:router"]}]}`, "100.64.0.1 10.1.0.1 5 17 53; ! 100.64.0.1 10.1.0.1 5 6 53; 100.64.0.1 8.8.8.8 5 6 80; ! 100.64.0.1 100.64.0.5 5 6 80; ! 100.64.0.1 100.64.0.3 3 6 80"},
		{"via others", `{"tagOwners": {"tag:router": [], "tag:web": []}, "grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"], "via": ["tag:web"]}]}`, "! 100.64.0.1 10.1.0.1 5 17 53"},
		{"capabilities let nothing in", `{"grants": [{"src": ["*"], "dst": ["*"], "app": {"example.com/a": []}}]}`, "! 100.64.0.1 100.64.0.3 3 6 1; ! 100.64.0.1 100.64.0.3 3 1 1"},
	} {
		w := world{snapshot: smallMesh(), text: c.text}
		f, err := newReference(w)
		if err != nil {
			t.Fatalf("%s: %v", c.rule, err)
		}
		for packet := range strings.SplitSeq(c.packets, "; ") {
			packet, refused := strings.CutPrefix(packet, "! ")
			part := strings.Fields(packet)
			at, _ := w.snapshot.Nodes.Get(mesh.NodeID(number(part[2])))
			if f.allowed(netip.MustParseAddr(part[0]), netip.MustParseAddr(part[1]), at, number(part[3]), uint16(number(part[4]))) == refused {
				t.Errorf("%s: %s is allowed: %t", c.rule, packet, refused)
			}
		}
	}
}

func TestReferenceKnowsWhoSeesWhom(t *testing.T) {
	const owners = `"tagOwners": {"tag:router": [], "tag:web": []}`
	for _, c := range []struct{ rule, text, pairs string }{
		{"all see all", "", "12 13 14 15 16 23 24 25 26 34 35 36 45 46 56"},
		{"either way", `{"acls": [{"src": ["bob"], "dst": ["carol:1"]}]}`, "36"},
		{"self", `{"acls": [{"src": ["*"], "dst": ["autogroup:self:1"]}]}`, "12"},
		{"what lies behind", `{"acls": [{"src": ["bob"], "dst": ["10.0.0.0/8:1"]}, {"src": ["10.1.7.0/24"], "dst": ["carol:1"]}]}`, "35 56"},
		{"not what is merely announced", `{"acls": [{"src": ["bob"], "dst": ["10.2.0.0/16:1"]}]}`, ""},
		{"the internet", `{"acls": [{"src": ["bob"], "dst": ["autogroup:internet:1"]}]}`, "35"},
		{"families apart", `{"acls": [{"src": ["100.64.0.1"], "dst": ["fd7a:115c:a1e0::3:1"]}]}`, ""},
		{"via", `{` + owners + `, "grants": [{"src": ["bob"], "dst": ["*"], "ip": ["1"], "via": ["tag:router", "tag:web"]}]}`, "35"},
		{"capabilities", `{"grants": [{"src": ["bob"], "dst": ["alice"], "app": {"example.com/a": []}}]}`, "13 23"},
		{"everyone may be somebody", `{"acls": [{"src": ["autogroup:danger-all"], "dst": ["carol:1"]}]}`, "16 26 36 46 56"},
	} {
		w := world{snapshot: smallMesh(), text: c.text}
		f, err := newReference(w)
		if err != nil {
			t.Fatalf("%s: %v", c.rule, err)
		}
		for a := range w.snapshot.Nodes.All() {
			for b := range w.snapshot.Nodes.All() {
				pair := fmt.Sprint(min(a.ID, b.ID)) + fmt.Sprint(max(a.ID, b.ID))
				want := slices.Contains(strings.Fields(c.pairs), pair) && a.ID != 6
				if f.sees(a, b) != want {
					t.Errorf("%s: %d sees %d: %t", c.rule, a.ID, b.ID, !want)
				}
			}
		}
	}
}
