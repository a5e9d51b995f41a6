package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Detail is the level of detail of an AccessMap.
type Detail string

// The levels of detail.
const (
	ByGroups Detail = "groups" // groups, users that rules name, all other users, tags
	ByUsers  Detail = "users"  // users, tags
	ByNodes  Detail = "nodes"
)

// OtherUsers is the principal of users that no group and no rule names.
const OtherUsers = "other users"

// Internet is the principal of everything behind exit nodes.
const Internet = "autogroup:internet"

// MapQuestion selects what an AccessMap shows. From and To are names that ParseEnd
// accepts, routes, autogroup:internet or OtherUsers. An empty list means everyone,
// divided as By says. ByNodes also divides principals that are named.
type MapQuestion struct {
	From, To []string
	By       Detail
}

// PrincipalKind is the kind of a principal.
type PrincipalKind string

// The kinds of principal.
const (
	KindGroup    PrincipalKind = "group"
	KindUser     PrincipalKind = "user"
	KindOthers   PrincipalKind = "others"
	KindTag      PrincipalKind = "tag"
	KindNode     PrincipalKind = "node"
	KindRoute    PrincipalKind = "route"
	KindInternet PrincipalKind = "internet"
)

// Principal is someone or something that rules name, with its number of nodes. The
// nodes of a route are its routers.
type Principal struct {
	Kind                   PrincipalKind
	Name                   string
	User                   mesh.UserID // set if Kind is KindUser and the user exists
	Node                   mesh.NodeID // set if Kind is KindNode
	Nodes, Online, Expired int
}

// axis holds the principals on one side of a map. A node may belong to several.
type axis struct {
	all      []Principal
	more     int
	places   map[string]int // by kind and name
	nodes    bool           // whether some are single nodes
	named    bool           // whether they were asked for by name
	imagined map[int]bool   // users without nodes: each counts as one node
	routes   map[int][]netip.Prefix
}

func (a *axis) add(p Principal) int {
	key := string(p.Kind) + " " + p.Name
	i, ok := a.places[key]
	if !ok {
		if i = len(a.all); i >= maxAxis {
			a.more++
			return -1
		}
		a.places[key], a.all = i, append(a.all, p)
	}
	a.nodes = a.nodes || p.Kind == KindNode
	return i
}

func (a *axis) find(list []int, kind PrincipalKind, name string) []int {
	if i, ok := a.places[string(kind)+" "+name]; ok && !slices.Contains(list, i) {
		list = append(list, i)
	}
	return list
}

func (a *axis) count(n *mesh.Node, members []int) {
	for _, i := range members {
		p := &a.all[i]
		p.Nodes++
		if n.Presence.Online {
			p.Online++
		}
		if n.CutOff() {
			p.Expired++
		}
	}
}

// weight returns how many nodes a principal counts as.
func (a *axis) weight(i int) int {
	if a.routes[i] != nil || a.imagined[i] {
		return 1
	}
	return a.all[i].Nodes - a.all[i].Expired
}

// collectNames collects the users that groups and rules name, before or after.
func (s *mapBuilder) collectNames() {
	s.groupsOf, s.named = map[string][]string{}, map[string]bool{}
	for _, side := range []*evaluator{s.before, s.after} {
		for group, names := range side.groups {
			for _, name := range names {
				s.noteGroup(name, group)
			}
		}
		s.noteProvided(side)
		for i := range side.rules {
			for _, t := range side.rules[i].Src {
				s.noteUser(t)
			}
			for _, d := range side.rules[i].Dst {
				s.noteUser(d.Target)
			}
		}
	}
}

// noteProvided remembers the groups of the identity provider that a policy uses.
func (s *mapBuilder) noteProvided(side *evaluator) {
	if side.Doc == nil || len(side.Doc.Provided) == 0 {
		return
	}
	for u := range side.Users.All() {
		for _, name := range u.Groups {
			if _, used := side.Doc.Provided[lang.PrefixGroup+name]; used {
				s.noteGroup(mesh.FoldName(u.Name), lang.PrefixGroup+name)
			}
		}
	}
}

func (s *mapBuilder) noteGroup(user, group string) {
	if !slices.Contains(s.groupsOf[user], group) {
		s.groupsOf[user] = append(s.groupsOf[user], group)
	}
}

// noteUser remembers the user that a rule names.
func (s *mapBuilder) noteUser(t lang.Target) {
	if t.Kind == lang.User {
		s.named[t.Name] = true
	}
}

// isOther reports whether a user is one of OtherUsers.
func (s *mapBuilder) isOther(u *mesh.User) bool {
	return !slices.ContainsFunc(lang.NamesOf(u), func(name string) bool { return s.named[name] || len(s.groupsOf[name]) > 0 })
}

