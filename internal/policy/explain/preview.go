package explain

import (
	"net/netip"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Effect is what a new policy, or new tags, would change for the existing nodes. Pairs
// are ordered: source, destination.
type Effect struct {
	// Lost counts the pairs that lose all access, Gained those that had no access and get
	// some, Changed those whose ports or protocols change, and Unchanged those that keep
	// the same access.
	Lost, Gained, Changed, Unchanged int
	// Losing counts the pairs that lose anything: all of Lost, and those of Changed that
	// lose ports or protocols. Gaining counts the pairs that gain anything; a changed
	// pair may count in both.
	Losing, Gaining int
	// Losers counts the nodes that can no longer reach something that they could reach,
	// and LosersOnline those of them that are online.
	Losers, LosersOnline int

	// Shifts, Shells and Routes hold what changes for whom, largest number of pairs
	// first, up to a limit. The rest is only counted.
	Shifts                             []Shift
	Shells                             []ShellShift
	Routes                             []RouteShift
	MoreShifts, MoreShells, MoreRoutes int

	// Tests holds the failed tests of the new policy.
	Tests []TestFailure
	// Guards holds warnings about changes that are likely to be mistakes.
	Guards []Guard
	// Notes holds the notes about the new policy.
	Notes []string
	// Truncated means that there are too many classes of nodes to compare all pairs: the
	// counts and lists are incomplete.
	Truncated bool
}

// Principals holds users, or tags of nodes, that a change affects in the same way. Each
// of them has affected nodes.
type Principals struct {
	Names []string // some of them, in order
	Count int
}

// Shift is a change in what some principals can reach on others.
type Shift struct {
	From, To Principals
	Own      bool // only between nodes of the same user
	Pairs    int
	Samples  []NodePair
	// Online counts the nodes that reach less and are online.
	Online       int
	Lost, Gained []lang.Service
	// LostLines holds the lines in the old text of the rules that allowed what is lost.
	// GainedLines holds lines in the new text.
	LostLines, GainedLines []lang.Line
}

// NodePair is a source and a destination.
type NodePair struct{ From, To mesh.NodeID }

// ShellShift is a change in who may log in over SSH, and as which users of the operating
// system.
type ShellShift struct {
	From, To               Principals
	Own                    bool
	Pairs                  int
	Samples                []NodePair
	Lost, Gained           []ShellUser
	LostLines, GainedLines []lang.Line
}

// ShellUser is a user of an operating system, or lang.NonRoot. Check means that a login
// needs approval.
type ShellUser struct {
	Name  string
	Check bool
}

// RouteShift is a change in what some principals can reach behind routers.
type RouteShift struct {
	From Principals
	// Through lists the routers or exit nodes.
	Through []mesh.NodeID
	// Prefix is the network behind them; a default route stands for the internet.
	Prefix                 netip.Prefix
	Lost, Gained           []lang.Service
	LostLines, GainedLines []lang.Line
}

// GuardKind is the kind of a Guard.
type GuardKind string

// The kinds of Guard.
const (
	GuardUnreachable GuardKind = "unreachable" // nobody can reach some nodes on port 22 any more
	GuardOwnWayIn    GuardKind = "ownWayIn"    // the viewer can no longer reach some nodes on port 22
	GuardEverything  GuardKind = "everything"  // everything may reach everything
)

// Guard is a warning about a change that is likely to be a mistake.
type Guard struct {
	Kind  GuardKind
	Text  string
	Nodes []mesh.NodeID
}

// Preview compares two worlds that have the same nodes, with different policies or
// different tags. viewer is the user who asks, or nil.
//
// It uses the compiled rules, from which the maps of nodes are rendered too, so its cost
// depends on the number of classes, not of nodes.
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
