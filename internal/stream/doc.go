// Package stream tells connected nodes what changed. One goroutine serves each
// map stream, the one that answers the request: it waits for a newer world,
// renders what its viewer must hear, writes it, and remembers the world it sent
// and nothing else. There is no queue: a slow stream skips to the newest world.
//
// What viewers share is rendered, encoded and compressed once: the news between
// two worlds for each class of viewers, and the peers of a full map in blocks.
//
// It decides nothing and never calls control; who holds a stream is told to
// Presence. It imports ledger, netmap, policy and mesh. Run is run by the caller.
package stream
