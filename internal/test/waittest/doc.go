// Package waittest is for tests that wait for goroutines, processes or containers.
//
// It does not depend on what they wait for.
package waittest
