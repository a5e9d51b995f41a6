package lang

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ErrTagDenied means that a node asked for a tag it may not use.
var ErrTagDenied = errors.New("tag not allowed")

// ErrUnknownTag means that the policy does not define a tag.
var ErrUnknownTag = errors.New("unknown tag")

var (
	// tagPattern accepts the characters that Headscale allows in tags, unless a tag could
	// be taken for something else. Ports begin with a digit or are "*", and each part of
	// a tag begins with a letter: "tag:a:80" is always port 80 of tag:a.
	tagPattern = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9_.;-]*(:[a-zA-Z][a-zA-Z0-9_.;-]*)*$`)
	// clientTagPattern matches the tags that clients accept in --advertise-tags.
	clientTagPattern = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]*$`)
)

const maxTagLength = len(PrefixTag) + 63

// CheckTag returns an error if a tag is not well-formed.
func CheckTag(tag string) error {
	switch {
	case !tagPattern.MatchString(tag):
		return fmt.Errorf("invalid tag %.100q: use tag: followed by letters, digits and hyphens, such as tag:server", tag)
	case len(tag) > maxTagLength:
		return fmt.Errorf("%.100q is longer than %d characters", tag, maxTagLength)
	}
	return nil
}

// MayTag returns nil if a node that joins with the key k, or as user, may ask for a tag.
// Otherwise the error says why not. Either k or user may be nil. The tags of the key are
// always allowed. For other tags, tagOwners must list the user, a group of the user, all
// users or all administrators, or a tag that the key has or that such a tag owns. The document is nil if there
// is no policy.
func (d *Doc) MayTag(user *mesh.User, k *mesh.PreAuthKey, tag string) error {
	switch {
	case k != nil && slices.Contains(k.Tags, tag):
		return nil
	case d == nil:
		return fmt.Errorf("%w: the pre-auth key does not have %s, and there is no policy whose tagOwners could allow it", ErrTagDenied, tag)
	case user != nil && d.ownedByUser(tag, user):
		return nil
	case k != nil && d.ownedByTag(tag, k.Tags):
		return nil
	case user == nil:
		return fmt.Errorf("%w: tagOwners does not allow %s for any tag of the pre-auth key", ErrTagDenied, tag)
	}
	return fmt.Errorf("%w: tagOwners does not allow %s for %s", ErrTagDenied, tag, user.Name)
}

// KnowsTag returns an error if an administrator may not give a tag to a node. The tag
// must be well-formed and, unless the document is nil because there is no policy, have an
// entry in tagOwners.
func (d *Doc) KnowsTag(tag string) error {
	if err := CheckTag(tag); err != nil || d == nil {
		return err
	}
	if _, ok := d.TagOwners[tag]; !ok {
		return fmt.Errorf("%w: %s is not defined in the policy's tagOwners; add it there first", ErrUnknownTag, tag)
	}
	return nil
}

func (d *Doc) ownedByUser(tag string, user *mesh.User) bool {
	id := UserIdentity(user)
	return slices.ContainsFunc(d.TagOwners[tag], func(owner string) bool {
		return owner == ownedByAll || owner == ownedByAdmins && id.Admin || slices.Contains(id.Names, owner) || id.in(owner, d.Groups)
	})
}

// Mentions returns the names of a user that occur anywhere in the document: in
// rules, groups, tagOwners, autoApprovers or tests. The user may be nil.
func (d *Doc) Mentions(user *mesh.User) []string {
	if d == nil || user == nil {
		return nil
	}
	return slices.DeleteFunc(NamesOf(user), func(name string) bool { return !d.users[name] })
}

// ownedByTag reports whether one of the given tags owns a tag, directly or through other
// tags.
func (d *Doc) ownedByTag(tag string, tags []string) bool {
	seen, next := map[string]bool{tag: true}, []string{tag}
	for len(next) > 0 {
		owners := d.TagOwners[next[0]]
		next = next[1:]
		for _, owner := range owners {
			if slices.Contains(tags, owner) {
				return true
			}
			if !seen[owner] {
				seen[owner] = true
				next = append(next, owner)
			}
		}
	}
	return false
}
