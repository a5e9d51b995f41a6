package history

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// Transition records that a node went online or offline. Moving to another stream or
// replica is neither. If there are several within one minute, the last of each state is
// kept, with its own position and time. A node that flaps therefore writes two rows a
// minute, and the last row is always correct. Append fills the position.
type Transition struct {
	Position Position
	Node     mesh.NodeID
	At       mesh.Time
	Online   bool
}

// Presence is when a node was online within a period.
type Presence struct {
	Node mesh.NodeID
	// Before reports whether it was online at the beginning of the period. If nothing older
	// is kept, it is derived from the first transition there is, or from the current state
	// of the node.
	Before      bool
	Transitions []Transition // oldest first
}

// Bucket is one part of a period.
type Bucket struct {
	Online float64 // share of the time that the node was online, from 0 to 1
}

// Buckets divides the period for which p was requested into n parts of the same length. It
// returns none for an empty period.
func (p Presence) Buckets(from, to mesh.Time, n int) []Bucket {
	if n <= 0 || to <= from {
		return nil
	}
	out := make([]Bucket, n)
	online, left := p.Before, p.Transitions
	for i := range out {
		start, end := edge(from, to, i, n), edge(from, to, i+1, n)
		var up mesh.Time
		at := start
		for len(left) > 0 && left[0].At < end {
			next := max(left[0].At, at) // never backwards, even if a clock was set back
			if online {
				up += next - at
			}
			at, online, left = next, left[0].Online, left[1:]
		}
		if online {
			up += end - at
		}
		switch {
		case end > start:
			out[i].Online = float64(up) / float64(end-start)
		case online: // more buckets than microseconds
			out[i].Online = 1
		}
	}
	return out
}

// Changes returns how often the node went online or offline. Transitions may repeat a
// state, because only the last of each state is kept per minute.
func (p Presence) Changes() int {
	count, online := 0, p.Before
	for _, t := range p.Transitions {
		if t.Online != online {
			count++
		}
		online = t.Online
	}
	return count
}

// edge returns the start of part i of n without multiplying two times, which could
// overflow.
func edge(from, to mesh.Time, i, n int) mesh.Time {
	whole, rest := (to-from)/mesh.Time(n), (to-from)%mesh.Time(n)
	return from + whole*mesh.Time(i) + rest*mesh.Time(i)/mesh.Time(n)
}
