package explain

import (
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Effect is what another policy, or other tags, would change for the existing nodes.
// Pairs are ordered: source, destination.
type Effect struct {
	// Lost counts the pairs that lose all access, Gained those that had none and get
	// some, Changed those whose ports or protocols change, and Unchanged those that
	// keep the same access.
	Lost, Gained, Changed, Unchanged int
	// Losing counts the pairs that lose anything: all of Lost, and those of Changed
	// that lose ports or protocols. Gaining is the same for what pairs gain; a changed
	// pair may count in both.
	Losing, Gaining int
	// Losers counts the nodes that no longer reach something that they reached, and
	// LosersOnline those of them that are online.
	Losers, LosersOnline int

	// Shifts, Shells and Routes say what changes for whom, the most pairs first and
	// up to a limit. The rest is only counted.
	Shifts                             []Shift
	Shells                             []ShellShift
	Routes                             []RouteShift
	MoreShifts, MoreShells, MoreRoutes int

	// Tests are those of the new policy that fail.
	Tests []TestFailure
	// Guards are warnings about changes that are easily a mistake.
	Guards []Guard
	// Notes are those of the new policy.
	Notes []string
	// Truncated says that there are too many classes of nodes to compare all pairs:
	// the counts and lists are incomplete.
	Truncated bool
}

// Principals are users, or tags of nodes, for whom the same changes. All of them have
// nodes for which it does.
type Principals struct {
	Names []string // some of them, in order
	Count int
}

// Shift is a change in what some principals reach of others.
type Shift struct {
	From, To Principals
	Own      bool // only between nodes of the same user
	Pairs    int
	Samples  []NodePair
	// Online counts the nodes that reach less and are online.
	Online       int
	Lost, Gained []lang.Service
	// LostLines are lines of the old text: rules that allowed what is lost.
	// GainedLines are lines of the new text.
	LostLines, GainedLines []lang.Line
}

// NodePair is a source and a destination.
type NodePair struct{ From, To mesh.NodeID }

// ShellShift is a change in who may log in by SSH, and as which users of the
// operating system.
type ShellShift struct {
	From, To               Principals
	Own                    bool
	Pairs                  int
	Samples                []NodePair
	Lost, Gained           []ShellUser
	LostLines, GainedLines []lang.Line
}

// ShellUser is a user of an operating system, or lang.NonRoot. Check says that a login
// needs approval.
type ShellUser struct {
	Name  string
	Check bool
}

// RouteShift is a change in what some principals reach behind routers.
type RouteShift struct {
	From Principals
	// Through are the routers or exit nodes.
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
	GuardOwnWayIn    GuardKind = "ownWayIn"    // the viewer no longer reaches nodes on port 22
	GuardEverything  GuardKind = "everything"  // everything may reach everything
)

// Guard is a warning.
type Guard struct {
	Kind  GuardKind
	Text  string
	Nodes []mesh.NodeID
}

// Preview compares two worlds that have the same nodes, with different policies or
// different tags. The viewer is the one who asks, or nil.
//
// It asks the compiled rules, from which nodes are told what they may do, so its cost
// depends on the number of classes and not of nodes.
func Preview(from, to *policy.World, viewer *End) *Effect {
	accesses := newAccessTable()
	c := &comparison{
		before: newEvaluator(from, accesses), after: newEvaluator(to, accesses), accesses: accesses,
		effect: &Effect{Tests: RunTests(to), Notes: Notes(to)},
	}
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
