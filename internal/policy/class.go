package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Class identifies a set of nodes that the policy does not distinguish: they see the same
// peers and accept traffic from the same nodes, so their maps are rendered once. The
// numbers are assigned by a Rules and have no meaning outside it.
type Class int32

// Nobody is the class of nodes that see no peers and are nobody's peers: those that need
// approval, those whose owner is suspended, and, as viewers only, those whose key has
// expired.
const Nobody Class = 0

// traits holds the properties that determine the class of a node.
type traits struct {
	own    bitset.Set // the selectors that match the node itself
	behind bitset.Set // the selectors that match what is behind its routes
	// addrs holds the families of its addresses, routes those of its subnet routes, and
	// exit those of its exit routes.
	addrs, routes, exit families
}

// families is a set of address families.
type families struct{ four, six bool }

func (f families) meets(g families) bool { return f.four && g.four || f.six && g.six }

func (f families) any() bool { return f.four || f.six }

func (f *families) add(a netip.Addr) {
	if a.Is4() {
		f.four = true
	} else {
		f.six = true
	}
}

func (f families) key() byte {
	var k byte
	if f.four {
		k++
	}
	if f.six {
		k += 2
	}
	return k
}

// ruleSets holds sets of rules by address family. Once they are complete, small ones are
// also kept as lists.
type ruleSets struct {
	four, six       bitset.Set
	fewFour, fewSix []int
}

func (r *ruleSets) complete() { r.fewFour, r.fewSix = r.four.Few(), r.six.Few() }

func (r *ruleSets) addAll(rules, but bitset.Set, f families) {
	if f.four {
		r.four.AddAll(rules, but)
	}
	if f.six {
		r.six.AddAll(rules, but)
	}
}

// any returns the rules that apply to either family.
func (r ruleSets) any() (rules bitset.Set) {
	rules.AddAll(r.four, nil)
	rules.AddAll(r.six, nil)
	return rules
}

func (r *ruleSets) meets(s *ruleSets) bool {
	return meet(r.four, s.four, r.fewFour, s.fewFour) || meet(r.six, s.six, r.fewSix, s.fewSix)
}

// meet reports whether two sets share an element. fewA and fewB are their elements as
// lists, or nil.
func meet(a, b bitset.Set, fewA, fewB []int) bool {
	if fewA != nil {
		return slices.ContainsFunc(fewA, b.Has)
	}
	if fewB != nil {
		return slices.ContainsFunc(fewB, a.Has)
	}
	return a.Meets(b)
}

// classInfo describes the nodes of a class.
type classInfo struct {
	traits
	src, dst ruleSets
	self     families // families in which it is a source of rules with autogroup:self
	marks    []string
	attrs    map[string][]json.RawMessage
	// These describe the inbound rules. marked: some rule identifies sources by marks.
	// listed: some rule must list the addresses of such sources. ownListed: some rule
	// must list the addresses of the owner's nodes. anyone: some rule accepts everyone.
	marked, listed, ownListed, anyone bool
	steered                           bool // whether it is a source of rules with via
	// shells means that some SSH rule applies to the node, shellNodes that one of them lists
	// tagged nodes, shellOwn that one depends on the owner of the node.
	shells, shellNodes, shellOwn bool

	inbound, mirrored func() []Inbound
	groups            func() []int // selectors of the groups that are sources of its rules, by name
	visible           atomic.Pointer[visibleClasses]
}

// visibleClasses records which of the first n classes a class sees.
type visibleClasses struct {
	n    int
	seen bitset.Set
}

// traitsOf returns the traits of a node; owner is nil for a tagged node.
func (c *Rules) traitsOf(n *mesh.Node, owner *mesh.User) traits {
	var t traits
	t.own.AddList(c.all)
	switch {
	case n.Tagged():
		t.own.AddList(c.tagged)
		for _, tag := range n.Tags {
			t.own.AddList(c.byTag[tag])
		}
	case owner != nil:
		t.own.AddList(c.member)
		c.addUser(&t.own, owner)
	}
	for _, a := range n.Addrs() {
		t.addrs.add(a)
		t.own.AddList(c.covering(netip.PrefixFrom(a, a.BitLen())))
	}
	for _, p := range n.Routes {
		if p.Bits() == 0 {
			t.exit.add(p.Addr())
			continue
		}
		t.routes.add(p.Addr())
		t.behind.AddList(c.covering(p))
		t.behind.AddList(c.within(p))
	}
	if t.routes.any() {
		t.behind.AddList(c.all)
	}
	if t.exit.any() {
		t.behind.AddList(c.all)
		t.behind.AddList(c.internet)
	}
	return t
}

// addUser adds the selectors that match a user by name, e-mail address, group or role.
func (c *Rules) addUser(set *bitset.Set, u *mesh.User) {
	for _, name := range lang.NamesOf(u) {
		set.AddList(c.byUser[name])
	}
	for _, group := range u.Groups {
		set.AddList(c.byGroup[group])
	}
	if u.IsAssignedAdmin() {
		set.AddList(c.admin)
	}
}

// covering returns the selectors with a prefix that contains all of p.
func (c *Rules) covering(p netip.Prefix) (list []int) {
	lengths := c.lengths4
	if p.Addr().Is6() {
		lengths = c.lengths6
	}
	for _, length := range lengths {
		if length > p.Bits() {
			break
		}
		if wider, err := p.Addr().Prefix(length); err == nil {
			list = append(list, c.byPrefix[wider]...)
		}
	}
	return list
}

// within returns the selectors with a prefix that is part of p.
func (c *Rules) within(p netip.Prefix) (list []int) {
	for narrower, selectors := range c.byPrefix {
		if narrower.Bits() > p.Bits() && p.Contains(narrower.Addr()) {
			list = append(list, selectors...)
		}
	}
	return list
}

