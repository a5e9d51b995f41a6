// Package waittest is for tests that wait for others: goroutines, processes,
// containers.
//
// It knows nothing of what is waited for.
package waittest
