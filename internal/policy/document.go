package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Doc is a policy that was read. It is never written again.
type Doc struct {
	groups map[string][]string // names of users as userOf gives them
	owners map[string][]string // of a tag: groups, tags, and names of users
}

const (
	maxDoc = 1 << 20
	// maxBrackets bounds how deep values can lie in each other: reading them
	// takes that much of the stack.
	maxBrackets = 100_000
	maxProblems = 20
)

// The prefixes that tell names apart. Autogroups name nobody yet.
const (
	prefixTag       = "tag:"
	prefixGroup     = "group:"
	prefixAutogroup = "autogroup:"
)

var (
	groupPattern = regexp.MustCompile(`^group:[^\s:*,@]{1,128}$`)
	userPattern  = regexp.MustCompile(`^[^\s:*,]{1,128}$`)
)

// ParseDoc reads a policy in HuJSON: JSON with comments and trailing commas.
// The members groups and tagOwners count; others may be anything. The error
// names every problem with its line and column, up to a limit.
func ParseDoc(text []byte) (*Doc, error) {
	if len(text) > maxDoc {
		return nil, fmt.Errorf("the policy is larger than %d KiB", maxDoc>>10)
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets {
		return nil, fmt.Errorf("the policy has more than %d lists and objects", maxBrackets)
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	r := &reader{text: text, doc: &Doc{groups: map[string][]string{}, owners: map[string][]string{}}}
	r.members(root, "the policy", func(name string, _, value hujson.Value) {
		switch name {
		case "groups":
			r.members(value, name, r.group)
		case "tagOwners":
			r.members(value, name, r.tag)
		}
	})
	r.references()
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	return r.doc, nil
}

// reader collects what a document says and what is wrong with it.
type reader struct {
	text     []byte
	doc      *Doc
	uses     []use
	problems []error
}

// use is a place where an owner is named that must be defined somewhere.
type use struct {
	tag, owner string
	at         int
}

func (r *reader) problem(at int, format string, args ...any) {
	if len(r.problems) == maxProblems {
		return
	}
	line := 1 + bytes.Count(r.text[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(r.text[:at], '\n')
	r.problems = append(r.problems, fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, args...)))
}

// members calls each with the members of an object. A name that comes twice is a
// problem: readers disagree on which of the two counts.
func (r *reader) members(v hujson.Value, what string, each func(name string, key, value hujson.Value)) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		r.problem(v.StartOffset, "%s must be an object", what)
		return
	}
	seen := map[string]bool{}
	for _, m := range object.Members {
		name := textOf(m.Name)
		if seen[name] {
			r.problem(m.Name.StartOffset, "%s has %q twice", what, name)
			continue
		}
		seen[name] = true
		each(name, m.Name, m.Value)
	}
}

// names calls each with the texts of a list.
func (r *reader) names(v hujson.Value, what string, each func(name string, at int)) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		r.problem(v.StartOffset, "%s must be a list of names", what)
		return
	}
	for _, e := range list.Elements {
		if e.Value.Kind() != '"' {
			r.problem(e.StartOffset, "%s must hold names in quotes", what)
			continue
		}
		each(textOf(e), e.StartOffset)
	}
}

// textOf is the text of a value that is one, as the names of members always are.
func textOf(v hujson.Value) string {
	literal, _ := v.Value.(hujson.Literal)
	return literal.String()
}

func (r *reader) group(name string, key, value hujson.Value) {
	if !groupPattern.MatchString(name) {
		r.problem(key.StartOffset, "%q is not a group: write group: and a name, such as group:admins", name)
		return
	}
	members := []string{}
	r.names(value, name, func(member string, at int) {
		if !userPattern.MatchString(member) {
			r.problem(at, "%q is not a user: a group holds users and nothing else", member)
			return
		}
		members = append(members, userOf(member))
	})
	r.doc.groups[name] = members
}

func (r *reader) tag(name string, key, value hujson.Value) {
	if err := CheckTag(name); err != nil {
		r.problem(key.StartOffset, "%s", err.Error())
		return
	}
	owners := []string{}
	r.names(value, name, func(owner string, at int) {
		switch {
		case strings.HasPrefix(owner, prefixGroup), strings.HasPrefix(owner, prefixTag):
			r.uses = append(r.uses, use{tag: name, owner: owner, at: at})
			owners = append(owners, owner)
		case strings.HasPrefix(owner, prefixAutogroup):
		case userPattern.MatchString(owner):
			owners = append(owners, userOf(owner))
		default:
			r.problem(at, "%q cannot own a tag: name a user, a group: or a tag:", owner)
		}
	})
	r.doc.owners[name] = owners
}

// references checks the owners that are defined elsewhere in the document, once
// all of it was read. A tag that owns itself says nothing and is let pass.
func (r *reader) references() {
	next := map[string][]use{}
	for _, u := range r.uses {
		_, isGroup := r.doc.groups[u.owner]
		_, isTag := r.doc.owners[u.owner]
		switch {
		case !isGroup && !isTag:
			r.problem(u.at, "%s is owned by %s, which is not defined", u.tag, u.owner)
		case isTag && u.owner != u.tag:
			next[u.tag] = append(next[u.tag], u)
		}
	}
	passed := map[string]passage{}
	for _, u := range r.uses {
		r.cycle(next, passed, nil, u.tag)
	}
}

// passage says how far the search for cycles is with a tag.
type passage int

const (
	onTheWay passage = iota + 1
	through
)

// cycle follows the owners of a tag that are tags, and names a way that comes
// back to itself.
func (r *reader) cycle(next map[string][]use, passed map[string]passage, way []string, tag string) {
	if passed[tag] == through {
		return
	}
	way, passed[tag] = append(way, tag), onTheWay
	for _, u := range next[tag] {
		if passed[u.owner] == onTheWay {
			circle := append(slices.Clone(way[slices.Index(way, u.owner):]), u.owner)
			r.problem(u.at, "tags own each other: %s", strings.Join(circle, " is owned by "))
			continue
		}
		r.cycle(next, passed, way, u.owner)
	}
	passed[tag] = through
}

// userOf is how a user's name is compared. One "@" at its end may be written to
// show that it is a user; it is no part of the name.
func userOf(name string) string { return mesh.FoldName(strings.TrimSuffix(name, "@")) }
