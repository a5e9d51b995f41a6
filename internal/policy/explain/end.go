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

// ErrNoSuchEnd means that a text does not name anything that could be the end of a
// connection.
var ErrNoSuchEnd = errors.New("unknown source or destination")

// End is one end of a connection. One of Node, User, Group and Tag is set, or Addr
// alone.
type End struct {
	// Node is a node: only its address Addr if that is set, otherwise any of its
	// addresses.
	Node mesh.NodeID
	Addr netip.Addr
	// User is a user, in the form of lang.UserName, on any node without tags. The
	// user need not exist.
	User string
	// Group is a group of the policy or of the identity provider, and stands for any of
	// its members.
	Group string
	// Tag is a tag and stands for any node with it.
	Tag string
}

// ParseEnd returns what a text refers to: a node by name, id or address; a user by name
// or e-mail address, with or without "@" at the end; a tag; a group; a host of the
// policy; an address. Nodes take precedence over hosts, and hosts over users.
func ParseEnd(w *policy.World, text string) (End, error) { return newWorld(w).parseEnd(text) }

func (w *world) parseEnd(text string) (End, error) {
	if strings.HasPrefix(text, lang.PrefixTag) || strings.HasPrefix(text, lang.PrefixGroup) {
		return w.parsePrefixed(text)
	}
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return w.endAt(a.Unmap().WithZone("")), nil
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n, ok := w.Nodes.Get(mesh.NodeID(id)); ok {
			return End{Node: n.ID}, nil
		}
	}
	if n, ok := w.NodeNamed(text); ok {
		return End{Node: n.ID}, nil
	}
	if w.Doc != nil {
		if host, ok := w.Doc.Hosts[text]; ok {
			if !host.IsSingleIP() {
				return End{}, fmt.Errorf("%w %q: the host is the network %s; use an address in it", ErrNoSuchEnd, text, host)
			}
			return w.endAt(host.Addr()), nil
		}
	}
	name := lang.UserName(text)
	for u := range w.Users.All() {
		if slices.Contains(lang.NamesOf(u), name) {
			return End{User: name}, nil
		}
	}
	if w.Doc.NamesUser(name) {
		return End{User: name}, nil
	}
	return End{}, fmt.Errorf("%w %q: no node, user, group, tag, host or address has this name%s",
		ErrNoSuchEnd, text, lang.Nearest(text, w.endNames()))
}

func (w *world) parsePrefixed(text string) (End, error) {
	var tags []string
	if w.Doc != nil {
		tags = slices.Sorted(maps.Keys(w.Doc.TagOwners))
	}
	if strings.HasPrefix(text, lang.PrefixGroup) {
		groups := w.groupNames()
		if slices.Contains(groups, text) {
			return End{Group: text}, nil
		}
		return End{}, fmt.Errorf("%w %q: the policy does not define this group, and no user has it at the identity provider%s", ErrNoSuchEnd, text, lang.Nearest(text, groups))
	}
	for n := range w.Nodes.All() {
		tags = append(tags, n.Tags...)
	}
	if slices.Contains(tags, text) {
		return End{Tag: text}, nil
	}
	slices.Sort(tags)
	return End{}, fmt.Errorf("%w %q: no node has this tag, and the policy does not define it%s", ErrNoSuchEnd, text, lang.Nearest(text, slices.Compact(tags)))
}

func (w *world) endAt(a netip.Addr) End {
	if n, ok := w.Nodes.ByAddr(a); ok {
		return End{Node: n.ID, Addr: a}
	}
	return End{Addr: a}
}

// endNames returns the names that ParseEnd accepts without a prefix.
func (w *world) endNames() (names []string) {
	for n := range w.Nodes.All() {
		names = append(names, n.Name)
	}
	for u := range w.Users.All() {
		names = append(names, u.Name)
	}
	if w.Doc != nil {
		names = append(names, slices.Sorted(maps.Keys(w.Doc.Hosts))...)
	}
	return names
}

