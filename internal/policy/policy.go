// Package policy says who may do what, and what the network looks like seen
// through that. There is no policy language yet: everyone may reach everyone,
// and a tag may be used by whoever holds a key that carries it.
//
// It is pure and imports mesh alone.
package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// World is a snapshot seen through its policy.
type World struct {
	*mesh.Snapshot
}

// Class is a set of nodes that the policy does not tell apart: they see the same
// nodes and let in the same ones, so what they are told is rendered once.
type Class int32

// The classes that there are while everyone may reach everyone.
const (
	// Nobody is the class of nodes that must authenticate again.
	Nobody Class = iota
	Everyone
)

// Class returns the class of a node.
func (w *World) Class(n *mesh.Node) Class {
	if n.Lapsed {
		return Nobody
	}
	return Everyone
}

// Sees reports whether the nodes of a class see n: one of the two may open a
// connection to the other. A node does not see itself, whatever this says.
func (w *World) Sees(c Class, _ *mesh.Node) bool { return c != Nobody }

// ErrTagDenied says that a node asked for a tag it may not use.
var ErrTagDenied = errors.New("tag not allowed")

var tagPattern = regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]{0,62}$`)

// CheckTag reports what is wrong with the form of a tag.
func CheckTag(tag string) error {
	if !tagPattern.MatchString(tag) {
		return fmt.Errorf("%q is not a tag: write tag: and a name of letters, digits and hyphens, such as tag:server", tag)
	}
	return nil
}

// MayTag reports whether a node that was let in by k may ask for tag itself.
func (w *World) MayTag(k *mesh.PreAuthKey, tag string) error {
	if slices.Contains(k.Tags, tag) {
		return nil
	}
	return fmt.Errorf("%w: %s is not a tag of the pre-auth key", ErrTagDenied, tag)
}
