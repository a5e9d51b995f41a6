//go:build !chaosfault

package sqlstore

// faultSkipHeadLock is true only in binaries that prove that the chaos test detects the fault.
func faultSkipHeadLock() bool { return false }
