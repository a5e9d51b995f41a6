package policy

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// World is a snapshot with the policy applied to it.
type World struct {
	*mesh.Snapshot
	// Doc is the policy in force; nil if there is none.
	Doc *lang.Doc
	// Problems says why the stored text is not in force. If there are any, Doc is the
	// last valid policy.
	Problems lang.Problems
	// Reserved holds the ranges that no route may overlap. It is empty in a world that is
	// only used to evaluate a policy.
	Reserved mesh.Reserved

	rules   *Rules
	classes classTable // nil in a world that WithSnapshot returned
	lookups *lookups
}

// NewWorld applies the policy that is stored in a snapshot. If the stored text is not
// valid, the document that fallback returns applies instead; if fallback or its result is
// nil, everything is denied.
func NewWorld(s *mesh.Snapshot, fallback func() *lang.Doc) *World {
	w := &World{Snapshot: s}
	if w.Doc, w.Problems = stored(s); len(w.Problems) > 0 {
		w.Doc = nil
		if fallback != nil {
			w.Doc = fallback()
		}
		if w.Doc == nil {
			w.Doc = &lang.Doc{}
		}
	}
	return w.compile()
}

// WorldOf applies a document to a snapshot, whatever policy is stored in it.
func WorldOf(s *mesh.Snapshot, doc *lang.Doc) *World {
	return (&World{Snapshot: s, Doc: doc}).compile()
}

// stored parses the policy of a snapshot; nil means that there is none.
func stored(s *mesh.Snapshot) (*lang.Doc, lang.Problems) {
	p, ok := s.Policy()
	if !ok || p.Text == "" {
		return nil, nil
	}
	return lang.Parse([]byte(p.Text))
}

func (w *World) compile() *World {
	w.rules, w.lookups = compileRules(w.Doc), new(lookups)
	e := classEdit{table: classTable{}}
	for n := range w.Nodes.All() {
		e.put(n.ID, w.classOf(n))
	}
	w.classes = e.table
	return w
}

// WithSnapshot returns the world of a snapshot that follows that of w, without the table
// of classes. It is cheap to create but slow for queries about many nodes. Use it for
// one-off checks, not for Reclassified or ClassBlock.
func (w *World) WithSnapshot(s *mesh.Snapshot) *World {
	next := *w
	next.Snapshot, next.classes, next.lookups = s, nil, new(lookups)
	if !s.SamePolicy(w.Snapshot) {
		if next.Doc, next.Problems = stored(s); len(next.Problems) > 0 {
			next.Doc = w.Doc
		}
		next.rules = compileRules(next.Doc)
	}
	return &next
}

// Next returns the world of a snapshot that follows that of w. touched contains at least
// the nodes that changed in between.
func (w *World) Next(s *mesh.Snapshot, touched []mesh.NodeID) *World {
	next := w.WithSnapshot(s)
	switch {
	case next.rules != w.rules:
		return next.compile()
	case s.SameIdentities(w.Snapshot):
		next.classes, next.lookups = w.classes, w.lookups
		return next
	}
	e := classEdit{table: slices.Clone(w.classes)}
	for _, id := range touched {
		n, ok := s.Nodes.Get(id)
		if !ok {
			e.put(id, Nobody)
			continue
		}
		e.put(id, next.classOf(n))
	}
	if renamed := w.renamed(s); len(renamed) > 0 {
		for n := range s.Nodes.All() {
			if slices.Contains(renamed, n.Owner) {
				e.put(n.ID, next.classOf(n))
			}
		}
	}
	next.classes = e.table
	return next
}

// renamed returns the users whose names, groups or roles are different in s.
func (w *World) renamed(s *mesh.Snapshot) (list []mesh.UserID) {
	for _, id := range s.Users.ChangedSince(&w.Users) {
		was, had := w.Users.Get(id)
		is, has := s.Users.Get(id)
		if had && has && (!slices.Equal(lang.NamesOf(was), lang.NamesOf(is)) || !slices.Equal(was.Groups, is.Groups) ||
			was.IsAssignedAdmin() != is.IsAssignedAdmin()) {
			list = append(list, id)
		}
	}
	return list
}

// classOf determines the class of a node as a peer.
func (w *World) classOf(n *mesh.Node) Class { return w.rules.classOf(n, w.ownerOf(n)) }

