package waittest

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Bubble is synctest.Test, but Go code runs in only one thread meanwhile. With the race detector of Go 1.26, the process crashes
// if two threads use timers of the same bubble at the same time. Go 1.27 does not need this. Not for parallel tests, which would
// change each other's number of threads.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f) //nolint:forbidigo // this is the replacement
}
