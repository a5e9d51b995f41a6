//go:build !chaosfault

package sqlstore

// faultSkipHeadLock returns true only in binaries that are built to prove that the chaos test detects this
// fault.
func faultSkipHeadLock() bool { return false }