// ownerOf returns the owner of a node, or nil if it is tagged.
func (w *World) ownerOf(n *mesh.Node) *mesh.User {
	u, _ := w.Users.Get(n.Owner)
	return u
}

// Rules returns the compiled policy. Classes of two worlds can be compared if and
// only if both have the same rules.
func (w *World) Rules() *Rules { return w.rules }

// Class returns the class of a node as a viewer: Nobody if its key has expired.
func (w *World) Class(n *mesh.Node) Class {
	if n.KeyExpired {
		return Nobody
	}
	return w.PeerClass(n)
}

// PeerClass returns the class of a node as a peer. Peers still see a node whose key has
// expired, but not one whose owner is suspended.
func (w *World) PeerClass(n *mesh.Node) Class {
	if w.classes == nil {
		return w.classOf(n)
	}
	return w.classes.at(n.ID)
}

// Sees reports whether the nodes of a class see n: one of the two may open a connection
// to the other. owner is the owner of the nodes of the class, or 0: rules may let the
// nodes of one user reach each other. The result may be true for a node and itself.
func (w *World) Sees(c Class, owner mesh.UserID, n *mesh.Node) bool {
	if c == Nobody {
		return false
	}
	k := w.PeerClass(n)
	return w.rules.sees(c, k) || owner != 0 && n.Owner == owner && w.rules.seesOwn(c, k)
}

// Reclassified returns the nodes that have different classes in two worlds with the
// same rules.
func Reclassified(from, to *World) []mesh.NodeID { return to.classes.changed(from.classes) }

// ClassBlock returns the classes of the block of nodes that begins with an id, as in
// mesh.Nodes.Blocks. Blocks that share their memory are equal.
func (w *World) ClassBlock(first mesh.NodeID) []Class { return w.classes.block(first) }

// Marks returns the marks of a node, sorted. Filters identify nodes by their marks.
// Clients get the marks of a peer together with the peer, so that their filters do not
// change when a node is added or removed.
func (w *World) Marks(n *mesh.Node) []string {
	i := w.rules.info(w.PeerClass(n))
	if n.Owner != 0 && i.self.any() {
		return append(slices.Clip(i.marks), OwnMark(n.Owner))
	}
	return i.marks
}

// SameMarks reports whether a node has the same marks in two worlds, given its value
// before in the first and after in the second.
func SameMarks(from, to *World, before, after *mesh.Node) bool {
	if from.rules == to.rules && from.PeerClass(before) == to.PeerClass(after) && before.Owner == after.Owner {
		return true
	}
	return slices.Equal(from.Marks(before), to.Marks(after))
}

// OwnMark returns the mark of all nodes of a user.
func OwnMark(u mesh.UserID) string { return "mesh/own/" + strconv.FormatInt(int64(u), 10) }

// SameShells reports whether the SSH rules for nodes of a class refer to the same users
// and nodes in two worlds.
func SameShells(from, to *World, c Class) bool {
	switch {
	case from.rules != to.rules:
		return false
	case from.lookups == to.lookups || !to.rules.info(c).shells:
		return true
	default:
		return !to.rules.info(c).shellNodes && len(to.Users.ChangedSince(&from.Users)) == 0
	}
}

// Basis identifies what the results of a world depend on besides the nodes. Unlike a
// World, it keeps no snapshot in memory.
type Basis struct {
	rules  *Rules
	known  *lookups
	routes []netip.Prefix
}

// Basis returns the basis of w.
func (w *World) Basis() Basis { return Basis{w.rules, w.lookups, w.Routes()} }

// SameRules reports whether classes mean the same in both.
func (b Basis) SameRules(old Basis) bool { return b.rules == old.rules }

// Same reports whether rules, users, owners, tags, addresses and routes are the
// same.
func (b Basis) Same(old Basis) bool { return b.rules == old.rules && b.known == old.known }

// SameInbound reports whether nodes of a class accept traffic from the same nodes,
// described in the same way, in both. listed means that they are sent addresses instead
// of marks, own that they accept the nodes of the same user.
func (b Basis) SameInbound(old Basis, c Class, listed, own bool) bool {
	switch i := b.rules.info(c); {
	case b.rules != old.rules:
		return false
	case b.known == old.known:
		return true
	case i.listed || listed && i.marked || own && (listed || i.ownListed):
		return false
	default:
		return !i.anyone || slices.Equal(b.routes, old.routes)
	}
}
