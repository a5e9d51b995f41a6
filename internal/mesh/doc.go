// Package mesh holds the nouns of the network, the events that change them,
// and the one function that moves a snapshot forward.
//
// It is pure: no clock, no randomness that reaches a result, no I/O, and
// nothing of the client's wire vocabulary beyond its key types. It imports no
// other package of ours and starts no goroutine.
//
// The struct of a noun is the only list of its fields. Its JSON names are those of
// the log, and with underscores those of the columns, unless a tag column names
// another; the digest covers all of them. An event in turn has its own methods for
// all that must be known about it here. CONTRIBUTING.md says how to add a field.
//
// Words it defines:
//
//   - A revision is a position in the log. Revisions have no gaps.
//   - An event is a committed fact that carries the full new value.
//   - A snapshot is everything durable at one revision. It never changes.
//   - A draft is a snapshot that one goroutine is still editing.
//   - A node is touched by an event that names it.
//   - An actor is who asked for a change.
//   - A receipt is the trace of a request that must not be done twice.
package mesh
