package waittest

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Eventually asks again and again until try succeeds, and fails the test with
// its last error when that takes longer than limit.
func Eventually(t testing.TB, limit, every time.Duration, try func() error) {
	t.Helper()
	deadline := time.After(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v: %v", limit, err)
		case <-time.After(every):
		}
	}
}

// Transcript is what somebody wrote so far. It may be read meanwhile.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (w *Transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

// String is all of it.
func (w *Transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
