package explain

import (
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Effect is what another policy, or other tags, would do to the nodes that are
// there. Pairs are ordered: who reaches, and whom.
type Effect struct {
	// Lost are the pairs that reach each other no more, Gained those that newly
	// do, Changed those that do by other ports or protocols, and Unchanged those
	// that do as before.
	Lost, Gained, Changed, Unchanged int
	// Losers are the nodes that no longer reach something they reached, and
	// LosersOnline those of them that are online.
	Losers, LosersOnline int

	// Shifts, Shells and Routes say what changes for whom, the most pairs first
	// and up to a limit; the others are counted.
	Shifts                             []Shift
	Shells                             []ShellShift
	Routes                             []RouteShift
	MoreShifts, MoreShells, MoreRoutes int

	// Tests are those of the new policy that do not hold.
	Tests []TestFailure
	// Guards are warnings that nobody should miss.
	Guards []Guard
	// Notes are those of the new policy.
	Notes []string
	// Truncated says that the policies tell so many sorts of nodes apart that not
	// all pairs were looked at: what is counted and listed is a part.
	Truncated bool
}

// Principals are people, or tags of nodes, for whom the same changes.
type Principals struct {
	Names []string // some of them, in order
	Count int
}

// Shift is a change of what some reach of others.
type Shift struct {
	From, To Principals
	Own      bool // only between nodes of one person
	Pairs    int
	Samples  []NodePair
	// Online is how many of the nodes that reach less are online.
	Online       int
	Lost, Gained []lang.Service
	// LostLines are of the old text: rules that allowed what is lost. GainedLines
	// are of the new one.
	LostLines, GainedLines []lang.Line
}

// NodePair is one who reaches, and whom.
type NodePair struct{ From, To mesh.NodeID }

// ShellShift is a change of who may open shells. Users are those of the operating
// system.
type ShellShift struct {
	From, To               Principals
	Own                    bool
	Pairs                  int
	Samples                []NodePair
	Lost, Gained           []ShellUser
	LostLines, GainedLines []lang.Line
}

// ShellUser is a user of an operating system, or NonRoot, and whether somebody must
// agree first.
type ShellUser struct {
	Name  string
	Check bool
}

// RouteShift is a change of what some reach behind routers.
type RouteShift struct {
	From Principals
	// Through are the routers, or the exit nodes.
	Through []mesh.NodeID
	// Prefix is where they lead; a default route stands for the internet.
	Prefix                 netip.Prefix
	Lost, Gained           []lang.Service
	LostLines, GainedLines []lang.Line
}

// GuardKind says what a warning is about.
type GuardKind string

// The warnings.
const (
	GuardUnreachable GuardKind = "unreachable" // nobody reaches nodes on port 22 any more
	GuardOwnWayIn    GuardKind = "ownWayIn"    // the viewer does not
	GuardEverything  GuardKind = "everything"  // everything may reach everything
)

// Guard is a warning.
type Guard struct {
	Kind  GuardKind
	Text  string
	Nodes []mesh.NodeID
}

// Preview compares two worlds. They have the same nodes, seen through two
// documents or with other tags. The viewer is who wants to know, or nil.
//
// It asks what is compiled for classes of nodes, the same that nodes are told, and
// so costs what there are of classes and not of nodes.
func Preview(from, to *policy.World, viewer *End) *Effect {
	accesses := newAccessTable()
	c := &comparison{before: newEvaluator(from, accesses), after: newEvaluator(to, accesses), accesses: accesses, effect: &Effect{Tests: RunTests(to), Notes: Notes(to)}}
	c.sort()
	c.comparePairs()
	c.compareOwn()
	c.countLosers()
	c.compareShells()
	c.compareRoutes()
	c.finish()
	c.guard(viewer)
	return c.effect
}
