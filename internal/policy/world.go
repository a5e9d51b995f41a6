package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// World is a snapshot seen through its policy.
type World struct {
	*mesh.Snapshot
	// Doc is the policy; nil means that there is none.
	Doc *lang.Doc
	// Problems say why the stored text is not in force. Doc is then the last one
	// that could be read.
	Problems lang.Problems
	// Reserved are the ranges that no route may overlap. Nothing is reserved in a
	// world that is made for a question.
	Reserved mesh.Reserved

	rules   *Compiled
	classes classTable // nil in a world that is only glanced at
	known   *knowledge
}

// NewWorld sees a snapshot through the policy that is stored in it. When the
// stored text cannot be read, fallback gives the document that counts instead; a
// nil fallback, or one that gives nil, means that nobody reaches anyone.
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

// WorldOf sees a snapshot through a document, whatever is stored.
func WorldOf(s *mesh.Snapshot, doc *lang.Doc) *World {
	return (&World{Snapshot: s, Doc: doc}).compile()
}

// stored reads the policy of a snapshot; nil means that there is none.
func stored(s *mesh.Snapshot) (*lang.Doc, lang.Problems) {
	p, ok := s.Policy()
	if !ok || p.Text == "" {
		return nil, nil
	}
	return lang.Parse([]byte(p.Text))
}

func (w *World) compile() *World {
	w.rules, w.known = Compile(w.Doc), new(knowledge)
	e := classEdit{table: classTable{}}
	for n := range w.Nodes() {
		e.put(n.ID, w.rules.classOf(n, w.ownerOf(n)))
	}
	w.classes = e.table
	return w
}

// Glance sees a snapshot that follows that of w, for a look that is not worth
// preparing for.
func (w *World) Glance(s *mesh.Snapshot) *World {
	next := *w
	next.Snapshot, next.classes, next.known = s, nil, new(knowledge)
	if !s.SamePolicy(w.Snapshot) {
		if next.Doc, next.Problems = stored(s); len(next.Problems) > 0 {
			next.Doc = w.Doc
		}
		next.rules = Compile(next.Doc)
	}
	return &next
}

// Next sees a snapshot that follows that of w. Touched names at least the nodes
// that changed in between.
func (w *World) Next(s *mesh.Snapshot, touched []mesh.NodeID) *World {
	next := w.Glance(s)
	switch {
	case next.rules != w.rules:
		return next.compile()
	case s.SameIdentities(w.Snapshot):
		next.classes, next.known = w.classes, w.known
		return next
	}
	e := classEdit{table: slices.Clone(w.classes)}
	for _, id := range touched {
		n, ok := s.Node(id)
		if !ok {
			e.put(id, Nobody)
			continue
		}
		e.put(id, next.rules.classOf(n, next.ownerOf(n)))
	}
	if renamed := w.renamed(s); len(renamed) > 0 {
		for n := range s.Nodes() {
			if slices.Contains(renamed, n.Owner) {
				e.put(n.ID, next.rules.classOf(n, next.ownerOf(n)))
			}
		}
	}
	next.classes = e.table
	return next
}

// renamed are the users that have other names in s.
func (w *World) renamed(s *mesh.Snapshot) (list []mesh.UserID) {
	for _, id := range s.ChangedUsers(w.Snapshot) {
		was, had := w.User(id)
		is, has := s.User(id)
		if had && has && !slices.Equal(lang.NamesOf(was), lang.NamesOf(is)) {
			list = append(list, id)
		}
	}
	return list
}

// ownerOf is nil for a node with tags.
func (w *World) ownerOf(n *mesh.Node) *mesh.User {
	u, _ := w.User(n.Owner)
	return u
}

// SameRules reports whether classes of both worlds mean the same.
func (w *World) SameRules(v *World) bool { return w.rules == v.rules }

// Class returns the class of a node as a viewer.
func (w *World) Class(n *mesh.Node) Class {
	if n.Lapsed {
		return Nobody
	}
	return w.Kin(n)
}

// Kin returns the class of a node as others see it.
func (w *World) Kin(n *mesh.Node) Class {
	if w.classes == nil {
		return w.rules.classOf(n, w.ownerOf(n))
	}
	return w.classes.at(n.ID)
}

