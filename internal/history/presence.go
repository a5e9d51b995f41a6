package history

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// Transition says that a node came or went. One that moves to another stream or
// replica has done neither. Of several in one minute the last of each state is
// kept, with its own position and time: a node that flaps writes two rows a
// minute, and the last one is always true. Append fills the position.
type Transition struct {
	Position Position
	Node     mesh.NodeID
	At       mesh.Time
	Online   bool
}

// Presence is when a node was online within some time.
type Presence struct {
	Node mesh.NodeID
	// Before says whether it was online when that time began. Where nothing
	// older is kept, it follows from the first transition there is, or from how
	// the node is now.
	Before      bool
	Transitions []Transition // oldest first
}

// Bucket is a part of some time.
type Bucket struct {
	Online float64 // the share of it, from 0 to 1
}

// Buckets cuts the time from one moment up to another, for which p was asked,
// into n parts of the same length. It has none for no time at all.
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
			next := max(left[0].At, at) // never back, whatever the clocks did
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
		case online: // more parts than microseconds
			out[i].Online = 1
		}
	}
	return out
}

// Changes is how often the node came or went. Transitions may repeat a state, as of
// a minute only the last of each is kept.
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

// edge is where part i of n begins; no product of two times is needed.
func edge(from, to mesh.Time, i, n int) mesh.Time {
	whole, rest := (to-from)/mesh.Time(n), (to-from)%mesh.Time(n)
	return from + whole*mesh.Time(i) + rest*mesh.Time(i)/mesh.Time(n)
}