// axis returns the requested principals. The internet can only be a destination.
func (s *mapBuilder) axis(names []string, by Detail, reached bool) (*axis, error) {
	a := &axis{places: map[string]int{}, routes: map[int][]netip.Prefix{}, imagined: map[int]bool{}}
	if len(names) == 0 {
		s.everyone(a, by, reached)
		return a, nil
	}
	a.named = true
	for _, name := range names {
		if err := s.choose(a, name, by); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (s *mapBuilder) everyone(a *axis, by Detail, reached bool) {
	if by == ByNodes {
		s.addNodes(a, func(*mesh.Node) bool { return true })
	} else {
		s.addPeople(a, by)
		tags := map[string]bool{}
		for n := range s.after.Nodes.All() {
			for _, tag := range n.Tags {
				tags[tag] = true
			}
		}
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			a.add(Principal{Kind: KindTag, Name: tag})
		}
	}
	for _, p := range s.after.Routes() {
		s.addRoute(a, p)
	}
	for n := range s.after.Nodes.All() {
		if reached && slices.ContainsFunc(n.Routes, mesh.Exit) {
			s.addInternet(a)
			break
		}
	}
}

// addPeople adds users who have nodes without tags, and their groups.
func (s *mapBuilder) addPeople(a *axis, by Detail) {
	var users []*mesh.User
	groups, others := map[string]bool{}, false
	for u := range s.after.Users.All() {
		if s.after.Nodes.OwnedCount(u.ID) == 0 {
			continue
		}
		names := lang.NamesOf(u)
		for _, name := range names {
			for _, group := range s.groupsOf[name] {
				groups[group] = true
			}
		}
		if by == ByUsers || slices.ContainsFunc(names, func(name string) bool { return s.named[name] }) {
			users = append(users, u)
		}
		others = others || s.isOther(u)
	}
	slices.SortFunc(users, func(a, b *mesh.User) int { return cmp.Compare(a.Name, b.Name) })
	if by != ByUsers {
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			a.add(Principal{Kind: KindGroup, Name: group})
		}
	}
	for _, u := range users {
		a.add(Principal{Kind: KindUser, Name: u.Name, User: u.ID})
	}
	if others && by != ByUsers {
		a.add(Principal{Kind: KindOthers, Name: OtherUsers})
	}
}

func (s *mapBuilder) addNodes(a *axis, chosen func(*mesh.Node) bool) {
	var nodes []*mesh.Node
	for n := range s.after.Nodes.All() {
		if chosen(n) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *mesh.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		a.add(Principal{Kind: KindNode, Name: n.Name, Node: n.ID})
	}
}

func (s *mapBuilder) addRoute(a *axis, p netip.Prefix) {
	if i := a.add(Principal{Kind: KindRoute, Name: p.String()}); i >= 0 {
		a.routes[i] = []netip.Prefix{p}
	}
}

func (s *mapBuilder) addInternet(a *axis) {
	if i := a.add(Principal{Kind: KindInternet, Name: Internet}); i >= 0 {
		a.routes[i] = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	}
}

// choose adds the principal with the given name.
func (s *mapBuilder) choose(a *axis, name string, by Detail) error {
	if p, err := netip.ParsePrefix(name); err == nil {
		if !slices.Contains(s.after.Routes(), p) {
			return fmt.Errorf("%w %q: no approved route has this prefix", ErrNoSuchEnd, name)
		}
		s.addRoute(a, p)
		return nil
	}
	switch {
	case name == Internet:
		s.addInternet(a)
		return nil
	case name == OtherUsers && by == ByNodes:
		s.addNodes(a, func(n *mesh.Node) bool { u := s.after.owner(n); return u != nil && s.isOther(u) })
		return nil
	case name == OtherUsers:
		a.add(Principal{Kind: KindOthers, Name: OtherUsers})
		return nil
	}
	e, err := s.after.parseEnd(name)
	if err != nil {
		was, other := s.before.parseEnd(name)
		if other != nil {
			return err
		}
		e = was
	}
	n, isNode := s.after.Nodes.Get(e.Node)
	switch {
	case isNode:
		a.add(Principal{Kind: KindNode, Name: n.Name, Node: n.ID})
	case e.Addr.IsValid():
		return fmt.Errorf("%w %q: no node has this address; use a node, or a route such as 10.1.0.0/16", ErrNoSuchEnd, e.Addr)
	case by == ByNodes:
		s.addNodes(a, func(n *mesh.Node) bool { return s.before.isPartOf(n, e) || s.after.isPartOf(n, e) })
	case e.Group != "":
		a.add(Principal{Kind: KindGroup, Name: e.Group})
	case e.Tag != "":
		a.add(Principal{Kind: KindTag, Name: e.Tag})
	default:
		p := Principal{Kind: KindUser, Name: e.User}
		for u := range s.after.Users.All() {
			if slices.Contains(lang.NamesOf(u), e.User) {
				p.Name, p.User = u.Name, u.ID
			}
		}
		a.add(p)
	}
	return nil
}

// membership holds the principals that a node belongs to, on both sides of a map.
type membership struct{ from, to []int }