// classOf returns the class of a node. It creates the class if no earlier node had the
// same traits.
func (c *Rules) classOf(n *mesh.Node, owner *mesh.User) Class {
	if n.NeedsApproval || n.Suspended() {
		return Nobody
	}
	t := c.traitsOf(n, owner)
	key := string([]byte{t.addrs.key(), t.routes.key(), t.exit.key()}) + t.own.Key() + "/" + t.behind.Key()
	c.mu.Lock()
	defer c.mu.Unlock()
	if class, ok := c.known[key]; ok {
		return class
	}
	classes := append(*c.classes.Load(), c.newClass(t)) // readers do not look beyond the length that was stored
	c.classes.Store(&classes)
	class := Class(len(classes) - 1)
	c.known[key] = class
	return class
}

func (c *Rules) newClass(t traits) *classInfo {
	i := &classInfo{traits: t}
	for s := range t.own.All() {
		sel := &c.selectors[s]
		i.src.addAll(sel.src, nil, t.familiesOf(sel, t.addrs))
		i.dst.addAll(sel.dst, c.via, t.familiesOf(sel, t.addrs))
		if sel.mark != "" {
			i.marks = append(i.marks, sel.mark)
		}
	}
	slices.Sort(i.marks)
	elsewhere := c.excludedByVia(t.own)
	for s := range t.behind.All() {
		sel := &c.selectors[s]
		i.src.addAll(sel.src, nil, t.familiesOf(sel, t.routes))
		i.dst.addAll(sel.dst, elsewhere, t.beyond(sel))
	}
	i.src.complete()
	i.dst.complete()
	i.self = families{i.src.four.Meets(c.self) && t.addrs.four, i.src.six.Meets(c.self) && t.addrs.six}
	i.steered = i.src.four.Meets(c.via) || i.src.six.Meets(c.via)
	i.attrs = c.attributesOf(t.own)
	i.inbound = sync.OnceValue(func() []Inbound { return c.inboundOf(i) })
	i.groups = sync.OnceValue(func() []int { return c.sourceGroups(i) })
	i.mirrored = sync.OnceValue(func() []Inbound { return c.mirroredOf(i) })
	c.noteSources(i)
	c.noteShells(i)
	return i
}

// familiesOf returns the families in which a selector applies: the family of its
// addresses if it is a selector of addresses, and otherwise the given ones.
func (t *traits) familiesOf(s *selector, otherwise families) families {
	if s.target.Kind == lang.Addresses {
		return families{!s.six, s.six}
	}
	return otherwise
}

// beyond returns the families in which a selector is a destination behind a node.
func (t *traits) beyond(s *selector) families {
	if s.target.Kind == lang.Any {
		return families{t.routes.four || t.exit.four, t.routes.six || t.exit.six}
	}
	if s.target.Kind == lang.Internet {
		return t.exit
	}
	return t.familiesOf(s, t.routes)
}

// excludedByVia returns the rules with via that do not route through nodes with these
// selectors.
func (c *Rules) excludedByVia(own bitset.Set) (rules bitset.Set) {
	for r := range c.via.All() {
		if !slices.ContainsFunc(c.viaTags[r], own.Has) {
			rules.Add(r)
		}
	}
	return rules
}

// attributesOf returns the attributes of nodes with these selectors. If two entries have
// the same name, the first applies.
func (c *Rules) attributesOf(own bitset.Set) map[string][]json.RawMessage {
	attrs := map[string][]json.RawMessage{}
	if c.randomPort {
		attrs["randomize-client-port"] = []json.RawMessage{}
	}
	for _, a := range c.attributes {
		if !slices.ContainsFunc(a.holders, own.Has) {
			continue
		}
		for name, values := range a.Attrs {
			if _, ok := attrs[name]; !ok {
				attrs[name] = values
			}
		}
	}
	return attrs
}

func (c *Rules) info(class Class) *classInfo { return (*c.classes.Load())[class] }

// Connects reports whether some rule lets a node of either class open a connection to one
// of the other, whoever owns them.
func (c *Rules) Connects(a, b Class) bool { return a != Nobody && c.sees(a, b) }

// sees is like Connects. The first class must not be Nobody.
func (c *Rules) sees(a, b Class) bool {
	i := c.info(a)
	s := i.visible.Load()
	if s == nil || int(b) >= s.n {
		s = c.addVisible(i, s)
	}
	return s.seen.Has(int(b))
}

// seesOwn is like sees, for nodes of the same user.
func (c *Rules) seesOwn(a, b Class) bool {
	i, j := c.info(a), c.info(b)
	return i.self.meets(j.addrs) || j.self.meets(i.addrs)
}

// HasOwn reports whether rules let the nodes of a class reach others of the same
// user.
func (c *Rules) HasOwn(class Class) bool { return c.info(class).self.any() }

// Attributes returns the attributes that the nodes of a class get.
func (c *Rules) Attributes(class Class) map[string][]json.RawMessage { return c.info(class).attrs }

// addVisible extends the visible classes of a class with those that were added since old.
// Two goroutines that do so at the same time get the same result.
func (c *Rules) addVisible(i *classInfo, old *visibleClasses) *visibleClasses {
	classes := *c.classes.Load()
	s := &visibleClasses{n: len(classes)}
	from := 1 // nobody sees class Nobody
	if old != nil {
		from, s.seen = old.n, slices.Clone(old.seen)
	}
	for k := from; k < len(classes); k++ {
		if j := classes[k]; i.src.meets(&j.dst) || j.src.meets(&i.dst) {
			s.seen.Add(k)
		}
	}
	i.visible.Store(s)
	return s
}
