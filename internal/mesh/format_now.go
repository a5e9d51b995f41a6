//go:build !nextrelease

package mesh

// Format is the newest format of events that this binary knows. The head row contains the format
// in use (Counters.Format), and a binary with an older one must not use the database: it would
// lose what it does not know when it changes an object.
const Format = 1

func nextFormat(Event) int { return 0 }
