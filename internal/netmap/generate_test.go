package netmap_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// world is a mesh with its policy, both generated from a seed.
type world struct {
	seed     uint64
	snapshot *mesh.Snapshot
	text     string // empty: no policy
}

// randomWorld generates a small mesh, and a policy that names objects of the mesh and some
// that do not exist.
func randomWorld(seed uint64) world {
	r := rand.New(rand.NewPCG(seed, 7))
	s := randomMesh(r)
	return world{seed, s, randomPolicy(r, s)}
}

// String returns everything that is needed to analyse a failure by hand.
func (w world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n%s\n", w.seed, w.text)
	for u := range w.snapshot.Users.All() {
		fmt.Fprintf(&b, "user %d %s %s %v\n", u.ID, u.Name, u.Email, u.Groups)
	}
	for n := range w.snapshot.Nodes.All() {
		fmt.Fprintf(&b, "node %d of %d, tags %v (created by %d), %v, announces %v, approved %v, expired %t, needs approval %t, capability %d\n",
			n.ID, n.Owner, n.Tags, n.CreatedBy, n.Addrs(), n.RoutableIPs, n.Routes, n.KeyExpired, n.NeedsApproval, n.CapVersion)
	}
	return b.String()
}

// capability is the capability that random policies grant to applications.
const capability = "example.com/cap/edit"

// relay is a capability that sources must answer with relayTarget.
const (
	relay       = "tailscale.com/cap/relay"
	relayTarget = "tailscale.com/cap/relay-target"
)

func pick[E any](r *rand.Rand, list []E) E { return list[r.IntN(len(list))] }

// some picks between least and most elements, without duplicates, in random order.
func some[E any](r *rand.Rand, list []E, least, most int) []E {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), least+r.IntN(most-least+1))]
}

// oneIn is true once in n times.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func userNames() []string {
	return []string{"alice", "Bob", "carol", "dave.k", "ERIN", "frank", "grace-h", "heidi", "ivan", "judy", "ken", "lena", "bob@example.com"}
}

// definedTags are in tagOwners. Nodes may have another tag, which policies cannot name.
func definedTags() []string { return []string{"tag:web", "tag:db", "tag:router", "tag:ci"} }

func routeTexts() []string {
	return []string{
		"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.128/25", "192.168.7.0/24", "172.20.0.0/16", "203.0.113.0/24", "198.51.100.4/32",
		"2001:db8:1::/48", "2001:db8:1:2::/64", "fd00:1::/64", "fd7a:115c:a1e0:b1a:0:7:a01:0/112",
	}
}

