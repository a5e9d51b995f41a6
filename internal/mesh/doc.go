// Package mesh defines the nouns of the network, the events that change them, and the
// function that applies events to a snapshot.
//
// It is pure: no clock, no randomness that reaches a result, no I/O, and none of the
// client's wire types except its keys. It imports no other package of this module and
// starts no goroutine.
//
// The struct of a noun is the only list of its fields. The log uses its JSON names, the
// tables use the same names with underscores (or the one in a tag column), and the digest
// covers all of them. Each event has methods for everything that this package must know
// about it. CONTRIBUTING.md explains how to add a field.
//
// Terms:
//
//   - A revision is a position in the log. Revisions have no gaps.
//   - An event is a committed fact that carries the full new value.
//   - A snapshot is everything durable at one revision. It never changes.
//   - A draft is a snapshot that one goroutine is still editing.
//   - A node is touched by an event that names it.
//   - An actor is who asked for a change.
//   - A receipt records a request that must not be executed twice.
package mesh
