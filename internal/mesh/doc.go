// Package mesh holds the nouns of the network, the events that change them,
// and the one function that moves a snapshot forward.
//
// It is pure: no clock, no randomness that reaches a result, no I/O, and
// nothing of the client's wire vocabulary beyond its key types. It imports no
// other package of ours and starts no goroutine.
//
// The struct of a noun is the only list of its fields. The log uses its JSON names,
// the tables use the same names with underscores (or the one in a tag column), and the
// digest covers all of them. Each event has methods for everything that this package
// must know about it. CONTRIBUTING.md explains how to add a field.
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