// memberships returns a function that finds the membership of a node. Nodes of the same
// user, or with the same tags, share a membership unless there are principals for single
// nodes.
func (s *mapBuilder) memberships() func(*mesh.Node) *membership {
	people, tagged := map[mesh.UserID]*membership{}, map[string]*membership{}
	shared := func(n *mesh.Node) *membership {
		tags := strings.Join(n.Tags, " ")
		m := tagged[tags]
		if !n.Tagged() {
			m = people[n.Owner]
		}
		if m == nil {
			m = &membership{s.membersOf(s.from, n), s.membersOf(s.to, n)}
			if n.Tagged() {
				tagged[tags] = m
			} else {
				people[n.Owner] = m
			}
		}
		return m
	}
	if !s.from.nodes && !s.to.nodes {
		return shared
	}
	return func(n *mesh.Node) *membership {
		m := shared(n)
		from, to := s.from.find(slices.Clip(m.from), KindNode, n.Name), s.to.find(slices.Clip(m.to), KindNode, n.Name)
		if len(from) == len(m.from) && len(to) == len(m.to) {
			return m
		}
		return &membership{from, to}
	}
}

// membersOf returns the principals that a node belongs to by its tags or owner.
func (s *mapBuilder) membersOf(a *axis, n *mesh.Node) (list []int) {
	for _, tag := range n.Tags {
		list = a.find(list, KindTag, tag)
	}
	u := s.after.owner(n)
	if n.Tagged() || u == nil {
		return list
	}
	for _, name := range lang.NamesOf(u) {
		for _, group := range s.groupsOf[name] {
			list = a.find(list, KindGroup, group)
		}
	}
	for _, name := range u.Groups { // also those that no rule names, if they were asked for
		if _, defined := s.after.groups[lang.PrefixGroup+name]; !defined {
			list = a.find(list, KindGroup, lang.PrefixGroup+name)
		}
	}
	list = a.find(list, KindUser, u.Name)
	if s.isOther(u) {
		list = a.find(list, KindOthers, OtherUsers)
	}
	return list
}

// sortRoutes adds buckets for the networks behind routers.
func (s *mapBuilder) sortRoutes() {
	for n := range s.after.Nodes.All() {
		for _, a := range []*axis{s.from, s.to} {
			for i, prefixes := range a.routes {
				if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return slices.Contains(n.Routes, p) }) {
					a.count(n, []int{i})
				}
			}
		}
	}
	nobody := &classRules{}
	for _, i := range slices.Sorted(maps.Keys(s.from.routes)) {
		p := &mapBucket{
			route: s.from.all[i].Name, from: []share{{i, 1}},
			dstBefore: nobody, dstAfter: nobody, srcBefore: nobody, srcAfter: nobody,
		}
		if s.from.all[i].Kind == KindRoute {
			p.srcBefore, p.srcAfter = s.before.sourceRules(s.from.routes[i][0]), s.after.sourceRules(s.from.routes[i][0])
		}
		s.buckets = append(s.buckets, p)
	}
	before, after := s.before.routedOffers(), s.after.routedOffers()
	for _, i := range slices.Sorted(maps.Keys(s.to.routes)) {
		s.buckets = append(s.buckets, &mapBucket{
			route: s.to.all[i].Name, to: []share{{i, 1}}, srcBefore: nobody, srcAfter: nobody,
			dstBefore: s.before.destinationRules(s.to.routes[i], before), dstAfter: s.after.destinationRules(s.to.routes[i], after),
		})
	}
}

// sourceRules returns the rules that apply to addresses behind routers as sources.
func (s *evaluator) sourceRules(p netip.Prefix) *classRules {
	k, family := &classRules{}, 0
	if p.Addr().Is6() {
		family = 1
	}
	k.src[family] = s.Rules().SourcesAt(p)
	k.few[family] = k.src[family].Few()
	return k
}

// routedOffer is a network behind a router, with the offer of a rule that gives access to
// it.
type routedOffer struct {
	offer
	place  netip.Prefix
	routes []netip.Prefix // routes of the router
}

// routedOffers returns all networks behind routers. Routers of one class with the same
// routes are processed once.
func (s *evaluator) routedOffers() (list []routedOffer) {
	seen := map[string]bool{}
	for n := range s.Nodes.All() {
		if len(n.Routes) == 0 {
			continue
		}
		c := s.Class(n)
		key := fmt.Sprint(c, n.Routes)
		if seen[key] {
			continue
		}
		seen[key] = true
		s.behind(c, n, func(rule, access int, places []netip.Prefix) {
			for _, p := range places {
				list = append(list, routedOffer{offer{rule, access}, p, n.Routes})
			}
		})
	}
	slices.SortStableFunc(list, func(a, b routedOffer) int { return a.rule - b.rule })
	return list
}

// destinationRules returns the rules that apply to routes as destinations.
func (s *evaluator) destinationRules(prefixes []netip.Prefix, all []routedOffer) *classRules {
	k := &classRules{}
	for _, l := range all {
		if !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return slices.Contains(l.routes, p) && holds(p, l.place) }) {
			continue
		}
		family := 0
		if l.place.Addr().Is6() {
			family = 1
		}
		k.dst[family] = s.addOffer(k.dst[family], l.offer)
	}
	return k
}
