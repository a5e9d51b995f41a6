package lang

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// The prefixes of names, one for each kind.
const (
	PrefixTag       = "tag:"
	PrefixGroup     = "group:"
	prefixAutogroup = "autogroup:"
	prefixSet       = "ipset:"
	prefixService   = "svc:"
)

func prefixes() []string {
	return []string{PrefixTag, PrefixGroup, prefixAutogroup, prefixSet, prefixService}
}

// The autogroups of users, which may own tags.
const (
	ownedByAll    = "autogroup:member"
	ownedByAdmins = "autogroup:admin"
)

var (
	groupPattern = regexp.MustCompile(`^group:[^\s:*,@]{1,128}$`)
	// userPattern excludes names that would be taken for something else.
	userPattern = regexp.MustCompile(`^[^\s:*,/\[\]@][^\s:*,/\[\]]{0,127}$`)
	hostPattern = regexp.MustCompile(`^[^\s:*,@/\[\]]{1,128}$`)
	setPattern  = regexp.MustCompile(`^ipset:[^\s:*,@]{1,128}$`)
)

// user returns UserName of a name, and records that the document names the user.
func (r *reader) user(name string) string {
	user := UserName(name)
	r.doc.users[user] = true
	return user
}

// IsGroup reports whether a text is group: followed by a valid name.
func IsGroup(text string) bool { return groupPattern.MatchString(text) }

func (r *reader) groups(v hujson.Value) {
	r.members(v, memberGroups, func(name string, key, value hujson.Value) {
		if !IsGroup(name) {
			r.problem(key.StartOffset, "invalid group %q: use group: followed by a name, such as group:admins", name)
			return
		}
		r.doc.groupsAt[name] = r.found(key.StartOffset, "")
		members := []string{}
		var lines []Line
		r.names(value, name, func(member string, at int) {
			if !userPattern.MatchString(member) {
				r.problem(at, "%q is not a user: groups can contain only users", member)
				return
			}
			members, lines = append(members, r.user(member)), append(lines, r.line(at))
		})
		r.doc.Groups[name], r.doc.MemberLines[name] = members, lines
	})
}

// provided records that a group that is not defined is used. Whether the identity provider
// has such a group is not known here: see CheckGroups.
func (r *reader) provided(group string, at int) bool {
	if !IsGroup(group) {
		r.problem(at, "invalid group %q: use group: followed by a name, such as group:admins", group)
		return false
	}
	if _, seen := r.doc.Provided[group]; !seen {
		r.doc.Provided[group] = r.found(at, "")
	}
	return true
}

func (r *reader) readHosts(v hujson.Value) {
	r.hosts = map[string][]netip.Prefix{}
	r.members(v, memberHosts, func(name string, key, value hujson.Value) {
		if !hostPattern.MatchString(name) || isAddress(name) {
			r.problem(key.StartOffset, "invalid host name %q: it must not be an address or contain spaces or : * , @ / [ ]", name)
			return
		}
		text, ok := r.string(value, name)
		if !ok {
			return
		}
		prefix, err := parseLoosePrefix(text)
		if err != nil {
			r.problem(value.StartOffset, "%s", err.Error())
		}
		// Policies written for Headscale have hosts with host bits set. Headscale also
		// takes them to mean the network.
		if masked := prefix.Masked(); masked != prefix {
			r.warn(value.StartOffset, "host %s is %q, which means the network %s: use that, or the address alone", name, text, masked)
			prefix = masked
		}
		// A host with an invalid address counts as known, so that using it is not a
		// second problem.
		r.hosts[name], r.doc.Hosts[name] = []netip.Prefix{prefix}, prefix
	})
}

// link is a reference from one tag or ipset to another.
type link struct {
	from, to string
	at       int
}

func (r *reader) owners(v hujson.Value) {
	var lists []func()
	var chain []link
	r.members(v, memberOwners, func(tag string, key, value hujson.Value) {
		if err := CheckTag(tag); err != nil {
			r.problem(key.StartOffset, "%s", err.Error())
			return
		}
		if !clientTagPattern.MatchString(tag) {
			r.warn(key.StartOffset, "%s has characters other than letters, digits and hyphens: clients reject it in --advertise-tags, "+
				"so assign it with a pre-auth key or with fairlead nodes tag", tag)
		}
		r.doc.TagOwners[tag] = []string{}
		lists = append(lists, func() {
			r.names(value, tag, func(owner string, at int) {
				if owner, ok := r.owner(tag, owner, at); ok {
					r.doc.TagOwners[tag] = append(r.doc.TagOwners[tag], owner)
					// A tag that owns itself has no effect, and is allowed.
					if strings.HasPrefix(owner, PrefixTag) && owner != tag {
						chain = append(chain, link{tag, owner, at})
					}
				}
			})
		})
	})
	// Tags may own each other, so all tags must be known before owners are read.
	for _, read := range lists {
		read()
	}
	r.cycles(chain, "tags own each other", " is owned by ")
}

func (r *reader) owner(tag, owner string, at int) (string, bool) {
	_, isGroup := r.doc.Groups[owner]
	_, isTag := r.doc.TagOwners[owner]
	switch {
	case isGroup, isTag, owner == ownedByAll:
		return owner, true
	case owner == ownedByAdmins:
		r.usesAdmins(at)
		return owner, true
	case strings.HasPrefix(owner, PrefixGroup):
		return owner, r.provided(owner, at)
	case strings.HasPrefix(owner, PrefixTag):
		r.problem(at, "%s is owned by %s, which is not defined: add it to tagOwners%s", tag, owner, Nearest(owner, known(r.doc.TagOwners)))
	case strings.HasPrefix(owner, prefixAutogroup):
		r.problem(at, "%s cannot own a tag; the only autogroups that can are %s and %s", owner, ownedByAll, ownedByAdmins)
	case !userPattern.MatchString(owner):
		r.problem(at, "%q cannot own a tag: use a user, group: or tag:", owner)
	default:
		return r.user(owner), true
	}
	return "", false
}

// usesAdmins records that autogroup:admin is used.
func (r *reader) usesAdmins(at int) {
	if r.doc.adminsAt.Line == 0 {
		r.doc.adminsAt = r.found(at, "")
	}
}

// known returns the sorted keys of a map, so that hints are deterministic.
func known[V any](defined map[string]V) []string {
	return slices.Sorted(maps.Keys(defined))
}

// visit is the state of a name in the search for cycles.
type visit int

const (
	inProgress visit = iota + 1
	finished
)

// cycles adds a problem for each cycle of names that refer to each other.
func (r *reader) cycles(chain []link, what, verb string) {
	next := map[string][]link{}
	for _, l := range chain {
		next[l.from] = append(next[l.from], l)
	}
	passed := map[string]visit{}
	var follow func(way []string, name string)
	follow = func(way []string, name string) {
		if passed[name] == finished {
			return
		}
		way, passed[name] = append(way, name), inProgress
		for _, l := range next[name] {
			if passed[l.to] == inProgress {
				circle := append(slices.Clone(way[slices.Index(way, l.to):]), l.to)
				r.problem(l.at, "%s: %s", what, strings.Join(circle, verb))
				continue
			}
			follow(way, l.to)
		}
		passed[name] = finished
	}
	for _, l := range chain {
		follow(nil, l.from)
	}
}