// endpoints returns the endpoints of an end. For users, groups and tags these are a
// hypothetical node and one existing node of each class. One is enough: rules do not
// distinguish nodes of a class, except through autogroup:self, which depends only on the
// user.
func (w *world) endpoints(e End) (list []endpoint) {
	switch {
	case e.Node != 0:
		n, ok := w.Nodes.Get(e.Node)
		if !ok {
			return nil
		}
		return w.endpointsOf(n, e.Addr)
	case e.User != "":
		list = imagine(w.person(e.User))
	case e.Group != "":
		for _, p := range w.members(e.Group) {
			list = append(list, imagine(p)...)
		}
	case e.Tag != "":
		list = imagine(endpoint{name: "a node with " + e.Tag, Identity: lang.Identity{Tags: []string{e.Tag}}})
	case e.Addr.IsValid():
		return []endpoint{w.source(e.Addr)}
	}
	seen := map[policy.Class]bool{}
	for n := range w.Nodes.Approved() {
		if class := w.PeerClass(n); !seen[class] && w.isPartOf(n, e) {
			seen[class] = true
			list = append(list, w.endpointsOf(n, netip.Addr{})...)
		}
	}
	return list
}

// endpointsOf returns the endpoints of a node for all its addresses, or for one.
func (w *world) endpointsOf(n *mesh.Node, only netip.Addr) (list []endpoint) {
	for _, a := range n.Addrs() {
		if !only.IsValid() || a == only {
			list = append(list, w.destination(a, n))
		}
	}
	return list
}

// imagine returns the endpoints of a hypothetical node, one for each address family.
func imagine(p endpoint) (list []endpoint) {
	p.own = true
	for _, p.span = range policy.MeshPrefixes() {
		list = append(list, p)
	}
	return list
}

// person returns the user with the given name, who need not exist.
func (w *world) person(name string) endpoint {
	for u := range w.Users.All() {
		if id := lang.UserIdentity(u); slices.Contains(id.Names, name) {
			return endpoint{name: name, Identity: id}
		}
	}
	return endpoint{name: name, Identity: lang.Identity{Names: []string{name}}}
}

// members returns the members of a group. For a group of the identity provider, the first
// is somebody who is in no other group and need not exist.
func (w *world) members(group string) (list []endpoint) {
	names, defined := w.groups[group]
	for _, name := range names {
		list = append(list, w.person(name))
	}
	if defined {
		return list
	}
	name := strings.TrimPrefix(group, lang.PrefixGroup)
	// No user can have the name of a group.
	list = append(list, endpoint{name: "a member of " + group, Identity: lang.Identity{Names: []string{group}, Groups: []string{name}}})
	for u := range w.Users.All() {
		if slices.Contains(u.Groups, name) {
			list = append(list, endpoint{name: mesh.FoldName(u.Name), Identity: lang.UserIdentity(u)})
		}
	}
	return list
}

// anyAdmin is the name of an administrator who need not exist. No user can have it.
const anyAdmin = "autogroup:admin"

// administrators returns the users of autogroup:admin. The first is somebody who is in no
// group and need not exist.
func (w *world) administrators() []endpoint {
	list := []endpoint{{name: "an administrator", Identity: lang.Identity{Names: []string{anyAdmin}, Admin: true}}}
	for u := range w.Users.All() {
		if u.IsAssignedAdmin() {
			list = append(list, endpoint{name: mesh.FoldName(u.Name), Identity: lang.UserIdentity(u)})
		}
	}
	return list
}

// groupNames returns the groups of the policy and of the identity provider, sorted.
func (w *world) groupNames() []string {
	groups := map[string]bool{}
	for name := range w.groups {
		groups[name] = true
	}
	if w.Doc != nil {
		for name := range w.Doc.Provided {
			groups[name] = true
		}
	}
	for u := range w.Users.All() {
		for _, name := range u.Groups {
			groups[lang.PrefixGroup+name] = true
		}
	}
	return slices.Sorted(maps.Keys(groups))
}

// isPartOf reports whether a user, a group or a tag includes a node.
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

// text returns the name of an end for use in sentences.
func (w *world) text(e End) string {
	if n, ok := w.Nodes.Get(e.Node); ok {
		return n.Name
	}
	if e.Addr.IsValid() {
		return e.Addr.String()
	}
	return e.User + e.Group + e.Tag
}
