//go:build !chaosfault

package sqlstore

// faultSkipHeadLock is true only in binaries that prove that the chaos test
// would notice.
func faultSkipHeadLock() bool { return false }
