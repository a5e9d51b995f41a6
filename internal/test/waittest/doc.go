// Package waittest is for tests that wait for goroutines, processes or containers.
//
// It knows nothing about what is waited for.
package waittest
