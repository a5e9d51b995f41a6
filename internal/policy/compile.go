package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Rules is a compiled document. It depends only on the document: the class of a node
// follows from its properties, and who reaches whom follows from the classes. The table
// of classes grows as nodes with new properties appear.
type Rules struct {
	rules []lang.Rule
	// srcs holds the selectors of the sources of each rule, dsts those of each of its
	// destinations.
	srcs [][]int
	dsts [][][]int

	selectors []selector
	groups    map[string][]string
	// Selectors, by the property of a node that determines whether they match it.
	all, member, tagged []int
	admin               []int
	byUser, byTag       map[string][]int
	byGroup             map[string][]int // groups that the document does not define, without lang.PrefixGroup
	byPrefix            map[netip.Prefix][]int
	lengths4, lengths6  []int // lengths of the prefixes in byPrefix, sorted
	internet            []int
	self, via           bitset.Set // rules with a destination autogroup:self; rules with via
	// marked holds the rules with a source that is identified by a mark, listing those
	// whose sources must be listed by address (see needsList), and open those with the
	// source "*".
	marked, listing, open bitset.Set
	viaTags               [][]int
	// mirrored holds the rules whose sources grant capabilities in return (see Mirrored).
	mirrored bitset.Set

	attributes []compiledAttribute
	randomPort bool
	ssh        []compiledShell

	mu      sync.Mutex
	known   map[string]Class             // guarded by mu; by the key of traits
	classes atomic.Pointer[[]*classInfo] // by Class; grows under mu
}

// selector is a target of the document. A target with addresses of both families becomes
// two selectors, because no packet crosses from one family to the other.
type selector struct {
	target lang.Target
	mark   string // see World.Marks; empty if no mark is needed
	six    bool   // whether its addresses are IPv6
	held   bool   // whether the addresses of its nodes are listed although it has no mark
	// src holds the rules that have it as a source, dst those that have it as a
	// destination.
	src, dst bitset.Set
}

type compiledAttribute struct {
	*lang.Attribute
	holders []int
}

// compiledShell is a compiled SSH rule.
type compiledShell struct {
	*lang.SSHRule
	srcs, dsts []int
	self       bool // autogroup:self is among its destinations
}

// compileRules compiles a document; nil means that there is no policy.
func compileRules(d *lang.Doc) *Rules {
	if d == nil {
		d = &lang.Doc{Rules: []lang.Rule{lang.AllowAll()}}
	}
	c := &Rules{
		rules: d.Rules, groups: d.Groups, byUser: map[string][]int{}, byTag: map[string][]int{}, byGroup: map[string][]int{}, byPrefix: map[netip.Prefix][]int{},
		known: map[string]Class{},
	}
	c.classes.Store(&[]*classInfo{{}})
	c.randomPort = d.RandomizeClientPort
	known := map[string]int{}
	c.srcs, c.dsts, c.viaTags = make([][]int, len(c.rules)), make([][][]int, len(c.rules)), make([][]int, len(c.rules))
	for i := range c.rules {
		c.addRule(known, i)
	}
	for i := range d.Attributes {
		a := &d.Attributes[i]
		c.attributes = append(c.attributes, compiledAttribute{a, c.uses(known, a.Targets)})
	}
	for i := range d.SSH {
		c.addShell(known, &d.SSH[i])
	}
	for p := range c.byPrefix {
		if p.Addr().Is4() {
			c.lengths4 = append(c.lengths4, p.Bits())
		} else {
			c.lengths6 = append(c.lengths6, p.Bits())
		}
	}
	for _, lengths := range []*[]int{&c.lengths4, &c.lengths6} {
		slices.Sort(*lengths)
		*lengths = slices.Compact(*lengths)
	}
	return c
}

