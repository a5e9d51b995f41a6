package policy

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// World is a snapshot seen through its policy.
type World struct {
	*mesh.Snapshot
	// Doc is the policy; nil means that there is none.
	Doc *Doc
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
