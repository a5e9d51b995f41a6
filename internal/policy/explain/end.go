package explain

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// ErrNoSuchEnd says that a text names nothing that could open a connection or be
// reached.
var ErrNoSuchEnd = errors.New("there is no such node, user, tag or address")

// End is one who reaches, or is reached. One of Node, User, Group and Tag is set,
// or Addr alone.
type End struct {
	// Node is a node, by any of its addresses or by Addr.
	Node mesh.NodeID
	Addr netip.Addr
	// User is somebody, in the form in which names are compared, from any node
	// without tags; it need not exist.
	User string
	// Group is somebody of a group.
	Group string
	// Tag is a node that has a tag.
	Tag string
}

// ParseEnd finds what a text names: a node by name, id or address; a user by name
// or e-mail, with or without "@" at its end; a tag; a group; a host of the policy;
// an address. A node counts before a host and a host before a user.
func ParseEnd(w *policy.World, text string) (End, error) { return newWorld(w).parseEnd(text) }

func (w *world) parseEnd(text string) (End, error) {
	if strings.HasPrefix(text, lang.PrefixTag) || strings.HasPrefix(text, lang.PrefixGroup) {
		return w.parsePrefixed(text)
	}
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return w.endAt(a.Unmap().WithZone("")), nil
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n, ok := w.Node(mesh.NodeID(id)); ok {
			return End{Node: n.ID}, nil
		}
	}
	if n, ok := w.NodeNamed(text); ok {
		return End{Node: n.ID}, nil
	}
	if w.Doc != nil {
		if host, ok := w.Doc.Hosts[text]; ok {
			if !host.IsSingleIP() {
				return End{}, fmt.Errorf("%w: host %s is %s, not one address; name an address in it", ErrNoSuchEnd, text, host)
			}
			return w.endAt(host.Addr()), nil
		}
	}
	name := lang.UserName(text)
	for u := range w.Users() {
		if slices.Contains(lang.NamesOf(u), name) {
			return End{User: name}, nil
		}
	}
	if w.Doc.NamesUser(name) {
		return End{User: name}, nil
	}
	return End{}, fmt.Errorf("%w: %q is not the name or the id of a node, nor a user or a host of the policy%s", ErrNoSuchEnd, text, lang.Nearest(text, w.endNames()))
}

func (w *world) parsePrefixed(text string) (End, error) {
	var groups, tags []string
	if w.Doc != nil {
		groups, tags = slices.Sorted(maps.Keys(w.Doc.Groups)), slices.Sorted(maps.Keys(w.Doc.TagOwners))
	}
	if strings.HasPrefix(text, lang.PrefixGroup) {
		if slices.Contains(groups, text) {
			return End{Group: text}, nil
		}
		return End{}, fmt.Errorf("%w: the policy has no %s%s", ErrNoSuchEnd, text, lang.Nearest(text, groups))
	}
	for n := range w.Nodes() {
		tags = append(tags, n.Tags...)
	}
	if slices.Contains(tags, text) {
		return End{Tag: text}, nil
	}
	slices.Sort(tags)
	return End{}, fmt.Errorf("%w: no node has %s, nor does the policy know it%s", ErrNoSuchEnd, text, lang.Nearest(text, slices.Compact(tags)))
}

func (w *world) endAt(a netip.Addr) End {
	if n, ok := w.NodeByAddr(a); ok {
		return End{Node: n.ID, Addr: a}
	}
	return End{Addr: a}
}

// endNames are the names that ParseEnd looks for without a prefix.
func (w *world) endNames() (names []string) {
	for n := range w.Nodes() {
		names = append(names, n.Name)
	}
	for u := range w.Users() {
		names = append(names, u.Name)
	}
	if w.Doc != nil {
		names = append(names, slices.Sorted(maps.Keys(w.Doc.Hosts))...)
	}
	return names
}

// endpoints are the addresses that an end may have. Of people and tags they are
// those of an imagined node, and of one existing node of each class: nodes of one
// class are the same to all rules but those about autogroup:self, which look at
// people alone.
func (w *world) endpoints(e End) (list []endpoint) {
	switch {
	case e.Node != 0:
		n, ok := w.Node(e.Node)
		if !ok {
			return nil
		}
		return w.endpointsOf(n, e.Addr)
	case e.User != "":
		list = imagine(endpoint{name: e.User, Identity: lang.Identity{Names: w.namesFor(e.User)}})
	case e.Group != "":
		for _, name := range w.groups[e.Group] {
			list = append(list, imagine(endpoint{name: name, Identity: lang.Identity{Names: w.namesFor(name)}})...)
		}
	case e.Tag != "":
		list = imagine(endpoint{name: "a node with " + e.Tag, Identity: lang.Identity{Tags: []string{e.Tag}}})
	case e.Addr.IsValid():
		return []endpoint{w.source(e.Addr)}
	}
	seen := map[policy.Class]bool{}
	for n := range w.Nodes() {
		if class := w.PeerClass(n); !seen[class] && w.isPartOf(n, e) {
			seen[class] = true
			list = append(list, w.endpointsOf(n, netip.Addr{})...)
		}
	}
	return list
}

// endpointsOf is a node by all its addresses, or by one.
func (w *world) endpointsOf(n *mesh.Node, only netip.Addr) (list []endpoint) {
	for _, a := range n.Addrs() {
		if !only.IsValid() || a == only {
			list = append(list, w.destination(a, n))
		}
	}
	return list
}

// imagine is a node of which the identity is known, in each family.
func imagine(p endpoint) (list []endpoint) {
	p.own = true
	for _, p.span = range policy.MeshPrefixes() {
		list = append(list, p)
	}
	return list
}

// namesFor are all names of the user who has one.
func (w *world) namesFor(name string) []string {
	for u := range w.Users() {
		if names := lang.NamesOf(u); slices.Contains(names, name) {
			return names
		}
	}
	return []string{name}
}

// isPartOf reports whether a node is one of those that a user, a group or a tag
// means.
func (w *world) isPartOf(n *mesh.Node, e End) bool {
	p := endpoint{}
	w.identify(&p, n)
	switch {
	case e.User != "":
		return w.means(&lang.Target{Kind: lang.User, Name: e.User}, &p)
	case e.Group != "":
		return w.means(&lang.Target{Kind: lang.Group, Name: e.Group}, &p)
	default:
		return w.means(&lang.Target{Kind: lang.Tag, Name: e.Tag}, &p)
	}
}

// text names an end in a sentence.
func (w *world) text(e End) string {
	if n, ok := w.Node(e.Node); ok {
		return n.Name
	}
	if e.Addr.IsValid() {
		return e.Addr.String()
	}
	return e.User + e.Group + e.Tag
}