func (c *Rules) addRule(known map[string]int, i int) {
	r := &c.rules[i]
	c.srcs[i] = c.uses(known, r.Src)
	if needsList(r) {
		c.listing.Add(i)
	}
	for _, s := range c.srcs[i] {
		c.selectors[s].src.Add(i)
		c.selectors[s].addMark()
		if c.selectors[s].mark != "" {
			c.marked.Add(i)
		}
		if c.selectors[s].target.Kind == lang.Any {
			c.open.Add(i)
		}
	}
	c.dsts[i] = make([][]int, len(r.Dst))
	for k, d := range r.Dst {
		if d.Kind == lang.Self {
			c.self.Add(i)
			continue
		}
		c.dsts[i][k] = c.use(known, d.Target)
		for _, s := range c.dsts[i][k] {
			c.selectors[s].dst.Add(i)
		}
	}
	if len(r.Via) > 0 {
		c.via.Add(i)
		for _, tag := range r.Via {
			c.viaTags[i] = append(c.viaTags[i], c.use(known, lang.Target{Kind: lang.Tag, Name: tag})...)
		}
	}
	c.noteMirror(i)
}

func (c *Rules) addShell(known map[string]int, r *lang.SSHRule) {
	s := compiledShell{SSHRule: r, srcs: c.uses(known, r.Src)}
	for _, d := range r.Dst {
		if d.Kind == lang.Self {
			s.self = true
		} else {
			s.dsts = append(s.dsts, c.use(known, d)...)
		}
	}
	c.ssh = append(c.ssh, s)
}

// uses returns the selectors of targets, without duplicates.
func (c *Rules) uses(known map[string]int, targets []lang.Target) (list []int) {
	for _, t := range targets {
		list = append(list, c.use(known, t)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// use returns the selectors of a target, which it adds if they are new: two for
// addresses of both families, none for an empty list of addresses.
func (c *Rules) use(known map[string]int, t lang.Target) []int {
	if t.Kind != lang.Addresses {
		return []int{c.selector(known, t, false)}
	}
	var list []int
	for _, six := range []bool{false, true} {
		part := t
		part.Prefixes = slices.DeleteFunc(slices.Clone(t.Prefixes), func(p netip.Prefix) bool { return p.Addr().Is6() != six })
		if len(part.Prefixes) > 0 {
			list = append(list, c.selector(known, part, six))
		}
	}
	return list
}

func (c *Rules) selector(known map[string]int, t lang.Target, six bool) int {
	key := string(rune('a'+t.Kind)) + t.Name
	if t.Kind == lang.Addresses {
		key = "="
		for _, p := range t.Prefixes {
			key += p.String() + " "
		}
	}
	if i, ok := known[key]; ok {
		return i
	}
	i := len(c.selectors)
	known[key] = i
	c.selectors = append(c.selectors, selector{target: t, six: six})
	switch t.Kind {
	case lang.Any, lang.DangerAll:
		c.all = append(c.all, i)
	case lang.User:
		c.byUser[t.Name] = append(c.byUser[t.Name], i)
	case lang.Group:
		members, defined := c.groups[t.Name]
		for _, user := range members {
			c.byUser[user] = append(c.byUser[user], i)
		}
		if name := strings.TrimPrefix(t.Name, lang.PrefixGroup); !defined {
			c.byGroup[name] = append(c.byGroup[name], i)
		}
	case lang.Tag:
		c.byTag[t.Name] = append(c.byTag[t.Name], i)
	case lang.Member:
		c.member = append(c.member, i)
	case lang.Admin:
		c.admin = append(c.admin, i)
	case lang.Tagged:
		c.tagged = append(c.tagged, i)
	case lang.Addresses:
		for _, p := range t.Prefixes {
			c.byPrefix[p] = append(c.byPrefix[p], i)
		}
	case lang.Internet:
		c.internet = append(c.internet, i)
	case lang.Self: // depends on the source
	}
	return i
}

// addMark gives a mark to a selector that identifies nodes by owner or tags. The
// mark depends on the name alone, so that it is the same in another document. It is
// a hash, so that it does not reveal the name.
func (s *selector) addMark() {
	if s.target.Kind.IsIdentity() {
		sum := sha256.Sum256([]byte(string(rune('a'+s.target.Kind)) + s.target.Name))
		s.mark = "mesh/" + hex.EncodeToString(sum[:8])
	}
}