func prefixesOf(texts []string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func randomMesh(r *rand.Rand) *mesh.Snapshot {
	var evs []mesh.Event
	users := some(r, userNames(), 5, len(userNames()))
	for i, name := range users {
		u := meshgen.User(mesh.UserID(i + 1))
		u.Name = name
		if oneIn(r, 2) {
			u.Email = strings.ToLower(name) + "@example.com"
		}
		if oneIn(r, 2) {
			u.Groups = some(r, []string{"admins", "dev", "none", "ops", "qa"}, 1, 4)
			slices.Sort(u.Groups)
		}
		u.Role = pick(r, []mesh.Role{"", "", mesh.RoleOperator, mesh.RoleAdmin})
		evs = append(evs, mesh.UserPut{User: u})
	}
	for id := range mesh.NodeID(6 + r.IntN(15)) {
		evs = append(evs, mesh.NodePut{Node: randomNode(r, id+1, mesh.UserID(1+r.IntN(len(users))))})
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

func randomNode(r *rand.Rand, id mesh.NodeID, user mesh.UserID) *mesh.Node {
	n := meshgen.Node(id, user)
	if oneIn(r, 3) {
		n.Owner, n.CreatedBy = 0, user
		n.Tags = some(r, append(definedTags(), "tag:unnamed"), 1, 3)
		slices.Sort(n.Tags)
	}
	switch r.IntN(12) {
	case 0:
		n.IPv4 = netip.Addr{}
	case 1:
		n.IPv6 = netip.Addr{}
	}
	if oneIn(r, 3) {
		n.RoutableIPs = prefixesOf(some(r, routeTexts(), 1, 4))
	}
	switch r.IntN(10) {
	case 0:
		n.RoutableIPs = append(n.RoutableIPs, prefixesOf([]string{"0.0.0.0/0", "::/0"})...)
	case 1:
		n.RoutableIPs = append(n.RoutableIPs, prefixesOf(some(r, []string{"0.0.0.0/0", "::/0"}, 1, 1))...)
	}
	for _, route := range n.RoutableIPs {
		if !oneIn(r, 4) {
			n.Routes = append(n.Routes, route)
		}
	}
	n.KeyExpired = oneIn(r, 12)
	if n.NeedsApproval = oneIn(r, 12); n.NeedsApproval {
		n.Routes = nil
	}
	n.CapVersion = pick(r, []int{106, 108, 109, 130, 140})
	return n
}

// author generates a policy.
type author struct {
	*rand.Rand
	mesh   *mesh.Snapshot
	groups map[string][]string
	hosts  map[string]string
	sets   map[string][]string
}

func randomPolicy(r *rand.Rand, s *mesh.Snapshot) string {
	if oneIn(r, 30) {
		return ""
	}
	a := &author{Rand: r, mesh: s, groups: map[string][]string{}, hosts: map[string]string{}, sets: map[string][]string{}}
	for _, name := range []string{"group:admins", "group:dev", "group:none"}[:2+r.IntN(2)] {
		a.groups[name] = []string{}
		for range r.IntN(4) {
			a.groups[name] = append(a.groups[name], a.user())
		}
	}
	// The last one has the same name as a user, and takes precedence.
	for _, name := range some(r, []string{"nas", "office", "3d-printer.lan", "ken"}, 1, 4) {
		a.hosts[name] = strings.Trim(a.address(), "[]")
	}
	a.randomSets()
	owners := map[string][]string{}
	for _, tag := range definedTags() {
		owners[tag] = []string{}
	}
	doc := map[string]any{"groups": a.groups, "hosts": a.hosts, "ipsets": a.sets, "tagOwners": owners}
	if !oneIn(r, 8) {
		doc["acls"] = a.list(9, a.acl)
	}
	if !oneIn(r, 4) {
		doc["grants"] = a.list(8, a.grant)
	}
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(err) // maps of strings can always be encoded
	}
	return string(text)
}

func (a *author) list(most int, one func() map[string]any) []map[string]any {
	list := []map[string]any{}
	for range a.IntN(most) {
		list = append(list, one())
	}
	return list
}

// randomSets generates sets, each of which may contain those before it.
func (a *author) randomSets() {
	var before []string
	for _, name := range []string{"ipset:one", "ipset:two", "ipset:three", "ipset:empty"} {
		entries := []string{}
		for range a.IntN(5) {
			operand := strings.Trim(a.address(), "[]")
			switch a.IntN(6) {
			case 0:
				first := netip.AddrFrom4([4]byte{100, 64, 0, byte(1 + a.IntN(9))})
				operand = fmt.Sprintf("%s-100.64.0.%d", first, 10+a.IntN(12))
			case 1:
				operand = "10.1.1.200-10.1.2.17"
			case 2:
				operand = pick(a.Rand, append(keys(a.hosts), before...))
			}
			entries = append(entries, pick(a.Rand, []string{"", "add ", "remove "})+operand)
		}
		if name == "ipset:empty" {
			entries = entries[:0]
		}
		a.sets[name], before = entries, append(before, name)
	}
}

// keys returns the sorted keys, so that results do not depend on the order of maps.
func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// user returns a user in any spelling, sometimes one that does not exist.
func (a *author) user() string {
	name := pick(a.Rand, userNames())
	return pick(a.Rand, []string{name, strings.ToUpper(name), name + "@", strings.ToLower(name) + "@example.com"})
}

// group returns a group that the policy defines, or that users may have at the identity provider.
func (a *author) group() string {
	return pick(a.Rand, append(keys(a.groups), "group:none", "group:ops", "group:qa"))
}

// address returns an address or a prefix: of nodes, of routes, larger or smaller than
// these, or unrelated.
func (a *author) address() string {
	switch a.IntN(4) {
	case 0:
		var all []netip.Addr
		for n := range a.mesh.Nodes.All() {
			all = append(all, n.Addrs()...)
		}
		return pick(a.Rand, all).String()
	case 1:
		return pick(a.Rand, routeTexts())
	case 2:
		return pick(a.Rand, []string{
			"100.64.0.0/28", "100.64.0.8/29", "100.64.0.4/31", "100.64.0.0/10", "fd7a:115c:a1e0::/48", "fd7a:115c:a1e0::8/125", "fd7a:115c:a1e0::/124",
			"[fd7a:115c:a1e0::3]", "[fd7a:115c:a1e0::/122]",
		})
	}
	return pick(a.Rand, []string{
		"10.1.2.64/26", "10.1.2.130", "10.0.0.0/7", "192.168.0.0/16", "192.168.7.9", "0.0.0.0/0", "::/0", "203.0.113.128/25", "198.51.100.0/24",
		"198.18.0.0/15", "8.8.8.8", "2001:db8::/32", "2001:db8:1:2::/80", "fd00:1::1", "[2001:db8:1:2::7]", "2606:4700::/32",
	})
}

func (a *author) addresses() string {
	switch a.IntN(4) {
	case 0:
		return pick(a.Rand, keys(a.hosts))
	case 1:
		return pick(a.Rand, keys(a.sets))
	}
	return a.address()
}

func (a *author) person() string {
	switch a.IntN(8) {
	case 0, 1:
		return a.group()
	case 2:
		return "autogroup:admin"
	case 3:
		return "autogroup:member"
	}
	return a.userAsTarget()
}

// userAsTarget returns a user whose name is not also that of a host.
func (a *author) userAsTarget() string {
	name := a.user()
	if _, isHost := a.hosts[name]; isHost {
		return name + "@"
	}
	return name
}

func (a *author) node() string {
	switch a.IntN(5) {
	case 0:
		return "autogroup:tagged"
	case 1, 2:
		return pick(a.Rand, definedTags())
	}
	return a.person()
}

func (a *author) source() string {
	switch a.IntN(12) {
	case 0:
		return "*"
	case 1:
		return "autogroup:danger-all"
	case 2, 3, 4, 5:
		return a.addresses()
	}
	return a.node()
}

func (a *author) destination() string {
	switch a.IntN(12) {
	case 0:
		return "*"
	case 1:
		return "autogroup:internet"
	case 2, 3, 4, 5, 6:
		return a.addresses()
	}
	return a.node()
}

// times returns up to most strings, nearly always at least one.
func (a *author) times(most int, one func() string) []string {
	list := []string{}
	if oneIn(a.Rand, 40) {
		return list
	}
	for range 1 + a.IntN(most) {
		list = append(list, one())
	}
	return list
}

func (a *author) port() string {
	return strconv.Itoa(pick(a.Rand, []int{0, 1, 22, 53, 80, 81, 443, 8000, 8080, 32768, 65534, 65535}))
}

func (a *author) portRange() string {
	return pick(a.Rand, []string{"0-79", "80-90", "81-442", "22-22", "1000-2000", "8000-8100", "443-65535", "65000-65535", "0-65535"})
}

func (a *author) ports() string {
	switch a.IntN(6) {
	case 0, 1:
		return "*"
	case 2:
		return a.port()
	}
	list := []string{}
	for range 1 + a.IntN(3) {
		list = append(list, pick(a.Rand, []string{a.port(), a.portRange()}))
	}
	return strings.Join(list, pick(a.Rand, []string{",", ", "}))
}

func (a *author) acl() map[string]any {
	rule := map[string]any{"action": "accept"}
	ports := a.ports
	switch a.IntN(5) {
	case 0:
		rule["proto"] = pick(a.Rand, []any{"tcp", "udp", "UDP", "sctp", 6, "17", 132})
	case 1:
		rule["proto"] = pick(a.Rand, []any{"icmp", "ipv6-icmp", "gre", 47, "50", "esp"})
		ports = func() string { return pick(a.Rand, []string{"*", "0-65535"}) }
	}
	destination := a.destination
	rule["src"] = a.times(3, a.source)
	if oneIn(a.Rand, 6) {
		rule["src"] = a.times(2, func() string { return pick(a.Rand, []string{a.person(), a.person(), "*"}) })
		destination = func() string { return pick(a.Rand, []string{"autogroup:self", "autogroup:self", a.destination()}) }
	}
	rule["dst"] = a.times(3, func() string { return destination() + ":" + ports() })
	return rule
}

func (a *author) service() string {
	switch a.IntN(4) {
	case 0:
		return pick(a.Rand, []string{"tcp", "udp", "sctp", "6", "17"}) + ":" + a.ports()
	case 1:
		return pick(a.Rand, []string{"icmp", "ipv6-icmp", "gre", "47", "esp"}) + ":*"
	}
	return a.ports()
}

func (a *author) grant() map[string]any {
	rule := map[string]any{"src": a.times(3, a.source), "dst": a.times(3, a.destination)}
	services := func() (list []string) {
		for range 1 + a.IntN(3) {
			list = append(list, a.service())
		}
		return list
	}
	// Only nodes have capabilities.
	app := func() map[string]any {
		rule["dst"] = a.times(3, func() string { return pick(a.Rand, []string{a.node(), a.node(), a.addresses(), "*"}) })
		app := map[string]any{capability: []any{map[string]any{"rows": []int{1, 2}}, "all"}}
		if oneIn(a.Rand, 2) {
			app[relay] = []any{}
		}
		return app
	}
	switch a.IntN(7) {
	case 0:
		rule["app"] = app()
	case 1:
		rule["app"], rule["ip"] = app(), services()
	case 2:
		rule["src"] = a.times(2, a.person)
		rule["dst"] = a.times(2, func() string { return pick(a.Rand, []string{"autogroup:self", a.destination()}) })
		rule["ip"] = services()
	case 3, 4:
		rule["via"], rule["ip"] = some(a.Rand, definedTags(), 1, 2), services()
	default:
		rule["ip"] = services()
	}
	return rule
}

func TestRandomPoliciesParseAndUseTheWholeLanguage(t *testing.T) {
	missing := []string{
		`"acls": []`, `"grants": []`, `"proto": 47`, `"proto": "UDP"`, `"via"`, `"app"`, `"tcp:`, `"gre:*"`, `"*"`, `"ipset:`, `"remove `, `-100.64.0.`,
		`"group:admins"`, `"tag:web"`, `"tag:web:`, `"nas"`, `"nas:`, `"alice"`, `"ALICE"`, `"alice@"`, `"alice@example.com"`, `"ken@"`,
		`"autogroup:member"`, `"autogroup:admin"`, `"autogroup:tagged"`, `"autogroup:danger-all"`, `"autogroup:self:`, `"autogroup:self"`, `"autogroup:internet:`, `"autogroup:internet"`,
		`"[fd7a:115c:a1e0::3]`, `"0.0.0.0/0"`, `"::/0:`, `:22-22`, `:0-65535`,
	}
	none := 0
	for seed := range uint64(2000) {
		w := randomWorld(seed)
		if w.text == "" {
			none++
			continue
		}
		if _, problems := lang.Parse([]byte(w.text)); len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, w)
		}
		missing = slices.DeleteFunc(missing, func(part string) bool { return strings.Contains(w.text, part) })
	}
	if len(missing) > 0 || none == 0 {
		t.Fatalf("never drawn: %q, no policy %d times", missing, none)
	}
}
