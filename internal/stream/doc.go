// Package stream keeps connected nodes up to date. The goroutine that handles a map
// request serves its stream: it waits for a newer world, writes what netmap gives it for
// its viewer, and remembers the world that it sent last. There is no queue: a slow stream
// skips to the newest world.
//
// It decides nothing: what a viewer is sent, and whether it shares the bytes with others,
// is up to netmap. It never calls control; it reports open streams to Presence. The
// caller runs Run.
package stream