// Sees reports whether the nodes of a class see n: one of the two may open a
// connection to the other. A node does not see itself, whatever this says.
func (w *World) Sees(c Class, n *mesh.Node) bool { return c != Nobody && w.rules.sees(c, w.Kin(n)) }

// SeesOwn reports whether nodes of a class see n if one person has both.
func (w *World) SeesOwn(c Class, n *mesh.Node) bool {
	if c == Nobody {
		return false
	}
	a, b := w.rules.info(c), w.rules.info(w.Kin(n))
	return a.self.meets(b.addrs) || b.self.meets(a.addrs)
}

// HasOwn reports whether rules let the nodes of a class reach others of the same
// person.
func (w *World) HasOwn(c Class) bool { return w.rules.info(c).self.any() }

// Reclassified names the nodes that both worlds have in different classes,
// provided that both have the same rules.
func (w *World) Reclassified(old *World) []mesh.NodeID { return w.classes.changed(old.classes) }

// ClassBlock returns the classes of the block of nodes that starts with an id, as
// in NodeBlocks. Two blocks with the same first element are the same.
func (w *World) ClassBlock(first mesh.NodeID) []Class { return w.classes.block(first) }

// Marks returns what a node is marked with, in order: rules know by them whom
// they let in. Clients are told the marks of a node together with the node, so
// that what they let in need not be told again when a node comes or goes.
func (w *World) Marks(n *mesh.Node) []string {
	i := w.rules.info(w.Kin(n))
	if n.Owner != 0 && i.self.any() {
		return append(slices.Clip(i.marks), OwnMark(n.Owner))
	}
	return i.marks
}

// SameMarks reports whether a node has the same marks in both worlds.
func (w *World) SameMarks(n *mesh.Node, old *World, was *mesh.Node) bool {
	if w.rules == old.rules && w.Kin(n) == old.Kin(was) && n.Owner == was.Owner {
		return true
	}
	return slices.Equal(w.Marks(n), old.Marks(was))
}

// OwnMark is the mark of all nodes of a user.
func OwnMark(u mesh.UserID) string { return "mesh/own/" + strconv.FormatInt(int64(u), 10) }

// Attributes returns what a node of a class is told about itself.
func (w *World) Attributes(c Class) map[string][]json.RawMessage { return w.rules.info(c).attrs }

// Inbound returns the rules that let others reach nodes of a class.
func (w *World) Inbound(c Class) []Inbound {
	if c == Nobody {
		return nil
	}
	return w.rules.info(c).inbound()
}

// OwnInbound returns the rules that let the nodes of one person reach each other,
// for nodes of a class. They have no sources: it is whoever carries OwnMark.
func (w *World) OwnInbound(c Class) []Inbound {
	if c == Nobody {
		return nil
	}
	return w.rules.ownInbound(w.rules.info(c))
}

// SameShells reports whether the rules about shells mean the same people and
// nodes in both worlds, for nodes of a class.
func (w *World) SameShells(old *World, c Class) bool {
	switch {
	case w.rules != old.rules:
		return false
	case w.known == old.known || len(w.rules.ssh) == 0:
		return true
	default:
		return !w.rules.info(c).shellNodes && len(w.ChangedUsers(old.Snapshot)) == 0
	}
}

// SameInbound reports whether nodes of a class let in the same nodes by the same
// words in both worlds. Listed says that they are told addresses instead of marks,
// own that they let in the nodes of one person.
func (w *World) SameInbound(old *World, c Class, listed, own bool) bool {
	return w.Basis().SameInbound(old.Basis(), c, listed, own)
}

// Basis is what the answers of a world rest on beside the nodes. It keeps no world
// alive.
type Basis struct {
	rules  *Compiled
	known  *knowledge
	routes []netip.Prefix
}

// Basis returns that of w.
func (w *World) Basis() Basis { return Basis{w.rules, w.known, w.Routes()} }

// SameRules reports whether classes of both mean the same.
func (b Basis) SameRules(old Basis) bool { return b.rules == old.rules }

// Same reports whether rules, users, owners, tags, addresses and routes are the
// same.
func (b Basis) Same(old Basis) bool { return b.rules == old.rules && b.known == old.known }

// SameInbound is as that of World.
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
